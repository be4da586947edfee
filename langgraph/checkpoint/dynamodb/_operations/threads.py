"""Thread-level state: the epoch, a deletion's claim, and the namespace markers.

These operations send the changes of `protocol.py`, which says what they mean and why they are safe.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.expiry import Expiry, expires_before
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BACKOFF_SECONDS_TOTAL,
    CLAIM_SECONDS,
    ORPHAN_SECONDS,
)
from langgraph.checkpoint.dynamodb._runtime.memory import ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table, none_if_condition_failed
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import Thread

logger = logging.getLogger("langgraph.checkpoint.dynamodb")


def thread_key(at: Partition) -> Item:
    """Return the key of the thread item of a namespace's thread."""
    return items.key(at.root, items.THREAD)


def read_thread(table: Table, at: Partition) -> Op[Thread | None]:
    """Read the thread item of a namespace's thread, strongly consistent."""
    item = yield from table.get(at.root, items.THREAD)
    return None if item is None else Thread.parse(item)


# The epoch


def ensure_epoch(table: Table, at: Partition) -> Op[ThreadEntry]:
    """Return the thread's epoch and ttl, so that something can be built on them.

    A thread without an epoch gets one, and this saver's ttl. A pending epoch begins.

    Raises:
        ThreadBusyError: The thread was deleted over and over.
    """
    ttl_seconds = table.ttl_seconds
    for _ in range(ATTEMPTS_MAX):
        # A new one each time: what was stored under an epoch that ended must not be confirmed by it again.
        epoch, now = table.rng.randbytes(8), table.clock()
        expires_at = Expiry.after(ttl_seconds, now).item
        create = protocol.create_thread(epoch, ttl_seconds, expires_at, now)
        item = yield from table.try_update(thread_key(at), create)
        if item is None:
            return table.memory.remember_thread(at.root, epoch, ttl_seconds)
        thread = Thread.parse(item)
        if not thread.is_pending:
            return _cached(table, at, thread)
        begin = protocol.begin_epoch(thread.epoch, ttl_seconds)
        request = table.update(thread_key(at), begin, ReturnValues="ALL_NEW")
        response = yield from none_if_condition_failed(request)
        if response is not None:
            return _cached(table, at, Thread.parse(response["Attributes"]))
    msg = f"Thread {at.thread_id!r} was deleted {ATTEMPTS_MAX} times while something was stored in it. Retry the call."
    raise ThreadBusyError(msg)


def find_epoch(table: Table, at: Partition) -> Op[ThreadEntry]:
    """Return what `ensure_epoch` does; for writes, whose thread is there mostly.

    A read costs a fifth of the conditional write that would create it.
    """
    thread = yield from read_thread(table, at)
    if thread is None or thread.is_pending:
        return (yield from ensure_epoch(table, at))
    return _cached(table, at, thread)


def confirm_epoch(table: Table, at: Partition, epoch: bytes, ends_at: int | None) -> Op[ThreadEntry | None]:
    """Read the thread after something was stored under an epoch: if the result has that epoch, it is acknowledged.

    Args:
        table: The table.
        at: A namespace of the thread.
        epoch: The epoch under which it was stored.
        ends_at: When it expires, in epoch seconds. The thread item is made to live longer.

    Returns:
        The thread now; `None` where nothing can be built on it.
    """
    thread = yield from read_thread(table, at)
    if thread is not None and thread.confirms(epoch) and expires_before(thread.expires_at, ends_at):
        expires_at = Expiry.after(thread.ttl_seconds, table.clock()).item
        item = yield from table.try_update(thread_key(at), protocol.extend_thread(epoch, expires_at))
        if item is not None:
            # Somebody else has extended it, or the epoch has ended since it was read.
            thread = Thread.parse(item) if item else None
    if thread is None or thread.is_pending:
        return None
    return _cached(table, at, thread)


def _cached(table: Table, at: Partition, thread: Thread) -> ThreadEntry:
    """Remember a thread; say once in the log that its ttl is not this saver's."""
    memory = table.memory
    if thread.ttl_seconds != table.ttl_seconds and not memory.facts.has_told_of_ttl:
        memory.facts.has_told_of_ttl = True
        logger.warning(
            "Thread %r was created with ttl_seconds=%s and keeps it; this saver has ttl_seconds=%s. Change it with"
            " `langgraph-dynamodb set-ttl`. This is logged once.",
            at.thread_id,
            thread.ttl_seconds,
            table.ttl_seconds,
        )
    return memory.remember_thread(at.root, thread.epoch, thread.ttl_seconds)


# A deletion's claim


@dataclass(frozen=True)
class Claim:
    """A deletion's claim on a thread, and the thread as it was when it was claimed."""

    root: Partition
    token: bytes
    thread: Thread
    claimed_at: float
    """In epoch seconds."""


def acquire_claim(table: Table, root: Partition, token: bytes) -> Op[Claim]:
    """Keep other deletions out of the thread, waiting for one that is under way.

    Raises:
        ThreadBusyError: Another deletion did not end in time.
    """
    waited, attempt = 0.0, 0
    while waited <= BACKOFF_SECONDS_TOTAL:
        delay = table.backoff(attempt)
        waited += delay
        attempt += 1
        claimed_at = table.clock()
        thread = yield from _try_claim(table, root, token, delay)
        if thread is not None:
            return Claim(root, token, thread, claimed_at)
    msg = (
        f"Thread {root.thread_id!r} is being deleted or pruned by another call, for over"
        f" {BACKOFF_SECONDS_TOTAL:.0f} s. Retry later; a call that died releases it after {CLAIM_SECONDS} s."
    )
    raise ThreadBusyError(msg)


def _try_claim(table: Table, root: Partition, token: bytes, delay_seconds: float) -> Op[Thread | None]:
    """Claim the thread item and return it; `None` where another deletion has it, or where it is created first."""
    now = table.clock()
    claim = protocol.claim_thread(token, now)
    request = table.update(thread_key(root), claim, ReturnValues="ALL_NEW", delay_seconds=delay_seconds)
    response = yield from none_if_condition_failed(request)
    if response is None:
        if (yield from table.get(root.pk, items.THREAD)) is None:
            create = protocol.create_pending_thread(table.rng.randbytes(8), now)
            yield from table.try_update(thread_key(root), create)
        return None
    thread = Thread.parse(response["Attributes"])
    if expires_before(thread.expires_at, int(now) + ORPHAN_SECONDS):
        # DynamoDB would remove it while the deletion runs, and the claim with it.
        extend = protocol.extend_claimed_thread(token, now + ORPHAN_SECONDS)
        item = yield from table.try_update(thread_key(root), extend)
        if item is not None and (not item or Thread.parse(item).claim != token):
            return None
    return thread


def check_claim(table: Table, claim: Claim) -> Op[None]:
    """Make sure that no other deletion has ended an epoch since the thread was claimed.

    Otherwise what the claim takes for committed may not be. While the claim cannot have run out by anybody's clock,
    nothing is asked.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    if table.clock() - claim.claimed_at <= CLAIM_SECONDS / 2:
        return
    thread = yield from read_thread(table, claim.root)
    if thread is None or thread.claim != claim.token:
        msg = (
            f"Deleting from thread {claim.root.thread_id!r} took longer than its claim of {CLAIM_SECONDS} s, and"
            " another deletion took over before anything was deleted. Retry the call."
        )
        raise ThreadBusyError(msg)


def end_epoch(table: Table, claim: Claim) -> Op[Thread]:
    """End the thread's epoch and extend the claim; return the thread with its new, pending epoch.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    new, now = table.rng.randbytes(8), table.clock()
    change = protocol.end_epoch(claim.token, claim.thread.epoch, new, now)
    item = yield from table.try_update(thread_key(claim.root), change)
    if item is None:
        return claim.thread.ended(new)
    thread = Thread.parse(item) if item else None
    if thread is None or not thread.was_ended(claim.token, claim.thread.epoch):
        raise _claim_lost(claim.root)
    # The request took effect, its answer was lost, and it was sent again.
    return thread


def finalize(table: Table, claim: Claim, thread: Thread, *, is_empty: bool) -> Op[None]:
    """Let the new epoch alone tell what is committed, before any segment goes.

    Raises:
        ThreadBusyError: Another deletion has taken over.
    """
    stays_pending = is_empty or not thread.has_ttl
    change = protocol.finalize(claim.token, thread.epoch, stays_pending=stays_pending)
    if (yield from table.try_update(thread_key(claim.root), change)) is not None:
        raise _claim_lost(claim.root)


def _claim_lost(root: Partition) -> ThreadBusyError:
    msg = (
        f"Deleting from thread {root.thread_id!r} took longer than its claim of {CLAIM_SECONDS} s, and another"
        " deletion took over. The checkpoints are deleted; what only they needed goes with the next prune or"
        " deletion of the thread."
    )
    return ThreadBusyError(msg)


def release(table: Table, root: Partition, token: bytes, *, is_empty: bool) -> Op[None]:
    """Release the claim; with nothing left, remove the thread item, unless a put has begun its epoch."""
    if is_empty and (yield from table.try_delete(thread_key(root), protocol.remove_thread(token))) is None:
        return
    yield from table.try_update(thread_key(root), protocol.release_thread(token))


# Namespaces


def namespace_markers(table: Table, at: Partition) -> Op[list[Item]]:
    """Read the markers of a thread's namespaces. The root needs none."""
    return (yield from table.query_all(Query(at.root, prefix=items.NAMESPACES)))


def namespaces(table: Table, at: Partition) -> Op[list[Partition]]:
    """Read which namespaces a thread has, the root first."""
    markers = yield from namespace_markers(table, at)
    return [items.partition(at.thread_id), *(marked_namespace(at, each) for each in markers)]


def marked_namespace(at: Partition, marker: Item) -> Partition:
    """Return the namespace that a marker stands for."""
    return items.partition(at.thread_id, items.namespace_of(marker))


def ensure_registered(table: Table, at: Partition, thread: ThreadEntry, expiry: Expiry) -> Op[None]:
    """Register a namespace, unless this process has done so under the thread's epoch.

    This comes before anything else is stored in it: a deletion finds a namespace only through its marker.
    """
    if not at.namespace:
        return
    known = table.memory.namespaces(at.root, thread.epoch)
    if expires_before(known.get(at.namespace, 0), expiry.head):
        expires_at = yield from register_namespace(table, at, expiry.item)
        table.memory.remember_namespace(at.root, thread, at.namespace, expires_at)


def register_namespace(table: Table, at: Partition, expires_at: int | None) -> Op[int | None]:
    """Create or refresh a namespace's marker and return its expiry. Never shortens an existing expiry.

    Raises:
        ThreadBusyError: Other processes kept refreshing it.
    """
    for _ in range(ATTEMPTS_MAX):
        marker = items.namespace_item(at, table.rng, expires_at)
        other = yield from table.try_put(marker, protocol.register(expires_at))
        if other is None:
            return expires_at
        # It lives longer, so this one does, too.
        expires_at = items.expires_at(other)
    msg = (
        f"Namespace {at.namespace!r} of thread {at.thread_id!r} is being registered by other processes"
        f" ({ATTEMPTS_MAX} attempts). Retry the call."
    )
    raise ThreadBusyError(msg)


def unregister_namespace(table: Table, marker: Item) -> Op[None]:
    """Delete a namespace's marker, unless somebody has registered the namespace again."""
    yield from table.try_delete(items.key_of(marker), protocol.unregister(marker))


# Expiry


def extend(table: Table, at: Item, expires_at: int | None) -> Op[bool]:
    """Let an item live longer; return whether it is there."""
    other = yield from table.try_update(at, protocol.extend(expires_at))
    return other is None or bool(other)


def extend_segments(
    table: Table, at: Partition, ids: Iterable[bytes], expires_at: int | None
) -> Op[set[bytes]]:
    """Let segments live longer; return those that have gone."""
    wanted = sorted(ids)
    keys = [items.key(at.pk, items.segment_sk(each)) for each in wanted]
    extended = yield from gather([extend(table, key, expires_at) for key in keys])
    return {each for each, is_there in zip(wanted, extended, strict=True) if not is_there}


def extend_ancestor(table: Table, head: Item, expires_at: int | None) -> Op[None]:
    """Keep a head that a later one is rebuilt from in the table for longer, but readable no longer."""
    yield from table.try_update(items.key_of(head), protocol.extend_ancestor(expires_at))
