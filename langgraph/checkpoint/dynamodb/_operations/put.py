"""`put`: store a checkpoint.

Everything that a head names is stored first and the head last: its PutItem is the one commit point. A put that dies
before it leaves segments that nothing names; after it, the checkpoint is whole. A head carries the epoch of its thread
under which its segments were known to be safe. The thread item, read after the commit, tells whether a deletion came
between. If so, the put composes and stores the checkpoint again from segments that are safe.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import rough_bytes
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Partition, earlier, expires_before
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX, MERGE_ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.segments import bytes_of
from langgraph.checkpoint.dynamodb._operations.arguments import config_of
from langgraph.checkpoint.dynamodb._operations.compose import NewCheckpoint, composed, snapshot_arguments
from langgraph.checkpoint.dynamodb._operations.entries import owner_in, with_owner
from langgraph.checkpoint.dynamodb._operations.get import read_entry
from langgraph.checkpoint.dynamodb._operations.item_builder import store_segments
from langgraph.checkpoint.dynamodb._operations.reads import NamespaceReader
from langgraph.checkpoint.dynamodb._operations.renew import extend_ancestors, renew_after_put
from langgraph.checkpoint.dynamodb._operations.threads import (
    PinnedEpochError,
    confirm_epoch,
    ensure_epoch,
    read_thread,
)
from langgraph.checkpoint.dynamodb._runtime.cache import PUT, CachedCheckpoint, CachedThread, Lifetime
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import is_reusable


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
        owner = owner_in(config, storage.owner_from)
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
    parent = None if new.parent_id is None else storage.cache.checkpoint(partition.pk, new.parent_id)
    if parent is None and new.parent_id is not None:
        # Serialize before the first request: LangGraph may change a value while we wait.
        yield from work(partial(new.dumps_all, storage.codec), rough_bytes(new.values))
        parent = yield from read_entry(storage, partition, new.parent_id)
        parent = parent or (yield from _newest_parts(storage, partition))
    # The segments of a parent are safe under its own epoch.
    known = None if parent is None else CachedThread(parent.epoch, parent.ttl_seconds)
    thread = known or storage.cache.thread(partition.root)
    pinned = storage.pinned
    if pinned is not None and (thread is None or not is_reusable(thread.epoch, pinned.epoch)):
        thread = pinned
        if new.parent_id is not None:
            # Its values may have to be stored again, for which they are needed.
            parent = yield from read_entry(storage, partition, new.parent_id)
    for _ in range(ATTEMPTS_MAX):
        is_committed, thread = yield from _attempt(storage, new, parent, thread)
        if is_committed:
            return config_of(partition, new.checkpoint_id)
        if pinned is not None:
            raise PinnedEpochError
        new, parent = yield from _read_again(storage, new)
    msg = (
        f"checkpoint {new.checkpoint_id!r} of thread {partition.thread_id!r} could not be stored: the thread was"
        f" deleted or pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
    raise ThreadBusyError(msg)


def _newest_parts(storage: Storage, partition: Partition) -> Op[CachedCheckpoint | None]:
    """Return the newest checkpoint's segments for reuse, if the parent was never stored. No value is inherited."""
    found = yield from NamespaceReader(storage, partition).page()
    if not found:
        return None
    newest_id = found[0].checkpoint_id
    entry = storage.cache.checkpoint(partition.pk, newest_id)
    entry = entry or (yield from read_entry(storage, partition, newest_id))
    return entry and replace(entry, versions={}, sources={})


def _read_again(storage: Storage, new: NewCheckpoint) -> Op[tuple[NewCheckpoint, CachedCheckpoint | None]]:
    """Read the base of the next attempt after a deletion: the parent as it is now, or else the put's own head.

    If the parent was deleted and the stored head was not, only that head may still hold the inherited values. The
    deletion has removed its link to the parent, and the next attempt does not restore it.
    """
    if new.parent_id is None:
        return new, None
    storage.cache.forget((new.partition.pk, new.parent_id))
    parent = yield from read_entry(storage, new.partition, new.parent_id)
    if parent is not None:
        return new, parent
    if not new.delta_channels:
        new = replace(new, parent_id=None)
    return new, (yield from read_entry(storage, new.partition, new.checkpoint_id))


def _attempt(
    storage: Storage, new: NewCheckpoint, parent: CachedCheckpoint | None, thread: CachedThread | None
) -> Op[tuple[bool, CachedThread | None]]:
    """Compose the checkpoint and store it: its segments, then its head. Then confirm the thread's epoch.

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
    if thread is None:
        thread = yield from ensure_epoch(storage, partition)
    expiry = Expiry.after(thread.ttl_seconds, storage.clock())
    if not (yield from store_segments(storage, partition, head.builder, thread, expiry)):
        return False, None
    item = items.with_lifetime(head.item, thread.ttl_seconds, expiry)
    history_expires_at = items.expires_at(item)
    if parent is not None and new.delta_channels:
        oldest = yield from _extend_history(storage, partition, item, parent, thread.epoch, expiry)
        history_expires_at = earlier(oldest, history_expires_at)
    if protocol.is_too_late(started_at, storage.clock()):
        return False, None
    if not (yield from _put_head(storage, partition, item, thread.epoch)):
        return False, None
    seen = yield from confirm_epoch(storage, partition, thread.epoch, expiry.own)
    if seen is None or not is_reusable(thread.epoch, seen.epoch):
        return False, seen
    storage.cache.remember_segments(partition.pk, thread.epoch, head.builder.stored())
    if expiry.readable is not None:
        yield from renew_after_put(storage, partition, new.checkpoint_id, expiry.readable, seen, new.above)
    entry = CachedCheckpoint(
        thread.epoch,
        new.versions,
        head.values,
        head.builder.chunks,
        head.sources,
        thread.ttl_seconds,
        Lifetime(expiry.readable, history_expires_at),
    )
    storage.cache.remember_checkpoint(partition.pk, new.checkpoint_id, entry)
    return True, seen


def _size(new: NewCheckpoint, parent: CachedCheckpoint | None) -> int:
    """Estimate how many bytes have to be serialized or copied."""
    if parent is not None:
        return bytes_of(parent.values.values(), parent.chunks)
    return rough_bytes(new.values)


def _extend_history(
    storage: Storage, partition: Partition, head: Item, parent: CachedCheckpoint, epoch: bytes, expiry: Expiry
) -> Op[int | None]:
    """Extend the ancestors that a head's delta channels are rebuilt from; return when the first one expires."""
    ends_at = items.ends_at(head)
    if not expires_before(parent.lifetime.history_expires_at, ends_at):
        return parent.lifetime.history_expires_at
    return (yield from extend_ancestors(storage, partition, epoch, head, ends_at, expiry))


def _put_head(storage: Storage, partition: Partition, head: Item, epoch: bytes) -> Op[bool]:
    """Store a head, or replace another head of the same checkpoint, unless the epoch has ended.

    Once it has ended, the other head may be committed and all that a deletion has kept of the namespace, while this one
    may never be committed.
    """
    replaced = epoch
    for _ in range(MERGE_ATTEMPTS_MAX):
        item = {**head, items.EPOCH: {"B": epoch}}
        other = yield from storage.table.try_put(item, protocol.put_head(replaced))
        if other is None:
            return True
        thread = yield from read_thread(storage, partition)
        if thread is None or not is_reusable(thread.epoch, epoch):
            return False
        replaced = items.binary(other, items.EPOCH)
    msg = (
        f"{items.name_of(head)} could not be stored: other calls put the same checkpoint {MERGE_ATTEMPTS_MAX} times"
        " meanwhile; let one process run a thread at a time"
    )
    raise ThreadBusyError(msg)
