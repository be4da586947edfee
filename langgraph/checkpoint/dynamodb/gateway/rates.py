"""Rates: how many requests each principal makes, by token buckets."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

# Names may come from anybody's tokens, so they are forgotten, those first that asked for nothing for the longest.
_PRINCIPALS_MAX = 10_000


@dataclass
class _Bucket:
    tokens: float
    filled_at: float


class Rates:
    """A token bucket for each principal."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Take how many requests each may make per second, how many at once, and a clock in seconds."""
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> None:
        """Count a request of a principal.

        Raises:
            ProblemError: It is one too many; a 429 that says when the next one may come.
        """
        now = self._clock()
        bucket = self._buckets.setdefault(name, _Bucket(self._burst, now))
        self._buckets.move_to_end(name)
        if len(self._buckets) > _PRINCIPALS_MAX:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        if bucket.tokens < 1:
            msg = f"more than {self._per_second:g} requests per second; wait, as Retry-After says"
            retry_seconds = (1 - bucket.tokens) / self._per_second
            raise ProblemError(429, msg, CheckpointerError, retry_seconds=retry_seconds)
        bucket.tokens -= 1
