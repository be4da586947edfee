"""`put`: store a checkpoint.

Everything that a head names is stored first and the head last: its PutItem is the one commit point. A put that dies
before it leaves segments that nothing names; after it, the checkpoint is whole. A head carries the epoch of its thread
under which its segments were known to be safe. The thread item, read after the commit, tells whether a deletion came
between. If so, the put composes and stores the checkpoint again from segments that are safe.

The second half of the module composes: what of the values is the parent's, what is in segments, and the head that names
them. It makes no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, get_checkpoint_metadata

from .. import protocol
from .._format import items
from .._format.codec import Codec, metadata_json, rough_bytes
from .._format.content import Settled, delta_counters, pack_body, pack_typed, settled_rows
from .._format.items import Item, Life, Partition
from .._format.limits import (
    ATTEMPTS_MAX,
    BODY_BYTES_MAX,
    INLINE_STATE_BYTES_MAX,
    MERGE_ATTEMPTS_MAX,
    METADATA_BYTES_MAX,
    SEALED_TAIL_BYTES_MIN,
    SETTLED_BYTES_MIN,
)
from .._format.pricing import item_bytes, write_units
from .._format.schema import RUN_ID
from .._format.segments import StoredValue, bytes_of, inline_bytes, is_index
from .._runtime.cache import PUT, CachedCheckpoint, CachedThread
from .._runtime.steps import Op, work
from .._runtime.storage import Storage
from ..errors import ThreadBusyError
from ..protocol import is_reusable
from .arguments import checkpoint_id_in, config_of, id_of, root_of_run, started_from, target
from .entries import owner_in, with_owner
from .get import read_entry
from .item_builder import ItemBuilder, store_segments
from .reads import NamespaceReader
from .renew import Use, use_thread
from .thread_item import PinnedEpochError, confirm_epoch, find_epoch, is_confirmed, read_thread

# What a checkpoint without a parent is composed from.
_NO_PARENT = CachedCheckpoint(epoch=b"", versions={}, values={}, chunks={}, sources={})


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
class _ComposedHead:
    """A head without its epoch, ttl and expiry, the segments that it names, and how it stores the values."""

    item: Item
    builder: ItemBuilder
    values: Mapping[str, StoredValue]
    sources: Mapping[str, str]
    settled: Settled | None

    @property
    def repeated_units(self) -> int:
        """The write units of what each next head stores again: the head, and segments that hold its own content."""
        reusable = {each for value in self.values.values() for each in value.segments}
        if self.settled is not None:
            reusable.update(self.settled.front.segments)
        own = [
            item
            for each, item in self.builder.segments.items()
            if each not in reusable and not is_index(each)
        ]
        return sum(write_units(item_bytes(each)) for each in (self.item, *own))

    @property
    def units_of_two_steps(self) -> int:
        """The write units of this head and its new segments, and of a next head that changes nothing."""
        stored = (self.item, *self.builder.segments.values())
        return sum(write_units(item_bytes(each)) for each in stored) + self.repeated_units


def put(
    storage: Storage,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    """Store a checkpoint. When this returns, it is whole and stays so until it is deleted."""
    new = snapshot_arguments(storage, config, checkpoint, metadata, new_versions)
    if storage.owner_from is not None:
        owner = owner_in(config, metadata, storage.owner_from)
        storage = with_owner(storage, items.partition_of(new.partition.thread_id), owner)
    return (yield from store(storage, new))


def store(storage: Storage, new: NewCheckpoint) -> Op[RunnableConfig]:
    """Store the checkpoint of a `put` call.

    Raises:
        WantedValuesError: Values that the caller did not give are not the parent's.
        PinnedEpochError: The epoch has ended that the storage is pinned to.
    """
    with storage.cache.working(PUT, new.partition.pk, storage.clock()):
        return (yield from _store(storage, new))


def _store(storage: Storage, new: NewCheckpoint) -> Op[RunnableConfig]:
    partition = new.partition
    thread = storage.cache.thread(partition.root)
    parent = None if new.parent_id is None else storage.cache.checkpoint(partition.pk, new.parent_id)
    if new.parent_id is not None and (parent is None or parent.thread is None):
        # Serialize before the first request: LangGraph may change a value while we wait.
        yield from work(partial(new.dumps_all, storage.codec), rough_bytes(new.values))
        parent, thread = yield from _read_parent(storage, partition, new.parent_id, thread)
    # The segments of a parent are safe under its own epoch.
    if parent is not None and (thread is None or not is_reusable(thread.epoch, parent.epoch)):
        thread = parent.thread
    pinned = storage.pinned
    if pinned is not None and (thread is None or not is_reusable(thread.epoch, pinned.epoch)):
        thread = pinned
        if new.parent_id is not None:
            # Its values may have to be stored again, for which they are needed.
            parent = yield from read_entry(storage, partition, new.parent_id, pinned)
    for _ in range(ATTEMPTS_MAX):
        is_committed, thread = yield from _attempt(storage, new, parent, thread)
        if is_committed:
            return config_of(partition, new.checkpoint_id)
        if pinned is not None and (thread is None or not is_reusable(thread.epoch, pinned.epoch)):
            raise PinnedEpochError
        new, parent = yield from _read_again(storage, new, thread)
    raise ThreadBusyError(
        f"checkpoint {new.checkpoint_id!r} of thread {partition.thread_id!r} could not be stored: the thread was"
        f" deleted or pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )


def _read_parent(
    storage: Storage, partition: Partition, parent_id: str, thread: CachedThread | None
) -> Op[tuple[CachedCheckpoint | None, CachedThread | None]]:
    """Read the parent, or what is newest if it was never stored, and the thread before, if the parent is settled."""
    parent = yield from read_entry(storage, partition, parent_id, thread)
    parent = parent or (yield from _newest_parts(storage, partition, thread))
    if thread is None and parent is not None and parent.thread is None:
        thread = yield from find_epoch(storage, partition)
        return (yield from _read_parent(storage, partition, parent_id, thread))
    return parent, thread


def _newest_parts(
    storage: Storage, partition: Partition, thread: CachedThread | None
) -> Op[CachedCheckpoint | None]:
    """Return the newest checkpoint's segments for reuse. No value is inherited."""
    found = yield from NamespaceReader(storage, partition).page()
    if not found:
        return None
    newest_id = found[0].checkpoint_id
    entry = storage.cache.checkpoint(partition.pk, newest_id)
    if entry is None or entry.thread is None:
        entry = yield from read_entry(storage, partition, newest_id, thread)
    return entry and replace(entry, versions={}, sources={})


def _read_again(
    storage: Storage, new: NewCheckpoint, thread: CachedThread | None
) -> Op[tuple[NewCheckpoint, CachedCheckpoint | None]]:
    """Read the base of the next attempt after a deletion: the parent as it is now, or else the put's own head.

    If the parent was deleted and the stored head was not, only that head may still hold the inherited values. The
    deletion has removed its link to the parent, and the next attempt does not restore it.
    """
    if new.parent_id is None:
        return new, None
    storage.cache.forget((new.partition.pk, new.parent_id))
    parent = yield from read_entry(storage, new.partition, new.parent_id, thread)
    if parent is not None:
        return new, parent
    if not new.delta_channels:
        new = replace(new, parent_id=None)
    return new, (yield from read_entry(storage, new.partition, new.checkpoint_id, thread))


def _attempt(
    storage: Storage, new: NewCheckpoint, parent: CachedCheckpoint | None, thread: CachedThread | None
) -> Op[tuple[bool, CachedThread | None]]:
    """Compose the checkpoint, note the use, and store it: its segments, then its head. Then confirm the thread.

    Args:
        storage: The storage.
        new: The checkpoint.
        parent: What it is composed from.
        thread: The thread, under whose epoch the reused segments are safe; it is read if it is not known.

    Returns:
        Whether the checkpoint is committed: no deletion came between, so it is whole and stays so until it is deleted.
        And the thread as it was read afterwards; `None` if nothing can be built on it.
    """
    partition, started_at = new.partition, storage.clock()
    # A value that cannot be serialized raises here, before anything is stored.
    compose = partial(_composed, storage, new, parent, None if thread is None else thread.epoch)
    head = yield from work(compose, _size(new, parent))
    use = Use(partition, new.parent_id, new.root_id, is_put=True)
    thread = yield from use_thread(storage, use, thread, parent)
    if thread is None:
        return False, None
    started, named = started_from(partition, new.root_id), items.named_ids([head.item])
    if not (yield from store_segments(storage, partition, head.builder, named, thread, started)):
        return False, None
    item = items.with_life(head.item, thread.life)
    if protocol.is_too_late(started_at, storage.clock()):
        return False, None
    if not (yield from put_head(storage, partition, item, thread.epoch)):
        return False, None
    seen = yield from confirm_epoch(storage, partition, thread.epoch)
    if not is_confirmed(storage, thread, seen):
        return False, seen
    storage.cache.remember_segments(partition.pk, thread.epoch, head.builder.stored())
    entry = CachedCheckpoint(
        thread.epoch,
        new.versions,
        head.values,
        head.builder.chunks,
        head.sources,
        thread.life,
        settled=head.settled,
    )
    storage.cache.remember_checkpoint(partition.pk, new.checkpoint_id, entry)
    return True, seen


def _size(new: NewCheckpoint, parent: CachedCheckpoint | None) -> int:
    """Estimate how many bytes have to be serialized or copied."""
    if parent is not None:
        return bytes_of(parent.values.values(), parent.chunks)
    return rough_bytes(new.values)


def put_head(storage: Storage, partition: Partition, head: Item, epoch: bytes) -> Op[bool]:
    """Store a head, or replace another head of the same checkpoint, unless the epoch has ended.

    Once it has ended, the other head may be committed and all that a deletion has kept of the namespace, while this one
    may never be committed.
    """
    item, replaced = {**head, items.EPOCH: {"B": epoch}}, None
    for _ in range(MERGE_ATTEMPTS_MAX):
        other = yield from storage.table.try_put(item, protocol.put_head(replaced))
        if other is None or other == item:
            return True
        replaced = items.binary(other, items.EPOCH)
        if protocol.is_passed_over(other, epoch):
            replaced = protocol.mark_of(epoch, storage.rng.randbytes(protocol.LIFE_BYTES))
            yield from storage.table.try_update(items.key_of(head), protocol.mark_head(other, replaced))
        thread = yield from read_thread(storage, partition)
        if thread is None or not is_reusable(thread.epoch, epoch):
            return False
    raise ThreadBusyError(
        f"{items.name_of(head)} could not be stored: other calls put the same checkpoint {MERGE_ATTEMPTS_MAX} times"
        " meanwhile; let one process run a thread at a time"
    )


# Composing


def snapshot_arguments(
    storage: Storage,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    kept: Iterable[str] = (),
) -> NewCheckpoint:
    """Check and snapshot the arguments of a `put` call. Values are referenced, not serialized yet.

    `kept` names channels whose values are not among those of the checkpoint, but the parent's.
    """
    partition, parent_id = target(config), checkpoint_id_in(config)
    checkpoint_id = id_of(checkpoint)
    key = items.key(partition.pk, items.checkpoint_prefix(checkpoint_id))
    metadata = get_checkpoint_metadata(config, metadata)
    rest = {name: value for name, value in checkpoint.items() if name not in {"id", "channel_values"}}
    return NewCheckpoint(
        partition=partition,
        checkpoint_id=checkpoint_id,
        key=key,
        parent_id=parent_id,
        metadata=_serialized_metadata(storage, metadata),
        rest=storage.codec.dumps(rest, "the checkpoint", "checkpoint"),
        delta_channels=delta_counters(metadata),
        root_id=root_of_run(partition, config, parent_id, metadata.get("parents")),
        run_id=items.indexable_run_id(metadata),
        versions=dict(checkpoint["channel_versions"]),
        new_channels=set(new_versions),
        values=dict(checkpoint["channel_values"]),
        kept=frozenset(kept),
    )


def _composed(
    storage: Storage, new: NewCheckpoint, parent: CachedCheckpoint | None, epoch: bytes | None
) -> _ComposedHead:
    """Compose the head and its segments; reuse the parent's segments if they are safe under the epoch."""
    parent = parent or _NO_PARENT
    base = parent if is_reusable(parent.epoch, epoch) else None
    builder = ItemBuilder(storage, new.partition, new.key, base)
    values, is_small = _store_values(storage.codec, builder, new, parent, base)
    settled = None if is_small else _settled(builder, values, parent, base)
    metadata = _metadata(builder, new)
    sealing = builder.copy()
    beside = _bytes_added_later(storage) if storage.codec.encrypts else None
    inline = _head(builder, new, parent, values, settled, metadata, beside)
    if is_small or inline.repeated_units == 1:
        return inline
    # The next head would carry along what is inline, so it moves to segments if that pays off with one more step.
    moved = {
        name: sealing.seal_inline(value) if _lasts(value, parent.values.get(name)) else value
        for name, value in values.items()
    }
    if settled is not None:
        settled = replace(settled, front=sealing.seal_inline(settled.front))
    sealed = _head(sealing, new, parent, moved, settled, metadata, beside)
    return min(sealed, inline, key=attrgetter("units_of_two_steps"))


def _bytes_added_later(storage: Storage) -> int:
    """Return how many bytes a head gets once it is composed: the epoch, and the thread's life."""
    now = int(storage.clock())
    life = Life(storage.ttl_seconds, now, now) if storage.ttl_seconds else Life()
    return item_bytes(items.with_life({items.EPOCH: {"B": bytes(8)}}, life))


def _lasts(value: StoredValue, before: StoredValue | None) -> bool:
    """Tell whether segments of a value may be reused: not if it was just replaced, and none of its own were."""
    return before is None or not before.segments or not set(before.segments).isdisjoint(value.segments)


def _head(
    builder: ItemBuilder,
    new: NewCheckpoint,
    parent: CachedCheckpoint,
    values: Mapping[str, StoredValue],
    settled: Settled | None,
    metadata: Item,
    beside: int | None,
) -> _ComposedHead:
    """Compose the head, given how it stores the values."""
    sources = _sources(new, parent, values)
    item = items.head_item(
        new.key,
        texts={
            items.PARENT: new.parent_id,
            items.REBUILT_FROM: next(iter(sources.values()), None),
            RUN_ID: new.run_id,
        },
        metadata=metadata,
    )
    body = None
    if settled is not None and settled.front.segments:
        packed = pack_body(*new.rest, values, sources, item, settled)
        body = builder.part_of(items.BODY, packed, BODY_BYTES_MAX, values.values())
    if body is None:
        settled = None
        raw = pack_body(*new.rest, values, sources, item, settled).join({})
        if beside is not None:
            beside += item_bytes(item) + len(items.BODY)
        body = builder.part(items.BODY, raw, BODY_BYTES_MAX, values.values(), beside=beside)
    item[items.BODY] = body.attribute(items.sort_key(item))
    return _ComposedHead(item, builder, values, sources, settled)


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
    size = sum(len(data) for _, data in serialized.values()) + bytes_of(reused.values(), parent.chunks)
    codec.check_size(size, new.key)
    # One request reads a thread with a small state. That of a subgraph is read only when it is resumed.
    inline = size <= INLINE_STATE_BYTES_MAX and not new.partition.namespace
    stored: dict[str, StoredValue] = {}
    for name in names:
        if name in reused:
            stored[name] = builder.inherit(reused[name])
        elif name in serialized:
            stored[name] = builder.value(*serialized[name], parent.values.get(name), inline=inline)
    return stored, inline


def _settled(
    builder: ItemBuilder,
    values: Mapping[str, StoredValue],
    parent: CachedCheckpoint,
    base: CachedCheckpoint | None,
) -> Settled | None:
    """Find the small values that the parent has, too, for the front of the body: each step would write them again.

    What the parent has there stays, and rows of others follow, as long as at least half of all that counts.
    """
    # Larger ones get segments of their own; see `seal_inline`.
    lasting = {
        name: value
        for name, value in values.items()
        if parent.values.get(name) is value
        and not value.segments
        and inline_bytes([value]) < SEALED_TAIL_BYTES_MIN
    }
    before = None if base is None else base.settled
    if before is not None and values.keys() >= before.names:
        current = before.current & lasting.keys()
        if 2 * len(settled_rows({name: lasting[name] for name in current})) >= before.size_bytes:
            more = {name: value for name, value in lasting.items() if name not in current}
            rows = settled_rows(more)
            return Settled(
                builder.extended(before.front, rows),
                before.size_bytes + len(rows),
                before.count + len(more),
                before.names | more.keys(),
                current | more.keys(),
            )
    rows = settled_rows(lasting)
    if len(rows) <= SETTLED_BYTES_MIN:
        return None
    names = frozenset(lasting)
    return Settled(builder.value("", rows, None, inline=False), len(rows), len(lasting), names, names)


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


def _serialized_metadata(storage: Storage, metadata: CheckpointMetadata) -> str | bytes:
    """Return the metadata as readable JSON text, or packed as bytes to be sealed."""
    text = None if storage.codec.encrypts else metadata_json(metadata)
    if text is not None and len(text.encode()) <= METADATA_BYTES_MAX:
        return text
    return pack_typed(*storage.codec.dumps(metadata, "the metadata", "metadata"))


def _metadata(builder: ItemBuilder, new: NewCheckpoint) -> Item:
    if isinstance(new.metadata, str):
        return {items.METADATA: {"S": new.metadata}}
    part = builder.part(items.SEALED_METADATA, new.metadata, METADATA_BYTES_MAX)
    return {items.SEALED_METADATA: part.attribute(items.sort_key(new.key))}
