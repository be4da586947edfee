"""`put`: store a checkpoint.

1. Take the arguments: what the caller may change later is referenced, copied or serialized.
2. See the parent: what it has already is not stored again.
3. Compose (`compose.py`): from values to segments, and the head that names them.
4. Note the use, and renew the state of the thread if that is due (`renew.py`).
5. Store the segments.
6. Commit the head: its PutItem is the one commit point. A put that dies before it leaves segments that nothing names.
7. Confirm: the thread item tells whether a deletion came between, or a renewal. If so, another attempt begins with the
   parent as it is now.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, get_checkpoint_metadata

from .. import errors, protocol
from .._format import codec, content, items, limits, segments
from .._format.items import Item, Life, Partition, expires_before
from .._runtime.requests import Query
from .._runtime.steps import Op, work
from .._runtime.storage import PUT, CachedCheckpoint, CachedThread, Storage
from . import arguments, entries, get, reads, renew, thread_item
from .compose import ItemBuilder, NewCheckpoint, composed


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
        owner = entries.owner_in(config, metadata, storage.owner_from)
        storage = entries.with_owner(storage, items.partition_of(new.partition.thread_id), owner)
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
    partition, pinned = new.partition, storage.pinned
    parent, thread = yield from _see_parent(storage, new)
    for _ in range(limits.ATTEMPTS_MAX):
        is_committed, thread = yield from _attempt(storage, new, parent, thread)
        if is_committed:
            return arguments.config_of(partition, new.checkpoint_id)
        if pinned is not None and (thread is None or not protocol.is_reusable(thread.epoch, pinned.epoch)):
            raise thread_item.PinnedEpochError
        new, parent = yield from _see_parent_again(storage, new, thread)
    raise errors.ThreadBusyError(
        f"checkpoint {new.checkpoint_id!r} of thread {partition.thread_id!r} could not be stored: the thread was"
        f" deleted or pruned during each of {limits.ATTEMPTS_MAX} attempts; try again when that has ended"
    )


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
    compose = partial(composed, storage, new, parent, None if thread is None else thread.epoch)
    head = yield from work(compose, _size(new, parent))
    use = renew.Use(partition, new.parent_id, new.root_id, new.checkpoint_id)
    thread = yield from renew.use_thread(storage, use, thread, parent)
    if thread is None:
        return False, None
    started, named = arguments.started_from(partition, new.root_id), items.named_ids([head.item])
    if not (yield from store_segments(storage, partition, head.builder, named, thread, started)):
        return False, None
    item = items.with_life(head.item, thread.life)
    if protocol.is_too_late(started_at, storage.clock()):
        return False, None
    if not (yield from put_head(storage, partition, item, thread.epoch, deletes_former_writes=True)):
        return False, None
    seen = yield from thread_item.confirm_epoch(storage, partition, thread.epoch)
    if not thread_item.is_confirmed(storage, thread, seen):
        return False, seen
    storage.cache.remember_segments(partition.pk, thread.epoch, head.builder.stored())
    entry = CachedCheckpoint(
        thread.epoch,
        new.versions,
        head.values,
        head.builder.chunks,
        head.sources,
        thread.life,
        shared=head.shared,
    )
    storage.cache.remember_checkpoint(partition.pk, new.checkpoint_id, entry)
    return True, seen


def _size(new: NewCheckpoint, parent: CachedCheckpoint | None) -> int:
    """Estimate how many bytes have to be serialized or copied."""
    if parent is not None:
        return segments.bytes_of(parent.values.values(), parent.chunks)
    return codec.rough_bytes(new.values)


# 1. Take the arguments


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
    partition, parent_id = arguments.target(config), arguments.checkpoint_id_in(config)
    checkpoint_id = arguments.id_of(checkpoint)
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
        delta_channels=content.delta_counters(metadata),
        root_id=arguments.root_of_run(partition, config, parent_id, metadata.get("parents")),
        run_id=items.indexable_run_id(metadata),
        versions=dict(checkpoint["channel_versions"]),
        new_channels=set(new_versions),
        values=dict(checkpoint["channel_values"]),
        kept=frozenset(kept),
    )


def _serialized_metadata(storage: Storage, metadata: CheckpointMetadata) -> str | bytes:
    """Return the metadata as readable JSON text, or packed as bytes to be sealed."""
    text = None if storage.codec.encrypts else codec.metadata_json(metadata)
    if text is not None and len(text.encode()) <= limits.METADATA_BYTES_MAX:
        return text
    return content.pack_typed(*storage.codec.dumps(metadata, "the metadata", "metadata"))


# 2. See the parent


def _see_parent(
    storage: Storage, new: NewCheckpoint
) -> Op[tuple[CachedCheckpoint | None, CachedThread | None]]:
    """Return what the checkpoint is composed from, and the thread under whose epoch its segments are safe."""
    partition = new.partition
    # Who puts a first checkpoint has found none: what is known of the thread is of another life.
    is_first = new.parent_id is None and not partition.namespace
    thread = None if is_first else storage.cache.thread(partition.root)
    parent = None if new.parent_id is None else storage.cache.checkpoint(partition.pk, new.parent_id)
    if new.parent_id is not None and (parent is None or parent.thread is None):
        # Serialize before the first request: LangGraph may change a value while we wait.
        yield from work(partial(new.dumps_all, storage.codec), codec.rough_bytes(new.values))
        if parent is not None and thread is None:
            # It is settled: its segments are safe under an epoch that is read before it.
            thread = yield from thread_item.find_epoch(storage, partition)
        parent, thread = yield from _read_parent(storage, partition, new.parent_id, thread)
    # The segments of a parent are safe under its own epoch.
    if parent is not None and (thread is None or not protocol.is_reusable(thread.epoch, parent.epoch)):
        thread = parent.thread
    pinned = storage.pinned
    if pinned is not None and (thread is None or not protocol.is_reusable(thread.epoch, pinned.epoch)):
        thread = pinned
        if new.parent_id is not None:
            # Its values may have to be stored again, for which they are needed.
            parent = yield from get.read_entry(storage, partition, new.parent_id, pinned)
    return parent, thread


def _read_parent(
    storage: Storage, partition: Partition, parent_id: str, thread: CachedThread | None
) -> Op[tuple[CachedCheckpoint | None, CachedThread | None]]:
    """Read the parent, or what is newest if it was never stored, and the thread before, if the parent is settled."""
    parent = yield from get.read_entry(storage, partition, parent_id, thread)
    parent = parent or (yield from _newest_parts(storage, partition, thread))
    if thread is None and parent is not None and parent.thread is None:
        thread = yield from thread_item.find_epoch(storage, partition)
        return (yield from _read_parent(storage, partition, parent_id, thread))
    return parent, thread


def _newest_parts(
    storage: Storage, partition: Partition, thread: CachedThread | None
) -> Op[CachedCheckpoint | None]:
    """Return the newest checkpoint's segments for reuse. No value is inherited."""
    found = yield from reads.NamespaceReader(storage, partition).page()
    if not found:
        return None
    newest_id = found[0].checkpoint_id
    entry = storage.cache.checkpoint(partition.pk, newest_id)
    if entry is None or entry.thread is None:
        entry = yield from get.read_entry(storage, partition, newest_id, thread)
    return entry and replace(entry, versions={}, sources={})


def _see_parent_again(
    storage: Storage, new: NewCheckpoint, thread: CachedThread | None
) -> Op[tuple[NewCheckpoint, CachedCheckpoint | None]]:
    """Read the base of the next attempt after a deletion: the parent as it is now, or else the put's own head.

    If the parent was deleted and the stored head was not, only that head may still hold the inherited values. The
    deletion has removed its link to the parent, and the next attempt does not restore it.
    """
    if new.parent_id is None:
        return new, None
    storage.cache.forget((new.partition.pk, new.parent_id))
    parent = yield from get.read_entry(storage, new.partition, new.parent_id, thread)
    if parent is not None:
        return new, parent
    if not new.delta_channels:
        new = replace(new, parent_id=None)
    return new, (yield from get.read_entry(storage, new.partition, new.checkpoint_id, thread))


# 5. Store the segments, and 6. commit the head


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
    yield from thread_item.ensure_registered(storage, partition, thread, started_from)
    if builder.segments:
        now = storage.clock()
        new = [items.with_expiry(items.created(each, now), kept_until) for each in builder.segments.values()]
        yield from storage.table.batch_write(puts=new)
        for each in builder.segments:
            builder.chunks[each].expires_at = kept_until
    short = {each for each, chunk in builder.chunks.items() if expires_before(chunk.expires_at, kept_until)}
    if short and (yield from thread_item.extend_segments(storage, partition, short, kept_until)):
        return False
    for each in short:
        builder.chunks[each].expires_at = kept_until
    return True


def put_head(
    storage: Storage, partition: Partition, head: Item, epoch: bytes, *, deletes_former_writes: bool = False
) -> Op[bool]:
    """Store a head, or replace another head of the same checkpoint, unless the epoch has ended or a renewal came first.

    Once it has ended, the other head may be committed and all that a deletion has kept of the namespace, while this one
    may never be committed. And one that is kept for longer may be the state of the thread, which nothing shortens. The
    writes of a head of a former life can be deleted before it is replaced.
    """
    item = {**head, items.EPOCH: {"B": epoch}}
    replaced: Item | None = None
    for _ in range(limits.MERGE_ATTEMPTS_MAX):
        other = yield from storage.table.try_put(item, protocol.put_head(replaced))
        if other is None or other == item:
            return True
        is_former = not protocol.is_of_one_life(items.binary(other, items.EPOCH), epoch)
        if not is_former and expires_before(items.expires_at(head), items.expires_at(other)):
            return False
        replaced = other
        if protocol.is_passed_over(other, epoch):
            mark = protocol.mark_of(epoch, storage.rng.randbytes(protocol.LIFE_BYTES))
            yield from storage.table.try_update(items.key_of(head), protocol.mark_head(other, mark))
            replaced = {**other, items.EPOCH: {"B": mark}}
        thread = yield from thread_item.read_thread(storage, partition)
        if thread is None or not protocol.is_reusable(thread.epoch, epoch):
            return False
        if deletes_former_writes and is_former:
            yield from _delete_former_writes(storage, other, thread.life)
    raise errors.ThreadBusyError(
        f"{items.name_of(head)} could not be stored: other calls put the same checkpoint"
        f" {limits.MERGE_ATTEMPTS_MAX} times meanwhile; let one process run a thread at a time"
    )


def _delete_former_writes(storage: Storage, head: Item, life: Life) -> Op[None]:
    """Delete the writes of a head of a former life of the thread, which is about to be replaced."""
    query = Query(items.partition_key(head), prefix=items.sort_key(head))
    for each in (yield from storage.table.query_all(query)):
        if not items.is_head(each) and protocol.is_of_former_life(each, life):
            yield from storage.table.try_delete(items.key_of(each), protocol.delete_untouched(each))
