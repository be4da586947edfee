"""Cutting serialized values into segments, and naming segments; pure functions of bytes.

A value is cut where its own bytes say so, hence in the same places whatever was appended behind or
trimmed in front. Equal pieces of a checkpoint and its parent are then one segment, written once. This
works on the bytes that the serializer gave, so every value and every serializer takes part.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import NamedTuple

from langgraph.checkpoint.dynamodb._format.items import segment_sk, unpack_ids
from langgraph.checkpoint.dynamodb._format.limits import (
    INDEX_GROUP,
    SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN,
)
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError

# A cut may follow one of these bytes: few enough that the test below is cheap, and spread so that every
# usual encoding (text in any alphabet, digits, base64, binary) has some. Runs of one byte count once.
_CANDIDATES = b"u7yKT" + bytes(range(5, 32, 16)) + bytes(range(133, 256, 16))
_CANDIDATE = re.compile(b"[" + re.escape(_CANDIDATES) + b"](?![" + re.escape(_CANDIDATES) + b"])")
_WINDOW_BYTES = 32
_CUT_MASK = 0x7F
# By so many of its first bytes a segment is looked for in a value that has changed in front of it.
_ANCHOR_BYTES = 32
# More than a checkpoint of a gigabyte has. Index segments that name each other would never end.
_EXPANDED_IDS_MAX = 1 << 18
_INDEX_LEVELS_MAX = 20


class Piece(NamedTuple):
    """A part of a value that becomes a segment, or is one already."""

    content: bytes
    digest: bytes


@dataclass
class Chunk:
    """What is known of a segment: its plaintext's digest, length and first bytes, and when it expires.

    All that remember the segment share one; its expiry changes when the segment is renewed.
    """

    digest: bytes
    length: int
    start: bytes
    expires_at: int | None

    @classmethod
    def of(cls, piece: Piece, expires_at: int | None) -> Chunk:
        """What is to be known of a segment with this content."""
        return cls(piece.digest, len(piece.content), piece.content[:_ANCHOR_BYTES], expires_at)

    def piece_at(self, data: bytes, start: int) -> Piece | None:
        """The segment's content, if that is what the data has there."""
        content = data[start : start + self.length]
        return Piece(content, self.digest) if digest(content) == self.digest else None


@dataclass(frozen=True)
class StoredValue:
    """How a checkpoint holds one channel's value: inline ends around segments."""

    kind: str
    preamble: bytes
    segments: tuple[bytes, ...]
    tail: bytes

    def join(self, contents: Mapping[bytes, bytes]) -> bytes:
        """The serialized value, given the segments' plaintexts."""
        return b"".join((self.preamble, *(contents[each] for each in self.segments), self.tail))


def digest(data: bytes) -> bytes:
    """The digest by which equal pieces are found; kept in memory only, never stored."""
    return sha256(data).digest()


def piece(content: bytes) -> Piece:
    """A piece with its digest."""
    return Piece(content, digest(content))


def cut(data: bytes, start: int, stop: int) -> Iterator[int]:
    """Yield the positions between `start` and `stop` at which segments end; what is behind the last stays open."""
    while stop - start > SEGMENT_BYTES_MIN:
        limit = min(start + SEGMENT_BYTES_MAX, stop)
        for match in _CANDIDATE.finditer(data, start + SEGMENT_BYTES_MIN, limit):
            end = match.end()
            if zlib.crc32(data[end - _WINDOW_BYTES : end]) & _CUT_MASK == 0:
                break
        else:
            if limit - start < SEGMENT_BYTES_MAX:
                return
            end = limit
        yield end
        start = end


def split(data: bytes, start: int, before: Sequence[Chunk]) -> tuple[list[Piece], bytes]:
    """Split serialized data into the pieces to seal, and the open tail.

    Args:
        data: The serialized data.
        start: Where the first piece begins.
        before: The pieces that an earlier value consists of, in order. They are kept as they are wherever
            the data has them still: behind what was trimmed in front, and around what was changed.
    """
    pieces, position = list[Piece](), 0
    while (found := _next_kept(data, start, before, position)) is not None:
        at, position, kept = found
        ends = [*cut(data, start, at), at]
        if len(ends) > 1 and ends[-1] - ends[-2] < SEGMENT_BYTES_MIN:
            del ends[-2]
        pieces += [
            piece(data[each:end]) for each, end in zip([start, *ends], ends, strict=False) if each < end
        ]
        pieces.append(kept)
        start = at + len(kept.content)
        position += 1
    for end in cut(data, start, len(data)):
        pieces.append(piece(data[start:end]))
        start = end
    return pieces, data[start:]


def _next_kept(
    data: bytes, start: int, before: Sequence[Chunk], position: int
) -> tuple[int, int, Piece] | None:
    """Where the first of the parent's remaining pieces is that the data has still, which one, and its content.

    Usually it is the next one, right here. Of the others a few are looked for, ever further apart; from one that
    is found the way leads back to the first of those before it.
    """
    for step in _steps(len(before) - position):
        chunk = before[position + step]
        at = start if step == 0 and data.startswith(chunk.start, start) else data.find(chunk.start, start)
        kept = None if at < 0 else chunk.piece_at(data, at)
        if kept is None:
            continue
        while step > 0:
            chunk = before[position + step - 1]
            earlier = chunk.piece_at(data, at - chunk.length) if at - chunk.length >= start else None
            if earlier is None:
                break
            at, kept, step = at - chunk.length, earlier, step - 1
        return at, position + step, kept
    return None


def _steps(count: int) -> Iterator[int]:
    """Yield 0, 1, 3, 7 and so on, and the last one."""
    step = 0
    while step < count:
        yield step
        step = 2 * step + 1
    if count > 0:
        yield count - 1


# Ids


def new_id(rng: random.Random, *, index: bool = False) -> bytes:
    """An id that is never used again: 63 random bits, and one that says whether it is an index segment's."""
    data = bytearray(rng.randbytes(8))
    data[0] = data[0] & 0xFE | index
    return bytes(data)


def derived_id(seed: bytes, segment_id: bytes) -> bytes:
    """The id of a segment's copy, as good as random: the same for a seed, and another one for another seed."""
    data = bytearray(blake2b(segment_id, key=seed, digest_size=8).digest())
    data[0] = data[0] & 0xFE | is_index(segment_id)
    return bytes(data)


def is_index(segment_id: bytes) -> bool:
    """Whether the segment holds ids of other segments."""
    return bool(segment_id[0] & 1)


def fold(ids: Sequence[bytes], limit: int, index: Callable[[bytes], bytes]) -> tuple[bytes, ...]:
    """Shorten a list of ids by moving groups of them, from the front, to index segments.

    Args:
        ids: Segment ids.
        limit: How many ids may stay, at least the size of a group.
        index: Gives the id of an index segment with this content.
    """
    folded = tuple(ids)
    while len(folded) > limit:
        groups = len(folded) // INDEX_GROUP * INDEX_GROUP
        indexed = tuple(
            index(b"".join(folded[start : start + INDEX_GROUP])) for start in range(0, groups, INDEX_GROUP)
        )
        folded = indexed + folded[groups:]
    return folded


def reach(ids: Iterable[bytes], contents: Mapping[bytes, bytes]) -> set[bytes]:
    """These ids and all that index segments among them lead to, those of inner index segments included."""
    reached: set[bytes] = set()
    new = set(ids)
    while new:
        reached |= new
        inner = (_indexed(each, contents) for each in new if is_index(each) and each in contents)
        new = {each for group in inner for each in group} - reached
    return reached


def expand(
    ids: Iterable[bytes], contents: Mapping[bytes, bytes], levels: int = _INDEX_LEVELS_MAX
) -> list[bytes]:
    """Undo `fold`; ids of index segments without content stay as they are.

    Raises:
        CheckpointCorruptionError: An index segment is not what was written; it may lead back to itself.
    """
    expanded: list[bytes] = []
    for each in ids:
        if not is_index(each) or each not in contents:
            expanded.append(each)
        elif levels == 0:
            raise _damaged_index(each, "it is reached through too many others")
        else:
            expanded += expand(_indexed(each, contents), contents, levels - 1)
        if len(expanded) > _EXPANDED_IDS_MAX:
            raise _damaged_index(each, "too many ids are reached with it")
    return expanded


def _indexed(segment_id: bytes, contents: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    """The ids that an index segment holds."""
    data = contents[segment_id]
    if not data or len(data) % len(segment_id):
        raise _damaged_index(segment_id, "its content is no list of ids")
    return unpack_ids(data)


def _damaged_index(segment_id: bytes, why: str) -> CheckpointCorruptionError:
    msg = f"segment SK={segment_sk(segment_id)!r} is damaged: {why}; restore it from a backup or point-in-time recovery"
    return CheckpointCorruptionError(msg)
