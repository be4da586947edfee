"""`thread_lock`: one runner of a thread at a time, by an item of the thread that names who holds it, and until when.

A holder is named by a random token, so that no request of it, however late it arrives, touches the hold of another
one. Times are those of the holder's own clock; whoever takes over waits for longer than clocks may differ:

    holder:  take ─────── until 60 ─── keep ─────── until 80        (stands still)
    other:          take? held           take? held          80 + LOCK_SKEW_SECONDS: take
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
from langgraph.checkpoint.dynamodb._runtime.options import check_seconds
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError, ThreadLockLostError
from langgraph.checkpoint.dynamodb.protocol import Change

_NAMES = {"#holder": items.HOLDER, "#until": items.HELD_UNTIL}
# Nobody has it, or whoever had it has not renewed it.
_IS_FREE = "attribute_not_exists(#holder) OR #until < :dead"


@dataclass(frozen=True)
class Hold:
    """One hold on a thread, before, while and after it is had."""

    root: Partition
    ttl_seconds: float
    token: bytes = field(repr=False)

    @property
    def key(self) -> Item:
        """The key of the item that all holds of the thread share."""
        return items.key(self.root.pk, items.LOCK)


def hold_on(table: Table, thread_id: str, ttl: float, wait: float) -> Hold:
    """A hold on a thread that is not had yet, or `CheckpointerInputError`."""
    check_seconds("ttl", ttl, at_least=LOCK_TTL_SECONDS_MIN)
    check_seconds("wait", wait, at_least=0)
    root = items.partition(checked_id(thread_id, "thread_id"))
    return another(table, Hold(root, ttl, b""))


def another(table: Table, hold: Hold) -> Hold:
    """Another hold on the same thread for as long, with a token of its own."""
    return replace(hold, token=table.rng.randbytes(8))


def take(table: Table, hold: Hold, wait_seconds: float) -> Op[float]:
    """Take hold of a thread, waiting for whoever has it.

    Returns:
        Until when it is held, in seconds of this process's clock.

    Raises:
        ThreadBusyError: It was not free in time.
    """
    try:
        return (yield from _take(table, hold, wait_seconds))
    except (GeneratorExit, ThreadBusyError):
        raise
    except BaseException:
        # A request whose answer was lost may have taken it.
        with suppress(Exception):
            yield from let_go(table, hold)
        raise


def _take(table: Table, hold: Hold, wait_seconds: float) -> Op[float]:
    until, attempt, delay = table.clock() + wait_seconds, 0, 0.0
    while True:
        held_until, other = yield from _try(table, hold, delay)
        if other is None:
            return held_until
        attempt += 1
        delay = min(table.backoff(attempt), until - table.clock())
        if delay <= 0:
            break
    seconds = (items.number(other, items.HELD_UNTIL) or 0) / 1000 + LOCK_SKEW_SECONDS - table.clock()
    msg = (
        f"thread {hold.root.thread_id!r} is held by another runner; it was waited for for {wait_seconds:g} s. Try again"
        f" when that one has ended; should its process have died, in {max(seconds, 0):.0f} s"
    )
    raise ThreadBusyError(msg)


def _try(table: Table, hold: Hold, delay_seconds: float) -> Op[tuple[float, Item | None]]:
    now = table.clock() + delay_seconds
    return (yield from _hold(table, hold, now, _IS_FREE, _dead(now), delay_seconds))


def _dead(now: float) -> Item:
    """The value of `_IS_FREE`: until when a hold may have been had of which nothing is left, by whatever clock."""
    return {":dead": {"N": str(int((now - LOCK_SKEW_SECONDS) * 1000))}}


def keep(table: Table, hold: Hold) -> Op[float]:
    """Hold a thread for another ttl from now on.

    Returns:
        Until when it is held, in seconds of this process's clock.

    Raises:
        ThreadLockLostError: Somebody else has taken it, or it has been let go.
    """
    # A request that arrives late is not to shorten the hold.
    ours = "#holder = :holder AND #until < :until"
    held_until, other = yield from _hold(table, hold, table.clock(), ours, {}, 0.0)
    if other is None:
        return held_until
    msg = (
        f"thread {hold.root.thread_id!r} is not held any more: this process did not keep its hold for"
        f" {hold.ttl_seconds:g} s, and another runner may have gone on with the thread. What was not stored yet is not"
        " to be stored; read the newest checkpoint and begin again from it"
    )
    raise ThreadLockLostError(msg)


def _hold(
    table: Table, hold: Hold, now: float, condition: str, values: Item, delay_seconds: float
) -> Op[tuple[float, Item | None]]:
    """Hold from now on if a condition holds; return until when, and the item that the condition failed on."""
    held_until = int((now + hold.ttl_seconds) * 1000)
    change = Change(
        "SET #holder = :holder, #until = :until, #expiry = :expiry",
        condition,
        {**_NAMES, "#expiry": TTL_ATTRIBUTE},
        {
            **values,
            ":holder": {"B": hold.token},
            ":until": {"N": str(held_until)},
            # Long after anybody may count it as held, whatever clock DynamoDB has.
            ":expiry": {"N": str(held_until // 1000 + LOCK_KEPT_SECONDS)},
        },
    )
    other = yield from table.try_update(hold.key, change, delay_seconds=delay_seconds)
    if other is not None and other.get(items.HOLDER) == {"B": hold.token}:
        # This very request was carried out and its answer lost, or one that was made later came before it.
        return (items.number(other, items.HELD_UNTIL) or 0) / 1000, None
    return held_until / 1000, other


def let_go(table: Table, hold: Hold) -> Op[None]:
    """Let go of a thread, unless somebody else has taken it; an interruption waits for that."""
    try:
        yield from _let_go(table, hold)
    except (GeneratorExit, Exception):
        raise
    except BaseException:
        # The request may not have been sent, and the thread would be held for another ttl.
        with suppress(Exception):
            yield from _let_go(table, hold)
        raise


def _let_go(table: Table, hold: Hold) -> Op[None]:
    values = {":holder": {"B": hold.token}}
    yield from table.try_update(
        hold.key, Change("REMOVE #holder, #until", "#holder = :holder", _NAMES, values)
    )


def remove_free(table: Table, lock: Item) -> Op[None]:
    """Remove what holds have left of a thread, unless it is held."""
    change = Change("", _IS_FREE, _NAMES, _dead(table.clock()))
    yield from table.try_delete(items.key_of(lock), change)
