"""Rates: how many requests each tenant, and each of its principals, makes, by token buckets.

Limits that leave the rate open get the one that a process of this machine can serve, which is measured.
"""

from __future__ import annotations

import json
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

# A document to encode and decode. Its cost relates to the cost of other Python work much the same on most machines.
_SAMPLE = {"messages": [{"role": "user", "content": "x" * 40, "number": number} for number in range(100)]}
_SAMPLES = 20
# How many samples take as much processor time as one request of an agent's step: 35 times 0.13 ms where a put or a put
# of writes takes 4.5 ms, the requests to the table included.
_SAMPLES_PER_REQUEST = 35
_ROUNDS = 5

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

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Store the rate.

        Args:
            per_second: How many requests a tenant may make per second.
            burst: How many requests a tenant may make at once.
            clock: Returns the time in seconds.
        """
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[tuple[str | None, ...], _Bucket] = OrderedDict()

    def take(self, who: Principal) -> None:
        """Count a request of a principal.

        Raises:
            ProblemError: The principal or its tenant is over its rate; a 429 that says when to come again.
        """
        own = self._bucket((who.tenant, who.name), "principal", PART)
        tenant = self._bucket((who.tenant,), "tenant", 1)
        # A refused request of one principal costs the others of its tenant nothing.
        own.check()
        tenant.check()
        own.tokens -= 1
        tenant.tokens -= 1

    def _bucket(self, key: tuple[str | None, ...], whose: str, part: float) -> _Bucket:
        now, burst = self._clock(), max(1.0, self._burst * part)
        bucket = self._buckets.setdefault(key, _Bucket(whose, self._per_second * part, burst, burst, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        bucket.fill(now)
        return bucket


def rate(limits: Limits) -> tuple[float, int]:
    """Return how many requests a tenant may make per second, and how many at once."""
    per_second = limits.requests_per_second or measured_requests_per_second()
    return per_second, limits.burst_requests or math.ceil(2 * per_second)


def measured_requests_per_second() -> float:
    """Measure the rate for some milliseconds, in processor time, so that other processes do not matter."""
    seconds = min(_sample_seconds() for _ in range(_ROUNDS))
    return max(1.0, round(1 / (seconds * _SAMPLES_PER_REQUEST)))


def _sample_seconds() -> float:
    began = time.thread_time()
    for _ in range(_SAMPLES):
        json.loads(json.dumps(_SAMPLE))
    return max(time.thread_time() - began, 1e-6) / _SAMPLES
