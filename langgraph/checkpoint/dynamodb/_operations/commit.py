"""Storing a head that is composed: what needs the table, and neither a serializer nor a key.

What a head names is written first and the head last: its PutItem is the one commit point. A head carries the epoch of
its thread under which what it reuses was known to be safe, and a look at the thread item after the commit tells whether
a deletion came between; then the head does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    MERGE_ATTEMPTS_MAX,
    SEGMENT_LIFETIMES,
    UPLOAD_SECONDS_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.draft import Needs, store_needs
from langgraph.checkpoint.dynamodb._operations.lineage import Lineage
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments, read_segments
from langgraph.checkpoint.dynamodb._operations.threads import (
    lives_shorter,
    look_at_thread,
    renew,
    renew_ancestor,
    renew_segments,
    take_epoch,
)
from langgraph.checkpoint.dynamodb._runtime.memory import Lifetime, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table, in_the_way
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError


@dataclass(frozen=True)
class Head:
    """A head that is ready to be committed."""

    at: Partition
    # Without its epoch.
    item: Item
    # What it names: new segments, and what is known of all.
    needs: Needs
    has_delta_channels: bool
    # That of the checkpoint of which it is made; None where that was not stored.
    parent: Lifetime | None
    # The table with the ttl that it is to have.
    lasts: Table

    @classmethod
    def expiring(
        cls,
        table: Table,
        at: Partition,
        item: Item,
        needs: Needs,
        *,
        has_delta_channels: bool,
        parent: Lifetime | None,
    ) -> Head:
        """A head that was made now, with its expiry. What it names was given its own just before."""
        item = items.with_expiry(item, table.expires_at())
        if has_delta_channels:
            item = items.kept_for_descendants(item, _last_expiry(table, needs))
        return cls(at, item, needs, has_delta_channels, parent, table)


@dataclass(frozen=True)
class Committed:
    """What came of a commit."""

    # What it was stored under, and the thread as it was seen afterwards; None where nothing can count.
    epoch: bytes
    thread: ThreadEntry | None
    lifetime: Lifetime

    @property
    def counts(self) -> bool:
        """Whether no deletion came between: what was stored is whole, and stays so until it is deleted."""
        return self.thread is not None and self.thread.epoch == self.epoch


def commit(
    table: Table,
    head: Head,
    epoch: bytes | None,
    started_at: float,
    store_writes: Callable[[], Op[Any]] | None = None,
) -> Op[Committed]:
    """Store what a head names, and then the head.

    Args:
        table: The table, with the ttl that the thread is to have.
        head: The head.
        epoch: The epoch under which what is reused is safe; None for the thread's, where nothing is.
        started_at: When its segments began to be stored, in epoch seconds.
        store_writes: Stores what is to be there when the checkpoint is.
    """
    at, lasts = head.at, head.lasts
    if epoch is None:
        epoch = (yield from take_epoch(table, at)).epoch
    ends_at = items.ends_at(head.item)
    if not (yield from store_needs(lasts, at, head.needs, epoch, ends_at)):
        return Committed(epoch, None, Lifetime(ends_at))
    if store_writes is not None:
        yield from store_writes()
    lifetime = Lifetime(ends_at, (yield from _renew_history(lasts, head)))
    if table.clock() - started_at > UPLOAD_SECONDS_MAX:
        # What was uploaded may count as orphaned by now.
        return Committed(epoch, None, lifetime)
    yield from _put_head(table, {**head.item, items.EPOCH: {"B": epoch}})
    seen = yield from look_at_thread(table, at, epoch)
    committed = Committed(epoch, seen, lifetime)
    if committed.counts:
        table.memory.remember_segments(at.pk, epoch, head.needs.stored())
    return committed


def _put_head(table: Table, head: Item) -> Op[None]:
    """Store a head; one of another epoch that is there is replaced only if it is still that one.

    Otherwise a request that a client had given up, and that arrives late, could take the place of what was stored
    since, and its segments may be gone.
    """
    epoch = head[items.EPOCH]
    for _ in range(MERGE_ATTEMPTS_MAX):
        other = yield from in_the_way(
            table.send(
                "put_item",
                Item=head,
                ConditionExpression="attribute_not_exists(#epoch) OR #epoch = :epoch",
                ExpressionAttributeNames={"#epoch": items.EPOCH},
                ExpressionAttributeValues={":epoch": epoch},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        )
        if other is None:
            return
        epoch = other[items.EPOCH]
    msg = (
        f"{items.name_of(head)} could not be stored: other calls put the same checkpoint {MERGE_ATTEMPTS_MAX} times"
        " meanwhile; let one process run a thread at a time"
    )
    raise ThreadBusyError(msg)


def _last_expiry(table: Table, needs: Needs) -> int | None:
    """How long a head can stay in the table without outliving a segment of its; those that end sooner are renewed."""
    last, ends_at = _earlier(table.expires_at(2), needs.others_until), table.expires_at()
    for chunk in needs.chunks.values():
        if not lives_shorter(chunk.expires_at, ends_at):
            last = _earlier(last, chunk.expires_at)
    return last


def _renew_history(table: Table, head: Head) -> Op[int | None]:
    """Keep what the checkpoint's delta channels are rebuilt from alive; return when the first of it expires."""
    ends_at, own = items.ends_at(head.item), items.number(head.item, TTL_ATTRIBUTE)
    if head.parent is None or not head.has_delta_channels:
        return own
    if not lives_shorter(head.parent.history_expires_at, ends_at):
        return _earlier(head.parent.history_expires_at, own)
    path = yield from _ancestors(table, head.at, head.item)
    members = [each for group in path for each in group.members]
    oldest: int | None = None
    for each in path:
        oldest = _earlier(oldest, items.number(each.head, TTL_ATTRIBUTE))
    if not lives_shorter(oldest, ends_at):
        return _earlier(oldest, own)
    known = Segments()
    yield from read_segments(table, None, head.at.pk, items.named_ids(members), known)
    reached = {items.sort_key(each): reach(items.named_ids([each]), known.contents) for each in members}
    expires_at, segments_end_at = table.expires_at(2), table.expires_at(SEGMENT_LIFETIMES)
    gone = yield from renew_segments(
        table, head.at, {each for ids in reached.values() for each in ids}, segments_end_at
    )
    # What lost a segment meanwhile is not to outlive it.
    whole = [each for each in members if gone.isdisjoint(reached[items.sort_key(each)])]
    writes = [each for each in whole if not items.is_head(each)]
    yield from gather(
        [renew(table, items.key(head.at.pk, items.sort_key(each)), expires_at) for each in writes]
    )
    heads = [each for each in whole if items.is_head(each)]
    yield from gather([renew_ancestor(table, each, expires_at) for each in heads])
    return own


def _ancestors(table: Table, at: Partition, head: Item) -> Op[Sequence[Group]]:
    """What a head's delta channels are rebuilt from; nothing where some of it has gone.

    Whoever reads the checkpoint's delta channels is told then; the checkpoint itself can be stored.
    """
    last = items.text(head, items.REBUILT_FROM)
    if last is None:
        return ()
    lineage = Lineage(table, at, below=items.checkpoint_id_of(head))
    path = yield from lineage.back(head, last)
    return path if not last or (path and path[-1].checkpoint_id == last) else ()


def _earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two expiries; None is never."""
    return one if lives_shorter(one, other) else other
