"""`put`: compose a checkpoint and store it.

Segments are written first and the head last: its PutItem is the one commit point. A put that dies before it leaves
segments that nothing names; after it, the checkpoint is whole. A head carries the epoch of its thread under which its
segments were known to be safe. The thread item, read after the commit, tells whether a deletion came between. If so,
the put composes and stores the checkpoint again from segments that are safe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_metadata,
)

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, metadata_json, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import (
    delta_counters,
    pack_body,
    pack_typed,
    started_from,
)
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BODY_BYTES_MAX,
    INLINE_STATE_BYTES_MAX,
    METADATA_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes, write_units
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID
from langgraph.checkpoint.dynamodb._format.segments import StoredValue, bytes_of, is_index
from langgraph.checkpoint.dynamodb._operations.arguments import (
    checkpoint_id_in,
    config_of,
    id_of,
    namespaces_above,
    target,
)
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head, commit
from langgraph.checkpoint.dynamodb._operations.entries import with_entry
from langgraph.checkpoint.dynamodb._operations.get import read_entry
from langgraph.checkpoint.dynamodb._operations.item_builder import ItemBuilder
from langgraph.checkpoint.dynamodb._operations.reads import NamespaceReader
from langgraph.checkpoint.dynamodb._operations.threads import PinnedEpochError
from langgraph.checkpoint.dynamodb._runtime.cache import PUT, CachedCheckpoint, CachedThread
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import is_reusable


class WantedValuesError(Exception):
    """The parent does not have values that the caller did not give, because it takes them for the parent's."""

    def __init__(self, names: Sequence[str]) -> None:
        """Take the names of the channels."""
        super().__init__(", ".join(names))
        self.names = names


@dataclass(frozen=True)
class Request:
    """A snapshot of the arguments of a `put` call, which its caller may change while requests are made."""

    partition: Partition
    above: Sequence[Partition]
    checkpoint_id: str
    # The key of the head.
    key: Item
    parent_id: str | None
    # The checkpoint without its values, and without its id, which the key has.
    rest: tuple[str, bytes]
    # As readable JSON text, or packed as bytes to be sealed.
    metadata: str | bytes
    delta_channels: AbstractSet[str]
    started_from: str | None
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
class _Composed:
    """A head that is ready to be committed, and how it stores the values."""

    head: Head
    values: Mapping[str, StoredValue]
    sources: Mapping[str, str]

    @property
    def repeated_units(self) -> int:
        """The write units of what each next head stores again: the head, and segments that hold its own content."""
        reusable = {each for value in self.values.values() for each in value.segments}
        own = [
            item
            for each, item in self.head.refs.segments.items()
            if each not in reusable and not is_index(each)
        ]
        return sum(write_units(item_bytes(each)) for each in (self.head.item, *own))

    @property
    def units_of_two_steps(self) -> int:
        """The write units of this head and its new segments, and of a next head that changes nothing."""
        stored = (self.head.item, *self.head.refs.segments.values())
        return sum(write_units(item_bytes(each)) for each in stored) + self.repeated_units

    def entry(self, request: Request, committed: Committed) -> CachedCheckpoint:
        """Return the cache entry of the checkpoint, for when it is committed."""
        return CachedCheckpoint(
            committed.under.epoch,
            request.versions,
            self.values,
            self.head.refs.chunks,
            self.sources,
            committed.under.ttl_seconds,
            committed.lifetime,
        )


def put(
    storage: Storage,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
) -> Op[RunnableConfig]:
    """Store a checkpoint. When this returns, it is whole and stays so until it is deleted."""
    request = snapshot_arguments(storage, config, checkpoint, metadata, new_versions)
    return (yield from store(with_entry(storage, config), request))


def snapshot_arguments(
    storage: Storage,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    kept: Iterable[str] = (),
) -> Request:
    """Check and snapshot the arguments of a `put` call. Values are referenced, not serialized yet.

    `kept` names channels whose values are not among those of the checkpoint, but the parent's.
    """
    partition, parent_id = target(config), checkpoint_id_in(config)
    checkpoint_id = id_of(checkpoint)
    key = items.key(partition.pk, items.checkpoint_prefix(checkpoint_id))
    metadata = get_checkpoint_metadata(config, metadata)
    rest = {name: value for name, value in checkpoint.items() if name not in {"id", "channel_values"}}
    return Request(
        partition,
        namespaces_above(partition, config),
        checkpoint_id,
        key,
        parent_id,
        storage.codec.dumps(rest, "the checkpoint", "checkpoint"),
        _serialized_metadata(storage, metadata),
        delta_counters(metadata),
        started_from(partition, metadata),
        items.indexable_run_id(metadata),
        dict(checkpoint["channel_versions"]),
        set(new_versions),
        dict(checkpoint["channel_values"]),
        frozenset(kept),
    )


def store(storage: Storage, request: Request) -> Op[RunnableConfig]:
    """Store the checkpoint of a `put` call.

    Raises:
        WantedValuesError: Values that the caller did not give are not the parent's.
        PinnedEpochError: The epoch has ended that the storage is pinned to.
    """
    with storage.cache.working(PUT, request.partition.pk, storage.clock()):
        return (yield from _store(storage, request))


def _store(storage: Storage, request: Request) -> Op[RunnableConfig]:
    partition, checkpoint_id = request.partition, request.checkpoint_id
    parent = None
    if request.parent_id is not None:
        parent = storage.cache.checkpoint(partition.pk, request.parent_id)
    if parent is None and request.parent_id is not None:
        # Serialize before the first request: LangGraph may change a value while we wait.
        yield from work(partial(request.dumps_all, storage.codec), rough_bytes(request.values))
        parent = yield from read_entry(storage, partition, request.parent_id)
        parent = parent or (yield from _newest_parts(storage, partition))
    # The segments of a parent are safe under its own epoch.
    known = None if parent is None else CachedThread(parent.epoch, parent.ttl_seconds)
    thread = known or storage.cache.thread(partition.root)
    if storage.pinned is not None and not _is_under(thread, storage.pinned):
        thread = storage.pinned
        if request.parent_id is not None:
            # Its values may have to be stored again, for which they are needed.
            parent = yield from read_entry(storage, partition, request.parent_id)
    for _ in range(ATTEMPTS_MAX):
        committed = yield from _attempt(storage, request, parent, thread)
        if committed.is_confirmed:
            return config_of(partition, checkpoint_id)
        if storage.pinned is not None:
            raise PinnedEpochError
        thread = committed.thread
        request, parent = yield from _read_again(storage, request)
    msg = (
        f"checkpoint {checkpoint_id!r} of thread {partition.thread_id!r} could not be stored: the thread was deleted or"
        f" pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
    raise ThreadBusyError(msg)


def _is_under(thread: CachedThread | None, pinned: CachedThread) -> bool:
    return thread is not None and is_reusable(thread.epoch, pinned.epoch)


def _newest_parts(storage: Storage, partition: Partition) -> Op[CachedCheckpoint | None]:
    """Return the newest checkpoint's segments for reuse, if the parent was never stored. No value is inherited."""
    found = yield from NamespaceReader(storage, partition).page()
    if not found:
        return None
    newest_id = found[0].checkpoint_id
    entry = storage.cache.checkpoint(partition.pk, newest_id)
    entry = entry or (yield from read_entry(storage, partition, newest_id))
    return entry and replace(entry, versions={}, sources={})


def _read_again(storage: Storage, request: Request) -> Op[tuple[Request, CachedCheckpoint | None]]:
    """Read the base of the next attempt after a deletion: the parent as it is now, or else the put's own head.

    If the parent was deleted and the stored head was not, only that head may still hold the inherited values. The
    deletion has removed its link to the parent, and the next attempt does not restore it.
    """
    if request.parent_id is None:
        return request, None
    storage.cache.forget((request.partition.pk, request.parent_id))
    parent = yield from read_entry(storage, request.partition, request.parent_id)
    if parent is not None:
        return request, parent
    if not request.delta_channels:
        request = replace(request, parent_id=None)
    return request, (yield from read_entry(storage, request.partition, request.checkpoint_id))


def _attempt(
    storage: Storage, request: Request, parent: CachedCheckpoint | None, thread: CachedThread | None
) -> Op[Committed]:
    """Compose the checkpoint and store it under the thread's epoch, which is read first if it is not known."""
    started_at = storage.clock()
    epoch = None if thread is None else thread.epoch
    # A value that cannot be serialized raises here, before anything is stored.
    compose = partial(_compose, storage, request, parent, epoch)
    composed = yield from work(compose, _size(request, parent))
    committed = yield from commit(storage, composed.head, thread, started_at)
    if committed.is_confirmed:
        entry = composed.entry(request, committed)
        storage.cache.remember_checkpoint(request.partition.pk, request.checkpoint_id, entry)
    return committed


def _size(request: Request, parent: CachedCheckpoint | None) -> int:
    """Estimate how many bytes have to be serialized or copied."""
    if parent is not None:
        return bytes_of(parent.values.values(), parent.chunks)
    return rough_bytes(request.values)


def _compose(
    storage: Storage, request: Request, parent: CachedCheckpoint | None, epoch: bytes | None
) -> _Composed:
    """Compose the head and its segments; reuse the parent's segments if they are safe under the epoch."""
    base = parent if parent is not None and is_reusable(parent.epoch, epoch) else None
    builder = ItemBuilder(storage, request.partition, request.key, base)
    values, is_small = _store_values(
        storage.codec, builder, request, parent, {} if base is None else base.chunks
    )
    metadata = _metadata(builder, request)
    sealing = builder.copy()
    composed = _head(builder, request, parent, values, metadata)
    if is_small or composed.repeated_units == 1:
        return composed
    # The next head would carry along what is inline, so it moves to segments if that pays off with one more step.
    before = {} if parent is None else parent.values
    moved = {
        name: sealing.seal_inline(value) if _lasts(value, before.get(name)) else value
        for name, value in values.items()
    }
    sealed = _head(sealing, request, parent, moved, metadata)
    return min(sealed, composed, key=attrgetter("units_of_two_steps"))


def _lasts(value: StoredValue, before: StoredValue | None) -> bool:
    """Tell whether segments of a value may be reused: not if it was just replaced, and none of its own were."""
    return before is None or not before.segments or not set(before.segments).isdisjoint(value.segments)


def _head(
    builder: ItemBuilder,
    request: Request,
    parent: CachedCheckpoint | None,
    values: Mapping[str, StoredValue],
    metadata: Item,
) -> _Composed:
    """Compose the head, given how it stores the values."""
    sources = _sources(request, parent, values)
    packed = pack_body(*request.rest, values, metadata, sources)
    body = builder.part(items.BODY, packed, BODY_BYTES_MAX, values.values())
    item = items.head_item(
        request.key,
        texts={
            items.PARENT: request.parent_id,
            items.STARTED_FROM: request.started_from,
            items.REBUILT_FROM: next(iter(sources.values()), None),
            RUN_ID: request.run_id,
        },
        metadata=metadata,
        body=body,
    )
    parent_lifetime = None if parent is None else parent.lifetime
    head = Head(
        request.partition, item, builder, bool(request.delta_channels), parent_lifetime, request.above
    )
    return _Composed(head, values, sources)


def _sources(
    request: Request, parent: CachedCheckpoint | None, values: Mapping[str, StoredValue]
) -> dict[str, str]:
    """Find the ancestor with the stored value of each delta channel that the checkpoint itself does not store.

    The oldest comes first. "" stands for the very first checkpoint, whose id may not be known.
    """
    counted = request.delta_channels - values.keys()
    if request.parent_id is None or not counted:
        return {}
    older: Mapping[str, str] = {} if parent is None else parent.sources
    stored = set() if parent is None else counted & parent.values.keys() & parent.versions.keys()
    return {
        **dict.fromkeys(sorted(counted - stored - older.keys()), ""),
        **{name: source for name, source in older.items() if name in counted - stored},
        **dict.fromkeys(sorted(stored), request.parent_id),
    }


def _store_values(
    codec: Codec,
    builder: ItemBuilder,
    request: Request,
    parent: CachedCheckpoint | None,
    reusable: Collection[bytes],
) -> tuple[dict[str, StoredValue], bool]:
    """Decide how the checkpoint stores each channel's value; tell whether all of them stay in the head."""
    inherited = _inherited(request, parent)
    reused = {
        name: each for name, each in inherited.items() if all(map(reusable.__contains__, each.segments))
    }
    wanted = request.kept - inherited.keys()
    if wanted:
        raise WantedValuesError(sorted(wanted))
    serialized: dict[str, tuple[str, bytes]] = {}
    names = dict.fromkeys((*request.versions, *request.values, *request.kept))
    for name in names:
        if parent is not None and name in inherited.keys() - reused.keys():
            serialized[name] = (inherited[name].kind, inherited[name].join(parent.contents))
        elif name in request.values.keys() - reused.keys():
            serialized[name] = request.dumps(codec, name)
    size = sum(len(data) for _, data in serialized.values())
    if parent is not None:
        size += bytes_of(reused.values(), parent.chunks)
    codec.check_size(size, request.key)
    # One request reads a thread with a small state. That of a subgraph is read only when it is resumed.
    inline = size <= INLINE_STATE_BYTES_MAX and not request.partition.namespace
    stored: dict[str, StoredValue] = {}
    for name in names:
        if name in reused:
            stored[name] = builder.inherit(reused[name])
        elif name in serialized:
            before = None if parent is None else parent.values.get(name)
            stored[name] = builder.value(*serialized[name], before, inline=inline)
    return stored, inline


def _inherited(request: Request, parent: CachedCheckpoint | None) -> dict[str, StoredValue]:
    """Return the values that the checkpoint inherits from its parent, by channel."""
    if parent is None:
        return {}
    return {name: value for name, value in parent.values.items() if _is_inherited(request, parent, name)}


def _is_inherited(request: Request, parent: CachedCheckpoint, name: str) -> bool:
    """Tell whether a channel's value is the parent's: the version is the same, and the caller did not pass it as new.

    A checkpoint also inherits a delta channel's snapshot that is not among its own values.
    """
    return (
        name not in request.new_channels
        and name in request.versions
        and name in parent.versions
        and request.versions[name] == parent.versions[name]
    )


def _serialized_metadata(storage: Storage, metadata: CheckpointMetadata) -> str | bytes:
    """Return the metadata as readable JSON text, or packed as bytes to be sealed."""
    text = None if storage.codec.encrypts else metadata_json(metadata)
    if text is not None and len(text.encode()) <= METADATA_BYTES_MAX:
        return text
    return pack_typed(*storage.codec.dumps(metadata, "the metadata", "metadata"))


def _metadata(builder: ItemBuilder, request: Request) -> Item:
    if isinstance(request.metadata, str):
        return {items.METADATA: {"S": request.metadata}}
    part = builder.part(items.SEALED_METADATA, request.metadata, METADATA_BYTES_MAX)
    return {items.SEALED_METADATA: part.attribute(items.sort_key(request.key))}
