"""The expiry of items, computed from a ttl. Times are epoch seconds; `None` is never.

A checkpoint's head lives for one ttl. Writes, namespace markers and the thread item live for two, and segments for
three. So an item that names an older segment has to extend it once per ttl, and not each time.
"""

from __future__ import annotations

from dataclasses import dataclass

SEGMENT_LIFETIMES = 3


def expires_before(expires_at: int | None, other: int | None) -> bool:
    """Tell whether one expiry comes before another."""
    return expires_at is not None and (other is None or expires_at < other)


def earlier(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two expiries."""
    return one if expires_before(one, other) else other


def later(one: int | None, other: int | None) -> int | None:
    """Return the later of two expiries."""
    return other if expires_before(one, other) else one


@dataclass(frozen=True)
class Expiry:
    """The expiries of all items that are stored at one moment.

    Compute it before the first request: a process may stand still between two requests, and a head must never outlive
    its segments.
    """

    head: int | None
    item: int | None
    """For writes, namespace markers and the thread item."""
    segment: int | None

    @classmethod
    def after(cls, ttl_seconds: int | None, now: float) -> Expiry:
        """Return the expiries for a ttl that starts at `now`; without a ttl, nothing expires."""
        if ttl_seconds is None:
            return cls(None, None, None)
        start = int(now)
        return cls(start + ttl_seconds, start + 2 * ttl_seconds, start + SEGMENT_LIFETIMES * ttl_seconds)
