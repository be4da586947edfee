"""Cutting serialized values into segments, and naming segments; pure functions of bytes.

A value's own bytes determine where it is cut, so the places stay the same when bytes are appended at the end or removed
in front. Equal pieces of a checkpoint and its parent are then one segment, written once. This works on serialized
bytes, so it applies to every value and every serializer.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import NamedTuple, TypeAlias

from ..errors import CheckpointCorruptionError
from . import items, limits

# A cut may follow one of these bytes. They are few enough to make the test below cheap, and spread so that every usual
# encoding (text in any alphabet, digits, base64, binary) has some. A run of them is one candidate.
_CANDIDATES = b"u7yKT" + bytes(range(5, 32, 16)) + bytes(range(133, 256, 16))
_CANDIDATE = re.compile(b"[" + re.escape(_CANDIDATES) + b"](?![" + re.escape(_CANDIDATES) + b"])")
_WINDOW_BYTES = 32
_CUT_MASK = 0x7F
# A segment is searched for by so many of its bytes, in a value that has changed in front of it. Records of a list have
# most bytes in common: so many places are tried for bytes that occur once in the segment, and so many of those at which
# a value has them. Most changes are near: the search goes through so many bytes before all others.
_ANCHOR_BYTES = 32
_ANCHORS_TRIED = 64
_PLACES_TRIED = 32
_NEAR_BYTES = 128 * 1024
# How many segments are searched for before a value counts as new from there on. Of so many, each is.
_SEARCHES_MAX = 32
# A group of at least so many ids ends with one whose last byte is a multiple of this.
_GROUP_MIN = limits.INDEX_GROUP // 2
_GROUP_ENDS = 8
# More than a checkpoint of a gigabyte has. Without these bounds, index segments that name each other would never end.
_EXPANDED_IDS_MAX = 1 << 18
_INDEX_LEVELS_MAX = 20


class Piece(NamedTuple):
    """A part of a value that becomes a segment, or is already one."""

    content: bytes
    digest: bytes


@dataclass
class Chunk:
    """The digest and length of a segment's plaintext, bytes to find it by, and its expiry.

    All cache entries that name the segment share one chunk. Its expiry changes when the segment is extended.
    """

    digest: bytes
    length: int
    anchor: bytes
    anchor_offset: int
    expires_at: int | None

    @classmethod
    def of(cls, piece: Piece, expires_at: int | None) -> Chunk:
        """Return the chunk of a segment with this content."""
        offset = _anchor_offset(piece.content)
        anchor = piece.content[offset : offset + _ANCHOR_BYTES]
        return cls(piece.digest, len(piece.content), anchor, offset, expires_at)

    def piece_at(self, data: bytes, start: int) -> Piece | None:
        """Return the segment's content if the data has it at `start`, or `None`."""
        if not data.startswith(self.anchor, start + self.anchor_offset):
            return None
        content = data[start : start + self.length]
        return Piece(content, self.digest) if digest(content) == self.digest else None

    def find(self, data: bytes, start: int, stop: int) -> int | None:
        """Return the first offset between `start` and `stop` at which the data has the segment's content."""
        if stop - start < self.length:
            return None
        place = start + self.anchor_offset - 1
        last = stop - self.length + self.anchor_offset + len(self.anchor)
        for _ in range(_PLACES_TRIED):
            place = data.find(self.anchor, place + 1, last)
            if place < 0:
                return None
            if self.piece_at(data, place - self.anchor_offset):
                return place - self.anchor_offset
        return None


def _anchor_offset(content: bytes) -> int:
    """Return where a segment has bytes that occur once in it; 0 if none are found."""
    places = max(1, len(content) - _ANCHOR_BYTES)
    # From the middle on: many segments begin with the same bytes, since their content determines where they are cut.
    for tried in range(_ANCHORS_TRIED):
        offset = (places // 2 + tried * places // _ANCHORS_TRIED) % places
        anchor = content[offset : offset + _ANCHOR_BYTES]
        if content.find(anchor) == offset and content.find(anchor, offset + 1) < 0:
            return offset
    return 0


Inline: TypeAlias = tuple[tuple[int, bytes], ...]
"""Bytes between segments, in order, each with the number of segments before it."""


@dataclass(frozen=True)
class StoredValue:
    """How a checkpoint stores one channel's value: segments, with inline bytes around and between them."""

    kind: str
    segments: tuple[bytes, ...]
    inline: Inline

    def join(self, contents: Mapping[bytes, bytes]) -> bytes:
        """Return the serialized value, given the plaintexts of the segments."""
        return join([contents[each] for each in self.segments], self.inline)


def join(contents: Sequence[bytes], inline: Inline) -> bytes:
    """Return content, given the plaintexts of its segments and the bytes between them."""
    parts, start = list[bytes](), 0
    for place, data in inline:
        parts += [*contents[start:place], data]
        start = place
    return b"".join((*parts, *contents[start:]))


def inline_bytes(values: Iterable[StoredValue]) -> int:
    """Return how many inline bytes some values have."""
    return sum(len(data) for value in values for _, data in value.inline)


def bytes_of(values: Collection[StoredValue], chunks: Mapping[bytes, Chunk]) -> int:
    """Return how many bytes some values have, serialized, given the details of their segments."""
    in_segments = sum(chunks[each].length for value in values for each in value.segments)
    return in_segments + inline_bytes(values)


def digest(data: bytes) -> bytes:
    """Return the digest by which equal pieces are found. It is kept in memory only, never stored."""
    return sha256(data).digest()


def piece(content: bytes) -> Piece:
    """Return a piece with its digest."""
    return Piece(content, digest(content))


def cut(data: bytes, start: int, stop: int, large: int) -> Iterator[int]:
    """Yield the positions between `start` and `stop` at which segments end. Bytes behind the last one stay open.

    Args:
        data: The serialized data.
        start: Where the first segment begins.
        stop: Where the bytes end.
        large: How large the least size of a segment may become where much is left to cut. With SEGMENT_BYTES_MIN, the
            places do not depend on that.
    """
    while (left := stop - start) > limits.SEGMENT_BYTES_MIN:
        least = limits.SEGMENT_BYTES_MIN
        while least < large and 2 * least * limits.LARGE_SEGMENTS_MIN <= left:
            least *= 2
        limit = start + least + limits.CUT_RANGE_BYTES
        for match in _CANDIDATE.finditer(data, start + least, min(limit, stop)):
            end = match.end()
            if zlib.crc32(data[end - _WINDOW_BYTES : end]) & _CUT_MASK == 0:
                break
        else:
            if limit > stop:
                return
            end = limit
        yield end
        start = end


def split(data: bytes, start: int, before: Sequence[Chunk]) -> tuple[list[Piece], bytes]:
    """Split serialized data into the pieces to seal, and the open tail.

    Args:
        data: The serialized data.
        start: Where the first piece begins.
        before: The pieces of an earlier value, in order. Pieces that the data still has are kept as they are: behind
            bytes that were removed in front, and around bytes that were changed.
    """
    pieces = list[Piece]()
    for offset, chunk in _kept(data, start, len(data), before):
        if start < offset:
            pieces += _pieces_between(data, start, offset)
        start = offset + chunk.length
        pieces.append(Piece(data[offset:start], chunk.digest))
    new, tail = cut_pieces(data, start, limits.LARGE_SEGMENT_BYTES_MIN)
    return pieces + new, tail


def cut_pieces(data: bytes, start: int, large: int) -> tuple[list[Piece], bytes]:
    """Cut data from `start` on into pieces, and the open tail; see `cut` for `large`."""
    pieces = list[Piece]()
    for end in cut(data, start, len(data), large):
        pieces.append(piece(data[start:end]))
        start = end
    return pieces, data[start:]


def _pieces_between(data: bytes, start: int, stop: int) -> list[Piece]:
    """Cut the new bytes before a piece that is kept. The last of them joins the one before it if it is small."""
    ends = [*cut(data, start, stop, limits.LARGE_SEGMENT_BYTES_MIN), stop]
    if len(ends) > 1 and ends[-1] - ends[-2] < limits.SEGMENT_BYTES_MIN:
        del ends[-2]
    return [piece(data[each:end]) for each, end in zip([start, *ends], ends, strict=False)]


def _kept(data: bytes, start: int, stop: int, before: Sequence[Chunk]) -> Iterator[tuple[int, Chunk]]:
    """Yield those of the parent's pieces that the data still has, in order, each with its offset.

    Usually it is the next one, at `start`. Otherwise one is searched for; then those before it are, in front of it.
    """
    position = 0
    # Places that were found and not yet reached, the nearest last.
    found = [(stop, len(before))]
    while found:
        stop, last = found[-1]
        chunk = before[position] if position < last else None
        if chunk is not None and start + chunk.length <= stop and chunk.piece_at(data, start):
            yield start, chunk
            start += chunk.length
            position += 1
        elif (nearer := _find_any(data, start, stop, before[position:last])) is not None:
            offset, step = nearer
            found.append((offset, position + step))
        else:
            start, position = found.pop()


def _find_any(data: bytes, start: int, stop: int, chunks: Sequence[Chunk]) -> tuple[int, int] | None:
    """Find one of these pieces in the data between `start` and `stop`, and return its offset and its number."""
    for end in sorted({min(stop, start + _NEAR_BYTES), stop}):
        for step in _steps(len(chunks)):
            offset = chunks[step].find(data, start, end)
            if offset is not None:
                return offset, step
    return None


def _steps(count: int) -> list[int]:
    """Return 0, 1, 3, 7 and so on, and the last one; then others, evenly, up to the most that are searched for."""
    first = [(1 << power) - 1 for power in range(count.bit_length())] + [count - 1] * (count > 0)
    return list(dict.fromkeys([*first, *range(0, count, -(-count // _SEARCHES_MAX) or 1)]))


# Ids


def new_id(rng: random.Random, *, index: bool = False) -> bytes:
    """Make an id that is never used again: 63 random bits, and one bit that marks index segments."""
    data = bytearray(rng.randbytes(items.SEGMENT_ID_BYTES))
    data[0] = data[0] & 0xFE | index
    return bytes(data)


def derived_id(seed: bytes, segment_id: bytes) -> bytes:
    """Derive the id of a segment's copy: as good as random, the same for the same seed, and different for others."""
    data = bytearray(blake2b(segment_id, key=seed, digest_size=items.SEGMENT_ID_BYTES).digest())
    data[0] = data[0] & 0xFE | is_index(segment_id)
    return bytes(data)


def is_index(segment_id: bytes) -> bool:
    """Tell whether a segment is an index segment."""
    return bool(segment_id[0] & 1)


def fold(ids: Sequence[bytes], limit: int, index: Callable[[bytes], bytes]) -> tuple[bytes, ...]:
    """Shorten a list of ids by moving groups of them to index segments. The last group stays open.

    Args:
        ids: Segment ids.
        limit: How many ids may stay, at least the size of a group.
        index: Returns the id of an index segment with a given content.
    """
    folded = tuple(ids)
    while len(folded) > limit:
        *groups, rest = _grouped(folded)
        folded = (*(index(b"".join(each)) for each in groups), *rest)
    return folded


def _grouped(ids: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Divide ids into groups. The last one is open and may be empty.

    The ids themselves determine where a group ends, so the groups of a list are the same behind ids that were added or
    removed in front.
    """
    groups, start = list[Sequence[bytes]](), 0
    for end in range(1, len(ids) + 1):
        count = end - start
        if count == limits.INDEX_GROUP or (count >= _GROUP_MIN and ids[end - 1][-1] % _GROUP_ENDS == 0):
            groups.append(ids[start:end])
            start = end
    return [*groups, ids[start:]]


def reach(ids: Iterable[bytes], contents: Mapping[bytes, bytes]) -> set[bytes]:
    """Return these ids and all ids that index segments among them name, directly or by other index segments."""
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
        CheckpointCorruptionError: An index segment is damaged, or names itself through others.
    """
    expanded: list[bytes] = []
    for each in ids:
        if not is_index(each) or each not in contents:
            expanded.append(each)
        elif levels == 0:
            raise _damaged_index(each, "it is nested too deeply in other index segments")
        else:
            expanded += expand(_indexed(each, contents), contents, levels - 1)
        if len(expanded) > _EXPANDED_IDS_MAX:
            raise _damaged_index(each, "it leads to more ids than one value can have")
    return expanded


def _indexed(segment_id: bytes, contents: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    """Return the ids in an index segment."""
    data = contents[segment_id]
    if not data or len(data) % len(segment_id):
        raise _damaged_index(segment_id, "its content is not a list of ids")
    return items.unpack_ids(data)


def _damaged_index(segment_id: bytes, why: str) -> CheckpointCorruptionError:
    sk = items.segment_sk(segment_id)
    msg = f"segment SK={sk!r} is damaged: {why}; restore it from a backup or point-in-time recovery"
    return CheckpointCorruptionError(msg)
