"""Rates: how many requests each tenant, and each of its principals, may make, by token buckets.

A tenant has a rate only if one is configured. Without one, turns and shares keep tenants from each other's way.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.shares import PART

# Names may come from anybody's tokens, so buckets are dropped, the least recently used first.
_BUCKETS_MAX = 10_000


@dataclass
class _Bucket:
    whose: str
    per_second: float
    burst: float
    tokens: float
    filled_at: float

    def fill(self, now: float) -> None:
        self.tokens = min(self.burst, self.tokens + (now - self.filled_at) * self.per_second)
        self.filled_at = now

    def check(self) -> None:
        if self.tokens < 1:
            msg = f"this {self.whose} sends over {self.per_second:g} requests per second; wait as Retry-After says"
            retry_seconds = (1 - self.tokens) / self.per_second
            raise ProblemError(429, msg, CheckpointerError, retry_seconds=retry_seconds)


class Rates:
    """A token bucket for each tenant, and a smaller one for each of its principals."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the configured rate, if there is one, and a clock that returns the time in seconds."""
        self._per_second = limits.requests_per_second
        self._burst = limits.burst_requests or math.ceil(2 * (limits.requests_per_second or 0))
        self._clock = clock
        self._buckets: OrderedDict[tuple[str | None, ...], _Bucket] = OrderedDict()

    def take(self, who: Principal) -> None:
        """Count a request of a principal.

        Raises:
            ProblemError: The principal or its tenant is over its rate; a 429 that says when to come again.
        """
        if self._per_second is None:
            return
        own = self._bucket((who.tenant, who.name), "principal", PART * self._per_second, PART)
        tenant = self._bucket((who.tenant,), "tenant", self._per_second, 1)
        # A refused request of one principal costs the others of its tenant nothing.
        own.check()
        tenant.check()
        own.tokens -= 1
        tenant.tokens -= 1

    def _bucket(self, key: tuple[str | None, ...], whose: str, per_second: float, part: float) -> _Bucket:
        now, burst = self._clock(), max(1.0, self._burst * part)
        bucket = self._buckets.setdefault(key, _Bucket(whose, per_second, burst, burst, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        bucket.fill(now)
        return bucket
