"""The parts of items that are being made: what becomes new segments, and what is reused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, seal_plain
from langgraph.checkpoint.dynamodb._format.expiry import Expiry, expires_before
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    HEAD_IDS_MAX,
    IDLE_TAIL_BYTES_MAX,
    INDEX_GROUP,
    PREAMBLE_BYTES,
    RAW_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.segments import (
    Chunk,
    Piece,
    StoredValue,
    fold,
    is_index,
    new_id,
    piece,
    split,
)
from langgraph.checkpoint.dynamodb._operations.threads import ensure_registered, extend_segments
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, StoredSegment, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op


@dataclass
class Needs:
    """What an item that is to be stored names: segments that are stored before it, and what is known of all."""

    segments: dict[bytes, Item] = field(default_factory=dict)
    chunks: dict[bytes, Chunk] = field(default_factory=dict)
    # When the first of those expires that it names besides, in epoch seconds; None: never, or there are none.
    others_until: int | None = None

    def stored(self) -> dict[bytes, StoredSegment]:
        """The new segments as they are to be remembered."""
        return {
            each: StoredSegment(items.binary(item, items.DATA), self.chunks[each])
            for each, item in self.segments.items()
        }


class Draft(Needs):
    """The parts of an item that is being made: new segments, and those of a checkpoint that it reuses."""

    def __init__(self, table: Table, codec: Codec, at: Partition, sk: str, base: Entry | None) -> None:
        """Start with the keys of the item, and a checkpoint of which everything may be reused."""
        super().__init__()
        self._table = table
        self._codec = codec
        self._at = at
        self._key = items.key(at.pk, sk)
        self._base = base
        self._known: Mapping[bytes, Chunk] = {} if base is None else base.chunks
        # By digest, index segments apart. What is not here is stored anew, equal or not.
        self._ids = {
            (is_index(each), chunk.digest): each
            for each, chunk in self._known.items()
            if table.share_equal_pieces or is_index(each)
        }

    def value(self, kind: str, data: bytes, before: StoredValue | None, *, inline: bool) -> StoredValue:
        """Store a serialized value, reusing what the parent has of it."""
        if inline:
            return StoredValue(kind, data[:PREAMBLE_BYTES], (), data[PREAMBLE_BYTES:])
        chunks: Sequence[Chunk] = ()
        if len(data) > IDLE_TAIL_BYTES_MAX:
            chunks = self._chunks_of(() if before is None else (before,))
        pieces, tail = split(data, PREAMBLE_BYTES, chunks)
        value = StoredValue(kind, data[:PREAMBLE_BYTES], tuple(map(self._piece, pieces)), tail)
        # A channel that was given the value that it has is as idle as one that was given none.
        return self.inherit(value, inline=False) if value == before else value

    def inherit(self, value: StoredValue, *, inline: bool) -> StoredValue:
        """Hold a value as the parent does, but seal what would be carried along with every step."""
        for each in value.segments:
            self.chunks[each] = self._known[each]
        if inline or len(value.tail) <= IDLE_TAIL_BYTES_MAX:
            return value
        return StoredValue(value.kind, value.preamble, (*value.segments, self._piece(piece(value.tail))), b"")

    def part(
        self,
        name: str,
        raw: bytes,
        bytes_max: int,
        values: Collection[StoredValue] = (),
        before: Sequence[StoredValue] | None = None,
    ) -> Part:
        """Seal content into its item, or move it to segments where it is too large for that or mostly there already.

        Args:
            name: The attribute that it is for.
            raw: The content.
            bytes_max: How large it may be in the item, sealed.
            values: The values whose segments it refers to.
            before: The values that it may have most of its bytes from, or none of them to try all that the checkpoint
                has. What it has is named and not written again. None: it has nothing from any.
        """
        self._codec.check_size(len(raw), self._key)
        refs = [each for value in values for each in value.segments]
        folded = [each for value in values for each in self._folded(value.segments)]
        named = fold(folded, HEAD_IDS_MAX, self._index)
        pieces, tail = list[Piece](), raw
        if before is not None:
            pieces, tail = split(raw, 0, self._chunks_of(before))
        reused = sum(len(each.content) for each in pieces if (False, each.digest) in self._ids)
        if 2 * reused < len(raw) <= RAW_BYTES_MAX:
            sealed = self._codec.seal(raw, self._key, name, ((), refs))
            if len(sealed) <= bytes_max:
                return Part((), named, sealed)
        if not pieces:
            pieces, tail = split(raw, 0, ())
        if tail:
            pieces.append(piece(tail))
        own = tuple(map(self._piece, pieces))
        return Part(self._folded(own), named, self._codec.vouch(self._key, name, (own, refs)))

    def _chunks_of(self, values: Sequence[StoredValue]) -> list[Chunk]:
        """The pieces of some of the checkpoint's values, or else of all: a value may come to another channel."""
        if self._base is None or not self._table.share_equal_pieces:
            return []
        wanted = values if any(value.segments for value in values) else self._base.values.values()
        return [self._known[each] for value in wanted for each in value.segments]

    def _folded(self, ids: Sequence[bytes]) -> tuple[bytes, ...]:
        """Shorten a list of ids by index segments."""
        return fold(ids, INDEX_GROUP, self._index)

    def _index(self, content: bytes) -> bytes:
        return self._segment(piece(content), index=True)

    def _piece(self, content: Piece) -> bytes:
        return self._segment(content, index=False)

    def _segment(self, content: Piece, *, index: bool) -> bytes:
        known = (index, content.digest)
        segment_id = self._ids.get(known)
        if segment_id is None:
            segment_id = new_id(self._table.rng, index=index)
            if index or self._table.share_equal_pieces:
                self._ids[known] = segment_id
            sealed = seal_segment(self._codec, self._at, segment_id, content.content)
            self.segments[segment_id] = items.segment_item(self._at, segment_id, sealed)
            self.chunks[segment_id] = Chunk.of(content, None)
        elif segment_id not in self.chunks:
            self.chunks[segment_id] = self._known[segment_id]
        return segment_id


def seal_segment(codec: Codec, at: Partition, segment_id: bytes, content: bytes) -> bytes:
    """What a segment is stored as; ids are not encrypted, so that deletions need no key."""
    sk = items.segment_sk(segment_id)
    if is_index(segment_id):
        return seal_plain(content, sk)
    return codec.seal(content, items.key(at.pk, sk), items.DATA)


class UnlistedExpiryError(Exception):
    """A segment has to live longer, and whoever names it has not said which one: the gateway's client lists few."""


def store_needs(
    table: Table, at: Partition, needs: Needs, thread: ThreadEntry, expiry: Expiry, ends_at: int | None
) -> Op[bool]:
    """Write what an item will name, before the item.

    Args:
        table: The table.
        at: The namespace of the item.
        needs: What it will name. The expiries of its segments are updated.
        thread: The thread, under whose epoch this is safe.
        expiry: The expiries of what is stored now.
        ends_at: When the item expires, in epoch seconds. Reused segments that would expire before are extended.

    Returns:
        Whether all of it is there. A reused segment may have gone.

    Raises:
        UnlistedExpiryError: Nothing was written.
    """
    if expires_before(needs.others_until, ends_at):
        raise UnlistedExpiryError
    yield from ensure_registered(table, at, thread, expiry)
    now = table.clock()
    new = [items.with_expiry(items.created(each, now), expiry.segment) for each in needs.segments.values()]
    yield from table.batch_write(puts=new)
    for each in needs.segments:
        needs.chunks[each].expires_at = expiry.segment
    short = {each for each, chunk in needs.chunks.items() if expires_before(chunk.expires_at, ends_at)}
    if (yield from extend_segments(table, at, short, expiry.segment)):
        return False
    for each in short:
        needs.chunks[each].expires_at = expiry.segment
    return True
