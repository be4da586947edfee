"""Commit a composed head: what needs the table, and neither a serializer nor a key.

What a head names is written first and the head last: its PutItem is the one commit point. Afterwards the thread's epoch
is confirmed (see `protocol.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.expiry import Expiry, earlier, expires_before
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import MERGE_ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.draft import Needs, store_needs
from langgraph.checkpoint.dynamodb._operations.lineage import Lineage
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments, read_segments
from langgraph.checkpoint.dynamodb._operations.threads import (
    confirm_epoch,
    ensure_epoch,
    extend,
    extend_ancestor,
    extend_segments,
    read_thread,
)
from langgraph.checkpoint.dynamodb._runtime.memory import Lifetime, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError


@dataclass(frozen=True)
class Head:
    """A head that is composed: all of it but the epoch, the ttl and the expiry, which come with the commit."""

    at: Partition
    item: Item
    needs: Needs
    """What it names: new segments, and what is known of all."""
    has_delta_channels: bool
    parent: Lifetime | None
    """That of the checkpoint that it was composed from."""


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit."""

    under: ThreadEntry
    """The thread as it was when the head was stored, with the epoch and ttl that it was stored under."""
    thread: ThreadEntry | None
    """The thread as it was seen afterwards; `None` where nothing can be built on it."""
    lifetime: Lifetime

    @property
    def is_confirmed(self) -> bool:
        """Whether no deletion came between: what was stored is whole, and stays so until it is deleted."""
        return self.thread is not None and protocol.is_reusable(self.under.epoch, self.thread.epoch)


def commit(
    table: Table,
    head: Head,
    thread: ThreadEntry | None,
    started_at: float,
    store_writes: Callable[[], Op[Any]] | None = None,
) -> Op[Committed]:
    """Store what a head names, and then the head.

    Args:
        table: The table.
        head: The head.
        thread: The thread under whose epoch its reused segments are safe. `None`: it reuses none, and the thread is
            not known.
        started_at: When its segments began to be stored, in epoch seconds.
        store_writes: Stores what has to be there when the checkpoint is.

    Raises:
        UnlistedExpiryError: See `store_needs`.
    """
    at = head.at
    if thread is None:
        thread = yield from ensure_epoch(table, at)
    expiry = Expiry.after(thread.ttl_seconds, table.clock())
    if not (yield from store_needs(table, at, head.needs, thread, expiry, expiry.head)):
        return Committed(thread, None, Lifetime(expiry.head))
    if store_writes is not None:
        yield from store_writes()
    item = items.with_expiry(head.item, expiry.head)
    if head.has_delta_channels:
        item = items.kept_for_descendants(item, _last_expiry(head.needs, expiry))
    history_expires_at = yield from _extend_history(table, head, item, expiry)
    lifetime = Lifetime(expiry.head, history_expires_at)
    if protocol.is_too_late(started_at, table.clock()):
        return Committed(thread, None, lifetime)
    if not (yield from _put_head(table, at, items.with_ttl(item, thread.ttl_seconds), thread.epoch)):
        return Committed(thread, None, lifetime)
    committed = Committed(thread, (yield from confirm_epoch(table, at, thread.epoch, expiry.head)), lifetime)
    if committed.is_confirmed:
        table.memory.remember_segments(at.pk, thread.epoch, head.needs.stored())
    return committed


def _put_head(table: Table, at: Partition, head: Item, epoch: bytes) -> Op[bool]:
    """Store a head, also in the place of another one of the same checkpoint, unless the epoch has ended.

    What is there may then be committed, and all that a deletion has kept of the namespace; this head may never be.
    """
    replaced = epoch
    for _ in range(MERGE_ATTEMPTS_MAX):
        item = {**head, items.EPOCH: {"B": epoch}}
        other = yield from table.try_put(item, protocol.put_head(replaced))
        if other is None:
            return True
        thread = yield from read_thread(table, at)
        if thread is None or not protocol.is_reusable(thread.epoch, epoch):
            return False
        replaced = items.binary(other, items.EPOCH)
    msg = (
        f"{items.name_of(head)} could not be stored: other calls put the same checkpoint {MERGE_ATTEMPTS_MAX} times"
        " meanwhile. Let one process run a thread at a time."
    )
    raise ThreadBusyError(msg)


def _last_expiry(needs: Needs, expiry: Expiry) -> int | None:
    """Return how long a head can stay in the table without outliving a segment that it names."""
    last = earlier(expiry.item, needs.others_until)
    for chunk in needs.chunks.values():
        if not expires_before(chunk.expires_at, expiry.head):
            last = earlier(last, chunk.expires_at)
    return last


def _extend_history(table: Table, head: Head, item: Item, expiry: Expiry) -> Op[int | None]:
    """Keep what the checkpoint's delta channels are rebuilt from alive; return when the first of it expires."""
    ends_at, own = items.ends_at(item), items.expires_at(item)
    if head.parent is None or not head.has_delta_channels:
        return own
    if not expires_before(head.parent.history_expires_at, ends_at):
        return earlier(head.parent.history_expires_at, own)
    path = yield from _ancestors(table, head.at, head.item)
    members = [each for group in path for each in group.members]
    oldest: int | None = None
    for each in path:
        oldest = earlier(oldest, items.expires_at(each.head))
    if not expires_before(oldest, ends_at):
        return earlier(oldest, own)
    known = Segments()
    yield from read_segments(table, None, head.at.pk, items.named_ids(members), known)
    reached = {items.sort_key(each): reach(items.named_ids([each]), known.contents) for each in members}
    gone = yield from extend_segments(
        table, head.at, {each for ids in reached.values() for each in ids}, expiry.segment
    )
    # What lost a segment meanwhile must not outlive it.
    whole = [each for each in members if gone.isdisjoint(reached[items.sort_key(each)])]
    writes = [each for each in whole if not items.is_head(each)]
    yield from gather([extend(table, items.key_of(each), expiry.item) for each in writes])
    heads = [each for each in whole if items.is_head(each)]
    yield from gather([extend_ancestor(table, each, expiry.item) for each in heads])
    return own


def _ancestors(table: Table, at: Partition, head: Item) -> Op[Sequence[Group]]:
    """Read what a head's delta channels are rebuilt from; nothing where some of it has gone.

    Whoever reads the checkpoint's delta channels is told then; the checkpoint itself can be stored.
    """
    last = items.text(head, items.REBUILT_FROM)
    if last is None:
        return ()
    lineage = Lineage(table, at, below=items.checkpoint_id_of(head))
    path = yield from lineage.back(head, last)
    return path if not last or (path and path[-1].checkpoint_id == last) else ()
