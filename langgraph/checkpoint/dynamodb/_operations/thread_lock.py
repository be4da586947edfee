"""`thread_lock`: one runner of a thread at a time. An item of the thread names the holder and the end of its hold.

A random token identifies the holder, so that a late request of one holder cannot change the hold of another. Times are
those of the holder's clock. A runner that takes over waits for longer than clocks may differ:

    holder:  acquire ──── until 60 ─── renew ────── until 80        (stands still)
    other:       acquire? held        acquire? held          80 + LOCK_SKEW_SECONDS: acquire
"""

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from .._format import items, limits, schema
from .._format.items import Item, Partition
from .._runtime.attempts import backoff_seconds
from .._runtime.options import check_seconds, check_ttl
from .._runtime.steps import Op
from .._runtime.storage import Storage
from ..errors import ThreadBusyError, ThreadLockLostError
from ..protocol import Change
from .arguments import checked_id

TOKEN_BYTES = 8
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


def hold_on(thread_id: str, ttl: float, wait: float, token: bytes = b"") -> Hold:
    """Return a hold on a thread, not acquired yet; raise `CheckpointerInputError` for bad arguments.

    It has no token before a lock gives it one.
    """
    check_ttl("ttl", ttl, at_least=limits.LOCK_TTL_SECONDS_MIN)
    check_seconds("wait", wait, at_least=0)
    root = items.partition_of(checked_id(thread_id, "thread_id"))
    return Hold(root, ttl, token)


@dataclass(frozen=True)
class Attempt:
    """The outcome of an attempt to acquire a hold."""

    held_until: float | None
    """When the hold ends, in epoch seconds; `None` if another runner has the thread."""
    free_in_seconds: float = 0.0
    """In how many seconds that runner's hold ends by any clock, if it has died."""


class Holder(Protocol):
    """Reaches the holds on threads: in the table, or through a gateway."""

    @property
    def rng(self) -> random.Random:
        """The source of tokens, and of jitter between attempts."""

    def clock(self) -> float:
        """Return the time in epoch seconds, by which holds end."""

    def attempt(self, hold: Hold, delay_seconds: float) -> Op[Attempt]:
        """Try to acquire a hold after a delay."""

    def renew(self, hold: Hold) -> Op[float]:
        """Renew a hold; return when it ends."""

    def release(self, hold: Hold, after: BaseException | None = None) -> Op[None]:
        """Release a hold; `after` is the error that it is cleaned up after, if there was one."""


@dataclass(frozen=True)
class TableHolder:
    """Reaches the holds in the table."""

    storage: Storage

    @property
    def rng(self) -> random.Random:
        """The source of tokens and jitter."""
        return self.storage.rng

    def clock(self) -> float:
        """Return the time in epoch seconds."""
        return self.storage.clock()

    def attempt(self, hold: Hold, delay_seconds: float = 0.0) -> Op[Attempt]:
        """Acquire a hold if nobody else has the thread after a delay."""
        now = self.clock() + delay_seconds
        held_until, other = yield from self._hold(hold, now, _IS_FREE, _dead(now), delay_seconds)
        if other is None:
            return Attempt(held_until)
        dead_at = (items.number(other, items.HELD_UNTIL) or 0) / 1000 + limits.LOCK_SKEW_SECONDS
        return Attempt(None, max(dead_at - self.clock(), 0.0))

    def renew(self, hold: Hold) -> Op[float]:
        """Renew a hold for another ttl from now on.

        Returns:
            When the hold ends, in epoch seconds of this process's clock.

        Raises:
            ThreadLockLostError: Another runner has acquired the thread, or the hold has been released.
        """
        # A request that arrives late must not shorten the hold.
        ours = "#holder = :holder AND #until < :until"
        held_until, other = yield from self._hold(hold, self.clock(), ours, {}, 0.0)
        if other is not None:
            raise lost(hold)
        return held_until

    def release(self, hold: Hold, after: BaseException | None = None) -> Op[None]:
        """Release a thread, unless another runner has acquired it. An interruption waits for the release."""
        table = (self.storage if after is None else self.storage.after(after)).table
        change = Change("REMOVE #holder, #until", "#holder = :holder", _NAMES, {":holder": {"B": hold.token}})
        try:
            yield from table.try_update(hold.key, change)
        except (GeneratorExit, Exception):
            raise
        except BaseException:
            # The request may not have been sent. Without another one the thread would stay held for up to a ttl.
            with suppress(Exception):
                yield from table.try_update(hold.key, change)
            raise

    def _hold(
        self, hold: Hold, now: float, condition: str, values: Item, delay_seconds: float
    ) -> Op[tuple[float, Item | None]]:
        """Hold the thread from now on if a condition is true.

        Returns:
            When the hold ends, and the item that the condition failed on, if it did.
        """
        held_until = int((now + hold.ttl_seconds) * 1000)
        change = Change(
            "SET #holder = :holder, #until = :until, #expiry = :expiry",
            condition,
            {**_NAMES, "#expiry": schema.TTL_ATTRIBUTE},
            {
                **values,
                ":holder": {"B": hold.token},
                ":until": {"N": str(held_until)},
                # Long after the hold is over by any clock, including DynamoDB's.
                ":expiry": {"N": str(held_until // 1000 + limits.LOCK_KEPT_SECONDS)},
            },
        )
        other = yield from self.storage.table.try_update(hold.key, change, delay_seconds=delay_seconds)
        if other is not None and other.get(items.HOLDER) == {"B": hold.token}:
            # This very request took effect and its response was lost, or a later request arrived before it.
            return (items.number(other, items.HELD_UNTIL) or 0) / 1000, None
        return held_until / 1000, other


def _dead(now: float) -> Item:
    """Return the value for `_IS_FREE`: a hold that ended before this time is over by any clock."""
    return {":dead": {"N": str(int((now - limits.LOCK_SKEW_SECONDS) * 1000))}}


def lost(hold: Hold) -> ThreadLockLostError:
    """Return the error of a hold that somebody else has now."""
    return ThreadLockLostError(
        f"thread {hold.root.thread_id!r} is no longer held: this process did not renew its lock for"
        f" {hold.ttl_seconds:g} s, and another runner may have continued the thread. Store nothing more. Read the"
        " newest checkpoint and start again from it"
    )


def acquire(holder: Holder, hold: Hold, wait_seconds: float) -> Op[float]:
    """Acquire a hold on a thread, waiting for the current holder.

    Returns:
        When the hold ends, in epoch seconds of this process's clock.

    Raises:
        ThreadBusyError: The thread was not free in time.
    """
    try:
        return (yield from _acquired(holder, hold, wait_seconds))
    except (GeneratorExit, ThreadBusyError):
        raise
    except BaseException as error:
        # An attempt may have acquired it whose response was lost.
        with suppress(Exception):
            yield from holder.release(hold, error)
        raise


def _acquired(holder: Holder, hold: Hold, wait_seconds: float) -> Op[float]:
    until, number, delay = holder.clock() + wait_seconds, 0, 0.0
    while True:
        outcome = yield from holder.attempt(hold, delay)
        if outcome.held_until is not None:
            return outcome.held_until
        number += 1
        delay = min(backoff_seconds(number, holder.rng), until - holder.clock())
        if delay <= 0:
            break
    raise ThreadBusyError(
        f"thread {hold.root.thread_id!r} is held by another runner, after {wait_seconds:g} s of waiting. Try again when"
        f" that runner has ended. If its process has died, the thread is free in {outcome.free_in_seconds:.0f} s"
    )


def remove_free(storage: Storage, lock: Item) -> Op[None]:
    """Delete the lock item of a thread, if its last holder has released it.

    Whether one has died only runners tell, whose clocks agree. Otherwise the item expires.
    """
    change = Change("", "attribute_not_exists(#holder)", {"#holder": items.HOLDER}, {})
    yield from storage.table.try_delete(items.key_of(lock), change)
