"""Composing: from values to items, in one direction, without a request.

A checkpoint is composed from its parent: values that the step left alone are stored as the parent does. The bytes of
the others are serialized, cut into pieces, and these sealed: as new segments, or inline in the head. Of two ways to
store the head, the cheaper one is taken. `ItemBuilder` decides which content becomes new segments, and what is reused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any

from .._format import items, limits, schema, segments
from .._format.codec import Codec, seal_plain
from .._format.content import SharedValues, pack_body, pack_inline, shared_rows
from .._format.items import Item, Life, Part, Partition
from .._format.pricing import WRITE_UNIT_BYTES, item_bytes, write_units
from .._format.segments import Chunk, Inline, Piece, StoredValue
from .._runtime.storage import CachedCheckpoint, CachedSegment, Storage
from ..protocol import LIFE_BYTES, check_rule, first_epoch, is_reusable

# What a checkpoint without a parent is composed from.
_NO_PARENT = CachedCheckpoint(epoch=b"", versions={}, values={}, chunks={}, sources={})


class _TooLargeError(Exception):
    """A head is larger than it may be."""


class WantedValuesError(Exception):
    """The parent does not have values that the caller did not give, because it takes them for the parent's."""

    def __init__(self, names: Sequence[str]) -> None:
        """Take the names of the channels."""
        super().__init__(", ".join(names))
        self.names = names


@dataclass(frozen=True, kw_only=True)
class NewCheckpoint:
    """A snapshot of the arguments of a `put` call, which its caller may change while requests are made."""

    partition: Partition
    checkpoint_id: str
    # The key of the head.
    key: Item
    parent_id: str | None
    # The checkpoint without its values, and without its id, which the key has.
    rest: tuple[str, bytes]
    # As readable JSON text, or packed as bytes to be sealed.
    metadata: str | bytes
    delta_channels: AbstractSet[str]
    # The root checkpoint that the run is at.
    root_id: str | None
    run_id: str | None
    versions: Mapping[str, Any]
    new_channels: AbstractSet[str]
    values: Mapping[str, Any]
    # Other channels that have a value, which the caller did not give: the parent's.
    kept: AbstractSet[str] = frozenset()
    # Values are serialized once for all attempts, and before the first request, since the caller may change them later.
    # Values that the cached parent already holds are skipped: they are needed only if the thread is deleted meanwhile.
    serialized: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    def dumps(self, codec: Codec, channel: str) -> tuple[str, bytes]:
        """Return a channel's value as it was serialized at the first call."""
        if channel not in self.serialized:
            self.serialized[channel] = codec.dumps(self.values[channel], f"channel {channel!r}", channel)
        return self.serialized[channel]

    def dumps_all(self, codec: Codec) -> None:
        """Serialize every value as it is now."""
        for channel in self.values:
            self.dumps(codec, channel)


@dataclass(frozen=True)
class ComposedHead:
    """A head without its epoch, ttl and expiry, the segments that it names, and how it stores the values."""

    item: Item
    builder: ItemBuilder
    values: Mapping[str, StoredValue]
    sources: Mapping[str, str]
    shared: SharedValues | None

    @property
    def repeated_units(self) -> int:
        """The write units of what each next head stores again: the head, and segments that hold its own content."""
        reusable = {each for value in self.values.values() for each in value.segments}
        if self.shared is not None:
            reusable.update(self.shared.front.segments)
        own = [
            item
            for each, item in self.builder.segments.items()
            if each not in reusable and not segments.is_index(each)
        ]
        return sum(write_units(item_bytes(each)) for each in (self.item, *own))

    @property
    def units_of_two_steps(self) -> int:
        """The write units of this head and its new segments, and of a next head that changes nothing."""
        stored = (self.item, *self.builder.segments.values())
        return sum(write_units(item_bytes(each)) for each in stored) + self.repeated_units


def composed(
    storage: Storage, new: NewCheckpoint, parent: CachedCheckpoint | None, epoch: bytes | None
) -> ComposedHead:
    """Compose the head and its segments; reuse the parent's segments if they are safe under the epoch."""
    parent = parent or _NO_PARENT
    base = parent if is_reusable(parent.epoch, epoch) else None
    builder = ItemBuilder(storage, new.partition, new.key, base)
    values, is_small = _store_values(storage.codec, builder, new, parent, base)
    metadata = _metadata(builder, new)
    beside = _bytes_added_later(storage) if storage.codec.encrypts else None
    plain = builder.copy()
    shared = None if is_small else _shared(builder, values, parent, base)
    sealing = builder.copy()
    try:
        inline = _head(builder, new, parent, values, shared, metadata, beside)
    except _TooLargeError:
        # What is behind the shared values is too large for an item, so they are not apart.
        sealing, shared = plain.copy(), None
        inline = _head(plain, new, parent, values, None, metadata, beside)
    if is_small or inline.repeated_units == 1:
        return inline
    # The next head would carry along what is inline, so it moves to segments if that pays off with one more step.
    moved = {
        name: sealing.seal_inline(value) if _lasts(value, parent.values.get(name)) else value
        for name, value in values.items()
    }
    if shared is not None:
        shared = replace(shared, front=sealing.seal_inline(shared.front))
    heads = [inline]
    with suppress(_TooLargeError):
        heads.insert(0, _head(sealing, new, parent, moved, shared, metadata, beside))
    return min(heads, key=attrgetter("units_of_two_steps"))


def _bytes_added_later(storage: Storage) -> int:
    """Return how many bytes a head gets once it is composed: the epoch, and the thread's life."""
    now = int(storage.clock())
    life = Life(storage.ttl_seconds, now, now) if storage.ttl_seconds else Life()
    return item_bytes(items.with_life({items.EPOCH: {"B": first_epoch(bytes(LIFE_BYTES))}}, life))


def _lasts(value: StoredValue, before: StoredValue | None) -> bool:
    """Tell whether segments of a value may be reused: not if it was just replaced, and none of its own were."""
    return before is None or not before.segments or not set(before.segments).isdisjoint(value.segments)


def _head(
    builder: ItemBuilder,
    new: NewCheckpoint,
    parent: CachedCheckpoint,
    values: Mapping[str, StoredValue],
    shared: SharedValues | None,
    metadata: Item,
    beside: int | None,
) -> ComposedHead:
    """Compose the head, given how it stores the values.

    Raises:
        _TooLargeError: What is behind the shared values does not fit into it.
    """
    sources = _sources(new, parent, values)
    item = items.head_item(
        new.key,
        texts={
            items.PARENT: new.parent_id,
            items.REBUILT_FROM: next(iter(sources.values()), None),
            schema.RUN_ID: new.run_id,
        },
        metadata=metadata,
    )
    if shared is not None and not shared.front.segments:
        shared = None
    packed = pack_body(*new.rest, values, sources, item, shared)
    if shared is not None:
        body = builder.part_of(items.BODY, packed, values.values())
        if len(body.sealed) > limits.BODY_BYTES_MAX:
            raise _TooLargeError
    else:
        if beside is not None:
            beside += item_bytes(item) + len(items.BODY)
        body = builder.part(
            items.BODY, packed.join({}), limits.BODY_BYTES_MAX, values.values(), beside=beside
        )
    item[items.BODY] = body.attribute(items.sort_key(item))
    return ComposedHead(item, builder, values, sources, shared)


def _sources(
    new: NewCheckpoint, parent: CachedCheckpoint, values: Mapping[str, StoredValue]
) -> dict[str, str]:
    """Find the ancestor with the stored value of each delta channel that the checkpoint itself does not store.

    The oldest comes first. "" stands for the very first checkpoint, whose id may not be known.
    """
    counted = new.delta_channels - values.keys()
    if new.parent_id is None or not counted:
        return {}
    stored = counted & parent.values.keys() & parent.versions.keys()
    return {
        **dict.fromkeys(sorted(counted - stored - parent.sources.keys()), ""),
        **{name: source for name, source in parent.sources.items() if name in counted - stored},
        **dict.fromkeys(sorted(stored), new.parent_id),
    }


def _store_values(
    codec: Codec,
    builder: ItemBuilder,
    new: NewCheckpoint,
    parent: CachedCheckpoint,
    base: CachedCheckpoint | None,
) -> tuple[dict[str, StoredValue], bool]:
    """Decide how the checkpoint stores each channel's value; tell whether all of them stay in the head."""
    inherited = {name: value for name, value in parent.values.items() if _is_inherited(new, parent, name)}
    reusable = set() if base is None else base.chunks.keys()
    reused = {name: value for name, value in inherited.items() if reusable >= set(value.segments)}
    wanted = new.kept - inherited.keys()
    if wanted:
        raise WantedValuesError(sorted(wanted))
    serialized: dict[str, tuple[str, bytes]] = {}
    names = dict.fromkeys((*new.versions, *new.values, *new.kept))
    for name in names:
        if name in inherited.keys() - reused.keys():
            serialized[name] = (inherited[name].kind, inherited[name].join(parent.contents))
        elif name in new.values.keys() - reused.keys():
            serialized[name] = new.dumps(codec, name)
    size = sum(len(data) for _, data in serialized.values()) + segments.bytes_of(
        reused.values(), parent.chunks
    )
    codec.check_size(size, new.key)
    # One request reads a thread with a small state. That of a subgraph is read only when it is resumed.
    inline = size <= limits.INLINE_STATE_BYTES_MAX and not new.partition.namespace
    stored: dict[str, StoredValue] = {}
    for name in names:
        if name in reused:
            stored[name] = builder.inherit(reused[name])
        elif name in serialized:
            stored[name] = builder.value(*serialized[name], parent.values.get(name), inline=inline)
    return stored, inline


def _shared(
    builder: ItemBuilder,
    values: Mapping[str, StoredValue],
    parent: CachedCheckpoint,
    base: CachedCheckpoint | None,
) -> SharedValues | None:
    """Find the small values that the parent has, too, for the front of the body: each step would write them again.

    What the parent has there stays, and rows of others follow, as long as at least half of all that counts.
    """
    # Larger ones get segments of their own; see `seal_inline`.
    lasting = {
        name: value
        for name, value in values.items()
        if parent.values.get(name) is value
        and not value.segments
        and segments.inline_bytes([value]) < limits.SEALED_TAIL_BYTES_MIN
    }
    before = None if base is None else base.shared
    if before is not None and values.keys() >= before.names:
        current = before.current & lasting.keys()
        if 2 * len(shared_rows({name: lasting[name] for name in current})) >= before.size_bytes:
            more = {name: value for name, value in lasting.items() if name not in current}
            rows = shared_rows(more)
            return SharedValues(
                builder.extended(before.front, rows),
                before.size_bytes + len(rows),
                before.count + len(more),
                before.names | more.keys(),
                current | more.keys(),
            )
    rows = shared_rows(lasting)
    if len(rows) <= limits.SHARED_BYTES_MIN:
        return None
    names = frozenset(lasting)
    return SharedValues(builder.value("", rows, None, inline=False), len(rows), len(lasting), names, names)


def _is_inherited(new: NewCheckpoint, parent: CachedCheckpoint, name: str) -> bool:
    """Tell whether a channel's value is the parent's: the version is the same, and the caller did not pass it as new.

    A checkpoint also inherits a delta channel's snapshot that is not among its own values.
    """
    return (
        name not in new.new_channels
        and name in new.versions
        and name in parent.versions
        and new.versions[name] == parent.versions[name]
    )


def _metadata(builder: ItemBuilder, new: NewCheckpoint) -> Item:
    if isinstance(new.metadata, str):
        return {items.METADATA: {"S": new.metadata}}
    part = builder.part(items.SEALED_METADATA, new.metadata, limits.METADATA_BYTES_MAX)
    return {items.SEALED_METADATA: part.attribute(items.sort_key(new.key))}


# Items and their segments


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
            (segments.is_index(each), chunk.digest): each
            for each, chunk in self._known.items()
            if storage.share_equal_pieces or segments.is_index(each)
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
        if len(data) > limits.SEALED_TAIL_BYTES_MIN:
            chunks = self._chunks_of(() if before is None else (before,))
        pieces, tail = segments.split(data, limits.PREAMBLE_BYTES, chunks)
        return StoredValue(
            kind,
            *self._laid_out(
                data[: limits.PREAMBLE_BYTES], self._packed(pieces), tail, limits.SEGMENT_BYTES_MIN
            ),
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
            room = min(limits.SEGMENT_BYTES_MAX, len(content) * unit // self._sealed_bytes(content))
            joined = b""
            for each in run:
                if joined and len(joined) + len(each.content) > room:
                    packed.append(segments.piece(joined))
                    joined = b""
                joined += each.content
            packed.append(segments.piece(joined))
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
        pieces, tail = segments.split(tail + data, 0, ())
        ids, more = self._laid_out(b"", self._packed(pieces), tail, limits.SEGMENT_BYTES_MIN)
        added = ((end + place, each) for place, each in more)
        return StoredValue(value.kind, (*value.segments, *ids), (*inline, *added))

    def seal_inline(self, value: StoredValue) -> StoredValue:
        """Move long inline bytes of a value to segments: each step would write them again."""
        ids, inline, start = list[bytes](), list[tuple[int, bytes]](), 0
        for place, data in value.inline:
            ids += value.segments[start:place]
            start = place
            # The start of a value stays, since it changes with its length.
            kept = data[: limits.PREAMBLE_BYTES] if place == 0 else b""
            if len(data) - len(kept) < limits.SEALED_TAIL_BYTES_MIN:
                inline.append((len(ids), data))
                continue
            if kept:
                inline.append((0, kept))
            sealed, rest = self._whole_units(data[len(kept) :])
            ids.append(self._piece(segments.piece(sealed)))
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
            pieces, tail = segments.split(raw, 0, self._chunks_of(before))
        beside = None if beside is None else beside + part_bytes(named)
        reused = sum(len(each.content) for each in pieces if (False, each.digest) in self._ids)
        if 2 * reused < len(raw) <= limits.RAW_BYTES_MAX:
            sealed = self._storage.codec.seal(raw, self._key, name, ((), refs), beside=beside)
            if len(sealed) <= bytes_max:
                return Part((), named, sealed)
        if 2 * reused < len(raw):
            pieces, tail = segments.split(raw, 0, ())
            pieces = self._packed(pieces)
            if tail:
                pieces.append(segments.piece(tail))
            own, inline = tuple(map(self._piece, pieces)), Inline()
        else:
            own, inline = self._laid_out(b"", pieces, tail, len(raw) + 1)
            between = self._between(name, own, inline, refs)
            # That takes at most one unit more, and so does each segment.
            if len(raw) - reused <= limits.NEW_BYTES_INLINE_MAX and len(between) <= WRITE_UNIT_BYTES:
                return Part(self._folded(own), named, between)
            own, inline = self._laid_out(b"", self._packed(pieces), tail, limits.SEGMENT_BYTES_MIN)
        return Part(self._folded(own), named, self._between(name, own, inline, refs))

    def part_of(self, name: str, content: StoredValue, values: Collection[StoredValue]) -> Part:
        """Seal content into its item, some of which is in segments already, and refers to those of values."""
        refs, named = self._named(values)
        between = self._between(name, content.segments, content.inline, refs)
        return Part(self._folded(content.segments), named, between)

    def _named(self, values: Collection[StoredValue]) -> tuple[list[bytes], tuple[bytes, ...]]:
        """Return the ids of the segments of values, and the list of them that an item names."""
        refs = [each for value in values for each in value.segments]
        folded = [each for value in values if value.segments for each in self._folded(value.segments)]
        return refs, segments.fold(folded, limits.HEAD_IDS_MAX, self._index)

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
        return segments.fold(ids, limits.INDEX_GROUP, self._index)

    def _index(self, content: bytes) -> bytes:
        return self._segment(segments.piece(content), index=True)

    def _piece(self, content: Piece) -> bytes:
        return self._segment(content, index=False)

    def _segment(self, content: Piece, *, index: bool) -> bytes:
        known = (index, content.digest)
        segment_id = self._ids.get(known)
        if segment_id is None:
            segment_id = segments.new_id(self._storage.rng, index=index)
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
    if segments.is_index(segment_id):
        return seal_plain(content, sk)
    return codec.seal(content, items.key(partition.pk, sk), items.DATA, beside=-room)
