"""Renewal: what a run needs to go on lives for one ttl from the last use of its thread.

LangGraph puts no checkpoint while a superstep lasts, but only the writes of its tasks; and none in a parent graph while
its subgraph runs. So each acknowledged `put` and `put_writes` renews what it depends on: the checkpoint that writes
belong to, and the newest checkpoint of each namespace above, with their writes, segments and ancestors. That happens
at most once in a tenth of the ttl, so a run whose steps follow each other makes no further request.

An older checkpoint must not outlive a newer one. Two rules see to that:

1. All checkpoints above a renewed one are renewed with it, the newest first.
2. The thread item says first until when something is kept (`kept_until`). A put that reads it after its commit, when it
   confirms, and finds a later time than its own expiry, renews what it has stored. So if a renewal did not see the head
   of a put, the put has seen the renewal.

    put       head ──────────────── confirm: kept until 17:30! ── renewed to 17:30
    renewal          kept_until = 17:30 ── read heads ── extend them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Partition, earlier, expires_before
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX, PAGE_ITEMS_FIRST, PUT_WAIT_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.reads import (
    AncestorReader,
    LoadedSegments,
    StoredCheckpoint,
    segment_items,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    ensure_registered,
    extend,
    extend_segments,
    read_thread,
)
from langgraph.checkpoint.dynamodb._runtime.cache import PUT, RENEWAL, CachedThread
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Wait, gather
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import Thread

_SHARE = 10
"""A renewal is due once this share of the ttl has passed since the last one."""


@dataclass(frozen=True)
class RenewedCheckpoint:
    """A checkpoint that a run needs; without an id, the newest one of its namespace."""

    partition: Partition
    checkpoint_id: str | None = None


def renew_after_put(
    storage: Storage,
    partition: Partition,
    checkpoint_id: str,
    ends_at: int,
    thread: CachedThread,
    above: Iterable[Partition],
) -> Op[None]:
    """Renew what a run needs beside a checkpoint that was just put into a thread with a ttl.

    Args:
        storage: The storage.
        partition: The namespace of the checkpoint.
        checkpoint_id: The checkpoint.
        ends_at: When it expires, in epoch seconds.
        thread: The thread, as it was read after the commit.
        above: The namespaces above.

    Raises:
        ThreadBusyError: Other calls interfered at every attempt.
    """
    storage.cache.remember_end(partition, thread, ends_at)
    due = [each for each in map(RenewedCheckpoint, above) if _may_be_due(storage, thread, each)]
    if ends_at < (thread.kept_until or 0):
        due.append(RenewedCheckpoint(partition, checkpoint_id))
    yield from _renew(storage, partition, due, thread.kept_until or 0)


def renew_after_writes(
    storage: Storage,
    partition: Partition,
    checkpoint_id: str,
    thread: CachedThread,
    above: Iterable[Partition],
) -> Op[None]:
    """Renew the checkpoint that writes belong to, and what else a run needs, if the thread has a ttl."""
    places = [*map(RenewedCheckpoint, above)]
    # A put under way stores the checkpoint, or a newer one, unless it never ends.
    after = storage.clock() - PUT_WAIT_SECONDS_MAX
    if storage.cache.under_way(PUT, partition.pk, after) is None:
        places.append(RenewedCheckpoint(partition, checkpoint_id))
    due = [each for each in places if _may_be_due(storage, thread, each)]
    other = storage.cache.under_way(RENEWAL, partition.root, after) if due else None
    if other is not None:
        # Many tasks may end at once. What one of them has renewed need not be renewed by the others.
        yield (Wait(other, PUT_WAIT_SECONDS_MAX),)
        due = [each for each in due if _may_be_due(storage, thread, each)]
    with storage.cache.working(RENEWAL, partition.root, storage.clock()):
        yield from _renew(storage, partition, due, 0)


def _may_be_due(storage: Storage, thread: CachedThread, place: RenewedCheckpoint) -> bool:
    """Tell whether a renewal may be due, by what this process knows without a request."""
    cache, pk = storage.cache, place.partition.pk
    checkpoint_id = place.checkpoint_id or cache.latest(pk)
    entry = None if checkpoint_id is None else cache.checkpoint(pk, checkpoint_id)
    ends = [] if entry is None else [entry.ends_at]
    if place.checkpoint_id is None or entry is None:
        known = cache.thread(place.partition.root, thread.epoch)
        ends.append(None if known is None else known.ends.get(place.partition.namespace))
    return max((each for each in ends if each is not None), default=0) < _due_before(
        storage, thread.ttl_seconds
    )


def _due_before(storage: Storage, ttl_seconds: int | None) -> float:
    """Return the time, in epoch seconds, before which nothing that a run needs may expire."""
    return storage.clock() + (ttl_seconds or 0) * (1 - 1 / _SHARE)


def _renew(storage: Storage, partition: Partition, due: Sequence[RenewedCheckpoint], least: int) -> Op[None]:
    """Renew those places that expire before `least`, or have lived for a tenth of the ttl."""
    for _ in range(ATTEMPTS_MAX):
        thread = (yield from read_thread(storage, partition)) if due else None
        if thread is None or thread.ttl_seconds is None:
            return
        due = yield from _still_due(
            storage, thread, due, max(least, _due_before(storage, thread.ttl_seconds))
        )
        if not due or (yield from _renew_places(storage, partition, thread, due)):
            return
    raise ThreadBusyError(
        f"the expiry of thread {partition.thread_id!r} could not be extended: other calls deleted from the thread or"
        f" wrote to it during each of {ATTEMPTS_MAX} attempts; retry the call"
    )


def _still_due(
    storage: Storage, thread: Thread, places: Sequence[RenewedCheckpoint], before: float
) -> Op[list[RenewedCheckpoint]]:
    """Return the places that are due by what is stored, and remember when the others expire."""
    due = []
    for place in places:
        ends_at = Expiry.after(thread.ttl_seconds, storage.clock()).readable
        needed = yield from _needed(storage, thread, place)
        for checkpoint in needed or ():
            ends_at = earlier(ends_at, items.ends_at(checkpoint.head))
        if ends_at is not None and ends_at < before:
            due.append(place)
        elif needed is not None:
            storage.cache.remember_end(place.partition, thread, ends_at)
    return due


def _needed(storage: Storage, thread: Thread, place: RenewedCheckpoint) -> Op[list[StoredCheckpoint] | None]:
    """Read a committed checkpoint and those above it, the newest first; none if it is not there, or being copied.

    `None` if it is not there, but newer ones are: nothing of theirs is needed, or known.

    If the place names no checkpoint, it is the newest committed one. Heads above that were never acknowledged are
    renewed with it, since readers take a namespace for expired if its newest head has.
    """
    wanted = place.checkpoint_id
    first = items.CHECKPOINTS if wanted is None else items.checkpoint_prefix(wanted)
    query = Query(
        place.partition.pk,
        between=(first, items.AFTER_CHECKPOINTS),
        descending=True,
        first_page=PAGE_ITEMS_FIRST,
    )
    found, writes = list[StoredCheckpoint](), list[Item]()
    while not query.done:
        for item in (yield from storage.table.query_page(query)):
            if not items.is_head(item):
                writes.append(item)
                continue
            name = items.checkpoint_id_of(item)
            found.append(
                StoredCheckpoint(item, [each for each in writes if items.checkpoint_id_of(each) == name])
            )
            writes = []
            if item.get(items.READABLE_UNTIL) == items.HIDDEN:
                return []
            is_committed = protocol.is_committed(item, items.BODY, thread)
            if name == wanted or (wanted is None and is_committed):
                is_there = is_committed and _is_renewable(item, thread, storage.clock())
                return found if is_there else (None if found[1:] else [])
    return None if found and wanted is not None else []


def _is_renewable(head: Item, thread: Thread, now: float) -> bool:
    """Tell whether a head is still in its second ttl, or in its first.

    It may be in the table longer than that as an ancestor: the checkpoint that is rebuilt from it may be gone.
    """
    ends_at = items.ends_at(head)
    is_past = ends_at is not None and ends_at + (thread.ttl_seconds or 0) <= now
    return not is_past and not items.is_expired(head, now, as_ancestor=True)


def _renew_places(
    storage: Storage, partition: Partition, thread: Thread, places: Sequence[RenewedCheckpoint]
) -> Op[bool]:
    """Renew places; return whether that is done. If it is not, something has changed since it was read."""
    expiry = Expiry.after(thread.ttl_seconds, storage.clock())
    until = max(expiry.readable or 0, thread.kept_until or 0)
    if not (yield from _note(storage, partition, thread, until, expiry)):
        return False
    known = CachedThread(thread.epoch, thread.ttl_seconds)
    for place in places:
        yield from ensure_registered(storage, place.partition, known, expiry)
        needed = yield from _needed(storage, thread, place)
        for checkpoint in needed or ():
            if not (
                yield from _renew_checkpoint(storage, place.partition, thread, checkpoint, until, expiry)
            ):
                return False
            storage.cache.remember_checkpoint_end(place.partition.pk, checkpoint.checkpoint_id, until)
        if needed is not None:
            storage.cache.remember_end(place.partition, thread, until)
    return True


def _note(storage: Storage, partition: Partition, thread: Thread, until: int, expiry: Expiry) -> Op[bool]:
    """Note at the thread until when something is kept, and let the thread item and its entry live as long.

    Returns:
        Whether the thread has this note, and is as it was read.
    """
    expires_at = expiry.shared if expires_before(thread.expires_at, expiry.own) else None
    active = None if thread.last_active is None else storage.clock()
    change = protocol.keep_thread(thread.epoch, until, expires_at, active)
    other = yield from storage.table.try_update(items.thread_key(partition), change)
    if other is None:
        return True
    now = Thread.parse(other) if other else None
    return (
        now is not None
        and protocol.is_reusable(thread.epoch, now.epoch)
        and not expires_before(now.kept_until or 0, until)
        and not expires_before(now.expires_at, expiry.own)
    )


def _renew_checkpoint(
    storage: Storage,
    partition: Partition,
    thread: Thread,
    checkpoint: StoredCheckpoint,
    until: int,
    expiry: Expiry,
) -> Op[bool]:
    """Extend a checkpoint with what it needs; return whether all of it is as it was read."""
    head, now = checkpoint.head, storage.clock()
    if not expires_before(items.ends_at(head), until):
        return True
    if not protocol.is_committed(head, items.BODY, thread):
        # Nobody relies on its segments: readers pass it over once it has lost one.
        return items.is_expired(head, now) or (yield from _extended(storage, head, until, expiry))
    # All that belongs to the head lives as long as the head: a later use may bring it back for readers.
    writes = [
        each
        for each in checkpoint.writes
        if not items.is_expired(each, now) and expires_before(items.expires_at(each), expiry.own)
    ]
    whole = yield from extend_named(storage, partition, thread.epoch, [head, *writes], expiry)
    for each in writes:
        if each in whole and not (yield from _extended(storage, each, until, expiry)):
            return False
    yield from extend_ancestors(storage, partition, thread.epoch, head, expiry.own, expiry)
    return head not in whole or (yield from _extended(storage, head, until, expiry))


def _extended(storage: Storage, item: Item, until: int, expiry: Expiry) -> Op[bool]:
    change = protocol.renew(item, until, expiry.own)
    return (yield from storage.table.try_update(items.key_of(item), change)) is None


def extend_named(
    storage: Storage, partition: Partition, epoch: bytes, members: Sequence[Item], expiry: Expiry
) -> Op[list[Item]]:
    """Extend the segments that heads and writes name, where they would expire first.

    Returns:
        Those of the items that have lost no segment. The others must not outlive what they have lost.
    """
    loaded = LoadedSegments(partition.pk)
    yield from loaded.read_indexes(storage, items.named_ids(members))
    reached = {items.sort_key(each): reach(items.named_ids([each]), loaded.contents) for each in members}
    wanted = {each for ids in reached.values() for each in ids}
    cached = storage.cache.segments(partition.pk, epoch, wanted)
    expiries = {each: segment.chunk.expires_at for each, segment in cached.items()}
    read = yield from segment_items(storage.table, partition.pk, wanted - cached.keys())
    expiries |= {items.segment_id_of(each): items.number(each, TTL_ATTRIBUTE) for each in read}
    short = [each for each, expires_at in expiries.items() if expires_before(expires_at, expiry.own)]
    gone = (wanted - expiries.keys()) | (yield from extend_segments(storage, partition, short, expiry.shared))
    for each in cached.keys() & set(short):
        cached[each].chunk.expires_at = expiry.shared
    return [each for each in members if gone.isdisjoint(reached[items.sort_key(each)])]


def extend_ancestors(
    storage: Storage,
    partition: Partition,
    epoch: bytes,
    head: Item,
    ends_at: int | None,
    expiry: Expiry,
) -> Op[int | None]:
    """Extend the ancestors that a head's delta channels are rebuilt from, if one would expire before the head.

    Returns:
        When the first of them expires, in epoch seconds; `None` for never, or if there are none.
    """
    path = yield from _ancestors(storage, partition, head)
    oldest: int | None = None
    for each in path:
        oldest = earlier(oldest, items.expires_at(each.head))
    if not expires_before(oldest, ends_at):
        return oldest
    members = [each for checkpoint in path for each in checkpoint.members]
    whole = yield from extend_named(storage, partition, epoch, members, expiry)
    writes = [each for each in whole if not items.is_head(each)]
    yield from gather([extend(storage, items.key_of(each), expiry.own) for each in writes])
    heads = [each for each in whole if items.is_head(each)]
    yield from gather([extend(storage, items.key_of(each), expiry.own) for each in heads])
    return expiry.own


def _ancestors(storage: Storage, partition: Partition, head: Item) -> Op[Sequence[StoredCheckpoint]]:
    """Read the ancestors that a head's delta channels are rebuilt from; return none if one of them is missing.

    The checkpoint can still be stored then. Reading its delta channels raises the error.
    """
    last = items.text(head, items.REBUILT_FROM)
    if last is None:
        return ()
    ancestors = AncestorReader(storage, partition, below=items.checkpoint_id_of(head))
    path = yield from ancestors.back(head, last)
    return path if not last or (path and path[-1].checkpoint_id == last) else ()
