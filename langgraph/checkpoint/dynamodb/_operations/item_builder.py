"""Building the parts of items: which content becomes new segments, and which segments are reused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from functools import cached_property
from itertools import groupby

from .._format import items
from .._format.codec import Codec, seal_plain
from .._format.content import pack_inline
from .._format.items import Item, Part, Partition, expires_before
from .._format.limits import (
    HEAD_IDS_MAX,
    INDEX_GROUP,
    NEW_BYTES_INLINE_MAX,
    PREAMBLE_BYTES,
    RAW_BYTES_MAX,
    SEALED_TAIL_BYTES_MIN,
    SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN,
)
from .._format.pricing import WRITE_UNIT_BYTES, item_bytes
from .._format.segments import Chunk, Inline, Piece, StoredValue, fold, is_index, new_id, piece, split
from .._runtime.cache import CachedCheckpoint, CachedSegment, CachedThread
from .._runtime.steps import Op
from .._runtime.storage import Storage
from ..protocol import check_rule, is_reusable
from .thread_item import ensure_registered, extend_segments


class ItemBuilder:
    """Builds the parts of one item, with new segments and segments of a checkpoint that it reuses."""

    def __init__(
        self,
        storage: Storage,
        partition: Partition,
        item_key: Item,
        base: CachedCheckpoint | None,
        beside: Item | None = None,
    ) -> None:
        """Start with the key of the item, and a checkpoint whose segments may all be reused.

        Args:
            storage: The storage.
            partition: The partition of the item.
            item_key: The key of the item.
            base: The checkpoint; `None`: nothing is reused.
            beside: Attributes that every segment has beside its content.
        """
        self.segments: dict[bytes, Item] = {}
        """The new segments, by id. They are stored before the item."""
        self.chunks: dict[bytes, Chunk] = {}
        """The details of all segments that the item names."""
        self._storage = storage
        self._partition = partition
        self._key = item_key
        self._base = base
        self._beside = beside or {}
        self.now = storage.clock()
        self._known: Mapping[bytes, Chunk] = {} if base is None else base.chunks
        # Segments for reuse, by digest, index segments apart from others. Other content is stored again, even if equal.
        self._ids = {
            (is_index(each), chunk.digest): each
            for each, chunk in self._known.items()
            if storage.share_equal_pieces or is_index(each)
        }

    def stored(self) -> dict[bytes, CachedSegment]:
        """Return the cache entries of the new segments."""
        return {
            each: CachedSegment(items.binary(item, items.DATA), self.chunks[each])
            for each, item in self.segments.items()
        }

    def check_named(self, ids: AbstractSet[bytes], epoch: bytes) -> None:
        """Check that what the item names under an epoch is new, or was confirmed under it."""
        base = self._base
        safe = base.chunks.keys() if base is not None and is_reusable(base.epoch, epoch) else set[bytes]()
        loose = (ids | self.chunks.keys()) - self.segments.keys() - safe
        check_rule(f"{items.name_of(self._key)} may name segments that are new or known to be safe", loose)

    @cached_property
    def _unit_data_bytes(self) -> int:
        return unit_data_bytes(self._partition, self._beside, self._storage.clock())

    def value(self, kind: str, data: bytes, before: StoredValue | None, *, inline: bool) -> StoredValue:
        """Return how to store a serialized value: inline, or in segments that reuse those of the parent's value."""
        if inline:
            return StoredValue(kind, (), ((0, data),))
        chunks: Sequence[Chunk] = ()
        if len(data) > SEALED_TAIL_BYTES_MIN:
            chunks = self._chunks_of(() if before is None else (before,))
        pieces, tail = split(data, PREAMBLE_BYTES, chunks)
        return StoredValue(
            kind, *self._laid_out(data[:PREAMBLE_BYTES], self._packed(pieces), tail, SEGMENT_BYTES_MIN)
        )

    def _packed(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Join new pieces that follow each other, as far as one write unit holds them: some compress 100 times."""
        packed = list[Piece]()
        for is_known, group in groupby(pieces, lambda each: (False, each.digest) in self._ids):
            run = list(group)
            # Most content compresses too little for two pieces to fit: one of them tells, at a part of the CPU time.
            if is_known or len(run) == 1 or self._sealed_bytes(run[0].content) > self._unit_data_bytes // 2:
                packed += run
                continue
            content = b"".join(each.content for each in run)
            # A sixteenth is spare, since a part compresses less than the whole.
            unit = self._unit_data_bytes * 15 // 16
            room = min(SEGMENT_BYTES_MAX, len(content) * unit // self._sealed_bytes(content))
            joined = b""
            for each in run:
                if joined and len(joined) + len(each.content) > room:
                    packed.append(piece(joined))
                    joined = b""
                joined += each.content
            packed.append(piece(joined))
        return packed

    def _sealed_bytes(self, content: bytes) -> int:
        """Return the size of a segment's content, sealed."""
        return self._storage.codec.sealed_bytes(content)

    def _laid_out(
        self, head: bytes, pieces: Sequence[Piece], tail: bytes, new_bytes_min: int
    ) -> tuple[tuple[bytes, ...], Inline]:
        """Store pieces as segments, and leave the head, the tail and new pieces that are small inline."""
        ids, inline = list[bytes](), [(0, head)]
        for each in pieces:
            if len(each.content) >= new_bytes_min or (False, each.digest) in self._ids:
                ids.append(self._piece(each))
            elif inline[-1][0] == len(ids):
                inline[-1] = (len(ids), inline[-1][1] + each.content)
            else:
                inline.append((len(ids), each.content))
        if tail and inline[-1][0] == len(ids):
            inline[-1] = (len(ids), inline[-1][1] + tail)
        elif tail:
            inline.append((len(ids), tail))
        return tuple(ids), tuple(each for each in inline if each[1])

    def inherit(self, value: StoredValue) -> StoredValue:
        """Store a value as the parent does."""
        for each in value.segments:
            self.chunks[each] = self._known[each]
        return value

    def extended(self, value: StoredValue, data: bytes) -> StoredValue:
        """Store a value as the parent does, with more bytes at its end."""
        value = self.inherit(value)
        end, inline, tail = len(value.segments), list(value.inline), b""
        if inline and inline[-1][0] == end:
            _, tail = inline.pop()
        pieces, tail = split(tail + data, 0, ())
        ids, more = self._laid_out(b"", self._packed(pieces), tail, SEGMENT_BYTES_MIN)
        added = ((end + place, each) for place, each in more)
        return StoredValue(value.kind, (*value.segments, *ids), (*inline, *added))

    def seal_inline(self, value: StoredValue) -> StoredValue:
        """Move long inline bytes of a value to segments: each step would write them again."""
        ids, inline, start = list[bytes](), list[tuple[int, bytes]](), 0
        for place, data in value.inline:
            ids += value.segments[start:place]
            start = place
            # The start of a value stays, since it changes with its length.
            kept = data[:PREAMBLE_BYTES] if place == 0 else b""
            if len(data) - len(kept) < SEALED_TAIL_BYTES_MIN:
                inline.append((len(ids), data))
                continue
            if kept:
                inline.append((0, kept))
            sealed, rest = self._whole_units(data[len(kept) :])
            ids.append(self._piece(piece(sealed)))
            if rest:
                inline.append((len(ids), rest))
        return StoredValue(value.kind, (*ids, *value.segments[start:]), tuple(inline))

    def _whole_units(self, content: bytes) -> tuple[bytes, bytes]:
        """Divide content into what fills whole write units as a segment, and a rest that would fill less than half."""
        size = self._sealed_bytes(content)
        room = size - (size - self._unit_data_bytes) % WRITE_UNIT_BYTES
        if room <= 0 or size - room > WRITE_UNIT_BYTES // 2:
            return content, b""
        end = len(content) * room // size
        # A part compresses a little less than the whole.
        while end and self._sealed_bytes(content[:end]) > room:
            end -= 1 + end // 64
        return (content[:end], content[end:]) if end else (content, b"")

    def copy(self) -> ItemBuilder:
        """Return a copy of the builder, to compose the next part in another way and compare the costs."""
        builder: ItemBuilder = copy(self)
        builder.segments, builder.chunks, builder._ids = {**self.segments}, {**self.chunks}, {**self._ids}
        return builder

    def part(
        self,
        name: str,
        raw: bytes,
        bytes_max: int,
        values: Collection[StoredValue] = (),
        before: Sequence[StoredValue] | None = None,
        beside: int | None = None,
    ) -> Part:
        """Seal content into its item, or move it to segments if it is too large or mostly stored already.

        Args:
            name: The name of the attribute.
            raw: The content.
            bytes_max: The maximum size in the item, sealed.
            values: The values whose segments the content refers to.
            before: Values that may share most of their bytes with the content; empty to try all of the checkpoint's.
                Shared segments are named and not written again. `None`: it shares nothing.
            beside: How many bytes the item has beside the part, if that is known.
        """
        self._storage.codec.check_size(len(raw), self._key)
        refs, named = self._named(values)
        pieces, tail = list[Piece](), raw
        if before is not None:
            pieces, tail = split(raw, 0, self._chunks_of(before))
        beside = None if beside is None else beside + part_bytes(named)
        reused = sum(len(each.content) for each in pieces if (False, each.digest) in self._ids)
        if 2 * reused < len(raw) <= RAW_BYTES_MAX:
            sealed = self._storage.codec.seal(raw, self._key, name, ((), refs), beside=beside)
            if len(sealed) <= bytes_max:
                return Part((), named, sealed)
        if 2 * reused < len(raw):
            pieces, tail = split(raw, 0, ())
            pieces = self._packed(pieces)
            if tail:
                pieces.append(piece(tail))
            own, inline = tuple(map(self._piece, pieces)), Inline()
        else:
            own, inline = self._laid_out(b"", pieces, tail, len(raw) + 1)
            between = self._between(name, own, inline, refs)
            # That takes at most one unit more, and so does each segment.
            if len(raw) - reused <= NEW_BYTES_INLINE_MAX and len(between) <= WRITE_UNIT_BYTES:
                return Part(self._folded(own), named, between)
            own, inline = self._laid_out(b"", self._packed(pieces), tail, SEGMENT_BYTES_MIN)
        return Part(self._folded(own), named, self._between(name, own, inline, refs))

    def part_of(
        self, name: str, content: StoredValue, bytes_max: int, values: Collection[StoredValue]
    ) -> Part | None:
        """Seal content whose segments are stored already into its item; `None` if the rest is too large for it."""
        refs, named = self._named(values)
        between = self._between(name, content.segments, content.inline, refs)
        return None if len(between) > bytes_max else Part(self._folded(content.segments), named, between)

    def _named(self, values: Collection[StoredValue]) -> tuple[list[bytes], tuple[bytes, ...]]:
        """Return the ids of the segments of values, and the list of them that an item names."""
        refs = [each for value in values for each in value.segments]
        folded = [each for value in values if value.segments for each in self._folded(value.segments)]
        return refs, fold(folded, HEAD_IDS_MAX, self._index)

    def _between(self, name: str, own: Sequence[bytes], inline: Inline, refs: Sequence[bytes]) -> bytes:
        """Seal what lies between the segments that hold an attribute's content."""
        return self._storage.codec.seal_between(pack_inline(inline), self._key, name, (own, refs))

    def _chunks_of(self, values: Sequence[StoredValue]) -> list[Chunk]:
        """Return the pieces of some of the checkpoint's values, or of all if these have none.

        A value may have moved to another channel.
        """
        if self._base is None or not self._storage.share_equal_pieces:
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
            segment_id = new_id(self._storage.rng, index=index)
            if index or self._storage.share_equal_pieces:
                self._ids[known] = segment_id
            room = self._unit_data_bytes
            sealed = seal_segment(self._storage.codec, self._partition, segment_id, content.content, room)
            self.segments[segment_id] = {
                **items.segment_item(self._partition, segment_id, sealed),
                **self._beside,
            }
            self.chunks[segment_id] = Chunk.of(content, None)
        elif segment_id not in self.chunks:
            self.chunks[segment_id] = self._known[segment_id]
        return segment_id


def part_bytes(ids: Sequence[bytes]) -> int:
    """Return how many bytes a part has beside the sealed ones."""
    return len(Part((), tuple(ids), b"").attribute("")["B"])


def unit_data_bytes(partition: Partition, beside: Item, now: float) -> int:
    """Count the bytes that the last write unit of a segment has left beside keys, times and names."""
    empty = {**items.segment_item(partition, bytes(items.SEGMENT_ID_BYTES), b""), **beside}
    return -item_bytes(items.with_expiry(items.created(empty, now), int(now))) % WRITE_UNIT_BYTES


def seal_segment(codec: Codec, partition: Partition, segment_id: bytes, content: bytes, room: int) -> bytes:
    """Seal a segment's content, which has `room` bytes in its last write unit.

    Index segments are not encrypted, so that deletions need no key.
    """
    sk = items.segment_sk(segment_id)
    if is_index(segment_id):
        return seal_plain(content, sk)
    return codec.seal(content, items.key(partition.pk, sk), items.DATA, beside=-room)


def store_segments(
    storage: Storage,
    partition: Partition,
    builder: ItemBuilder,
    named: AbstractSet[bytes],
    thread: CachedThread,
    started_from: str | None,
) -> Op[bool]:
    """Store the segments that an item will name, before the item, and register its namespace.

    Args:
        storage: The storage.
        partition: The namespace of the item.
        builder: What has built the item. The expiries that it knows of segments are updated.
        named: The segments that the item names.
        thread: The thread under whose epoch the reused segments are safe. Those that would expire before what is stored
            in it now are extended.
        started_from: The root checkpoint from which the call of a subgraph's namespace started.

    Returns:
        Whether all segments exist. A reused one may have been removed.
    """
    builder.check_named(named, thread.epoch)
    kept_until = thread.life.kept_until
    yield from ensure_registered(storage, partition, thread, started_from)
    if builder.segments:
        now = storage.clock()
        new = [items.with_expiry(items.created(each, now), kept_until) for each in builder.segments.values()]
        yield from storage.table.batch_write(puts=new)
        for each in builder.segments:
            builder.chunks[each].expires_at = kept_until
    short = {each for each, chunk in builder.chunks.items() if expires_before(chunk.expires_at, kept_until)}
    if short and (yield from extend_segments(storage, partition, short, kept_until)):
        return False
    for each in short:
        builder.chunks[each].expires_at = kept_until
    return True
