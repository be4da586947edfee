"""Commit a composed head: the part of a put that needs the table, but neither a serializer nor a key.

Everything that a head names is written first and the head last: its PutItem is the one commit point. After it, the
thread's epoch is confirmed (see `protocol.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Partition, earlier, expires_before
from langgraph.checkpoint.dynamodb._format.limits import MERGE_ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._operations.item_builder import SegmentRefs, store_segments
from langgraph.checkpoint.dynamodb._operations.renew import extend_ancestors, renew_after_put
from langgraph.checkpoint.dynamodb._operations.threads import (
    confirm_epoch,
    ensure_epoch,
    read_thread,
)
from langgraph.checkpoint.dynamodb._runtime.cache import CachedThread, Lifetime
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError


@dataclass(frozen=True)
class Head:
    """A composed head. Only its epoch, ttl and expiry are missing, which the commit adds."""

    partition: Partition
    item: Item
    refs: SegmentRefs
    """The segments that it names."""
    has_delta_channels: bool
    parent: Lifetime | None
    """The lifetime of the checkpoint that it was composed from."""
    above: Sequence[Partition] = ()
    """The namespaces above, which its run needs too."""


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit."""

    under: CachedThread
    """The thread when the head was stored, with the epoch and ttl that it was stored under."""
    thread: CachedThread | None
    """The thread as it was read afterwards; `None` if nothing can be built on it."""
    lifetime: Lifetime

    @cached_property
    def is_confirmed(self) -> bool:
        """Whether no deletion came between. If so, the checkpoint is whole and stays so until it is deleted."""
        return self.thread is not None and protocol.is_reusable(self.under.epoch, self.thread.epoch)


def commit(
    storage: Storage,
    head: Head,
    thread: CachedThread | None,
    started_at: float,
) -> Op[Committed]:
    """Store the segments that a head names, then the head, and confirm the thread's epoch.

    Args:
        storage: The storage.
        head: The head.
        thread: The thread under whose epoch its reused segments are safe. `None`: it reuses none, and the thread is
            not known.
        started_at: When storing its segments began, in epoch seconds.
    """
    partition = head.partition
    if thread is None:
        thread = yield from ensure_epoch(storage, partition)
    expiry = Expiry.after(thread.ttl_seconds, storage.clock())
    if not (yield from store_segments(storage, partition, head.refs, thread, expiry)):
        return Committed(thread, None, Lifetime(expiry.readable))
    item = items.with_lifetime(head.item, thread.ttl_seconds, expiry)
    history_expires_at = yield from _extend_history(storage, head, item, thread.epoch, expiry)
    lifetime = Lifetime(expiry.readable, history_expires_at)
    if protocol.is_too_late(started_at, storage.clock()):
        return Committed(thread, None, lifetime)
    if not (yield from _put_head(storage, partition, item, thread.epoch)):
        return Committed(thread, None, lifetime)
    committed = Committed(
        thread, (yield from confirm_epoch(storage, partition, thread.epoch, expiry.own)), lifetime
    )
    if committed.thread is not None and committed.is_confirmed:
        storage.cache.remember_segments(partition.pk, thread.epoch, head.refs.stored())
        if expiry.readable is not None:
            checkpoint_id = items.checkpoint_id_of(item)
            yield from renew_after_put(
                storage, partition, checkpoint_id, expiry.readable, committed.thread, head.above
            )
    return committed


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
        if thread is None or not protocol.is_reusable(thread.epoch, epoch):
            return False
        replaced = items.binary(other, items.EPOCH)
    msg = (
        f"{items.name_of(head)} could not be stored: other calls put the same checkpoint {MERGE_ATTEMPTS_MAX} times"
        " meanwhile; let one process run a thread at a time"
    )
    raise ThreadBusyError(msg)


def _extend_history(storage: Storage, head: Head, item: Item, epoch: bytes, expiry: Expiry) -> Op[int | None]:
    """Extend the ancestors that the checkpoint's delta channels are rebuilt from; return when the first one expires."""
    own = items.expires_at(item)
    if head.parent is None or not head.has_delta_channels:
        return own
    ends_at = items.ends_at(item)
    if not expires_before(head.parent.history_expires_at, ends_at):
        return earlier(head.parent.history_expires_at, own)
    oldest = yield from extend_ancestors(storage, head.partition, epoch, item, ends_at, expiry)
    return earlier(oldest, own)
