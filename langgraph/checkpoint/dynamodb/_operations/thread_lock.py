"""`thread_lock`: one runner of a thread at a time. An item of the thread names the holder and the end of its hold.

A random token identifies the holder, so that a late request of one holder cannot change the hold of another. Times are
those of the holder's clock. A runner that takes over waits for longer than clocks may differ:

    holder:  acquire ──── until 60 ─── renew ────── until 80        (stands still)
    other:       acquire? held        acquire? held          80 + LOCK_SKEW_SECONDS: acquire
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    LOCK_KEPT_SECONDS,
    LOCK_SKEW_SECONDS,
    LOCK_TTL_SECONDS_MIN,
)
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._runtime.options import check_seconds, check_ttl
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError, ThreadLockLostError
from langgraph.checkpoint.dynamodb.protocol import Change

_NAMES = {"#holder": items.HOLDER, "#until": items.HELD_UNTIL}
# Nobody holds the thread, or the holder has not renewed its hold.
_IS_FREE = "attribute_not_exists(#holder) OR #until < :dead"


@dataclass(frozen=True)
class Hold:
    """One hold on a thread, from before it is acquired until after it is released."""

    root: Partition
    ttl_seconds: float
    token: bytes = field(repr=False)

    @property
    def key(self) -> Item:
        """The key of the lock item, which all holds of the thread share."""
        return items.key(self.root.pk, items.LOCK)


def hold_on(storage: Storage, thread_id: str, ttl: float, wait: float) -> Hold:
    """Return a hold on a thread, not acquired yet; raise `CheckpointerInputError` for bad arguments."""
    check_ttl("ttl", ttl, at_least=LOCK_TTL_SECONDS_MIN)
    check_seconds("wait", wait, at_least=0)
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    return another(storage, Hold(root, ttl, b""))


def another(storage: Storage, hold: Hold) -> Hold:
    """Return another hold on the same thread with the same ttl, and with a token of its own."""
    return replace(hold, token=storage.rng.randbytes(8))


def acquire(storage: Storage, hold: Hold, wait_seconds: float) -> Op[float]:
    """Acquire a hold on a thread, waiting for the current holder.

    Returns:
        When the hold ends, in epoch seconds of this process's clock.

    Raises:
        ThreadBusyError: The thread was not free in time.
    """
    try:
        return (yield from _acquire(storage, hold, wait_seconds))
    except (GeneratorExit, ThreadBusyError):
        raise
    except BaseException as error:
        # A request whose response was lost may have acquired it.
        with suppress(Exception):
            yield from release(storage.after(error), hold)
        raise


def _acquire(storage: Storage, hold: Hold, wait_seconds: float) -> Op[float]:
    until, attempt, delay = storage.clock() + wait_seconds, 0, 0.0
    while True:
        held_until, other = yield from _try(storage, hold, delay)
        if other is None:
            return held_until
        attempt += 1
        delay = min(storage.table.backoff(attempt), until - storage.clock())
        if delay <= 0:
            break
    seconds = (items.number(other, items.HELD_UNTIL) or 0) / 1000 + LOCK_SKEW_SECONDS - storage.clock()
    msg = (
        f"thread {hold.root.thread_id!r} is held by another runner, after {wait_seconds:g} s of waiting. Try again when"
        f" that runner has ended. If its process has died, the thread is free in {max(seconds, 0):.0f} s"
    )
    raise ThreadBusyError(msg)


def _try(storage: Storage, hold: Hold, delay_seconds: float) -> Op[tuple[float, Item | None]]:
    now = storage.clock() + delay_seconds
    return (yield from _hold(storage, hold, now, _IS_FREE, _dead(now), delay_seconds))


def _dead(now: float) -> Item:
    """Return the value for `_IS_FREE`: a hold that ended before this time is over by any clock."""
    return {":dead": {"N": str(int((now - LOCK_SKEW_SECONDS) * 1000))}}


def renew(storage: Storage, hold: Hold) -> Op[float]:
    """Renew a hold for another ttl from now on.

    Returns:
        When the hold ends, in epoch seconds of this process's clock.

    Raises:
        ThreadLockLostError: Another runner has acquired the thread, or the hold has been released.
    """
    # A request that arrives late must not shorten the hold.
    ours = "#holder = :holder AND #until < :until"
    held_until, other = yield from _hold(storage, hold, storage.clock(), ours, {}, 0.0)
    if other is None:
        return held_until
    msg = (
        f"thread {hold.root.thread_id!r} is no longer held: this process did not renew its lock for"
        f" {hold.ttl_seconds:g} s, and another runner may have continued the thread. Store nothing more. Read the"
        " newest checkpoint and start again from it"
    )
    raise ThreadLockLostError(msg)


def _hold(
    storage: Storage, hold: Hold, now: float, condition: str, values: Item, delay_seconds: float
) -> Op[tuple[float, Item | None]]:
    """Hold the thread from now on if a condition is true.

    Returns:
        When the hold ends, and the item that the condition failed on, if it did.
    """
    held_until = int((now + hold.ttl_seconds) * 1000)
    change = Change(
        "SET #holder = :holder, #until = :until, #expiry = :expiry",
        condition,
        {**_NAMES, "#expiry": TTL_ATTRIBUTE},
        {
            **values,
            ":holder": {"B": hold.token},
            ":until": {"N": str(held_until)},
            # Long after the hold is over by any clock, including DynamoDB's.
            ":expiry": {"N": str(held_until // 1000 + LOCK_KEPT_SECONDS)},
        },
    )
    other = yield from storage.table.try_update(hold.key, change, delay_seconds=delay_seconds)
    if other is not None and other.get(items.HOLDER) == {"B": hold.token}:
        # This very request took effect and its response was lost, or a later request arrived before it.
        return (items.number(other, items.HELD_UNTIL) or 0) / 1000, None
    return held_until / 1000, other


def release(storage: Storage, hold: Hold) -> Op[None]:
    """Release a thread, unless another runner has acquired it. An interruption waits for the release."""
    try:
        yield from _release(storage, hold)
    except (GeneratorExit, Exception):
        raise
    except BaseException:
        # The request may not have been sent. Without another one the thread would stay held for up to a ttl.
        with suppress(Exception):
            yield from _release(storage, hold)
        raise


def _release(storage: Storage, hold: Hold) -> Op[None]:
    values = {":holder": {"B": hold.token}}
    yield from storage.table.try_update(
        hold.key, Change("REMOVE #holder, #until", "#holder = :holder", _NAMES, values)
    )


def remove_free(storage: Storage, lock: Item) -> Op[None]:
    """Delete the lock item of a thread, unless somebody holds the lock."""
    change = Change("", _IS_FREE, _NAMES, _dead(storage.clock()))
    yield from storage.table.try_delete(items.key_of(lock), change)
