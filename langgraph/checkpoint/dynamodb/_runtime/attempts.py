"""Attempts: a request that failed for the moment is sent again, after a growing wait and for a bounded time.

botocore's own retries are off where its configuration is ours: how long they last differs from release to release.
Every request of ours may be sent twice: docs/design.md says why.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from langgraph.checkpoint.dynamodb._format.limits import (
    BACKOFF_SECONDS_FIRST,
    BACKOFF_SECONDS_MAX,
    RETRY_SECONDS_QUIET,
    RETRY_WORDS_SECONDS,
)

logger = logging.getLogger(__name__)

_rng = random.SystemRandom()


def backoff_seconds(attempt: int, rng: random.Random) -> float:
    """Seconds to wait before an attempt, jittered; none before the first, which is number 0."""
    if attempt == 0:
        return 0.0
    ceiling = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_FIRST * 2.0**attempt)
    return ceiling * (0.5 + rng.random() / 2)


class Attempts:
    """The attempts of one request."""

    def __init__(
        self,
        retry_seconds: float,
        is_transient: Callable[[Exception], bool],
        remedy: Callable[[Exception], str],
    ) -> None:
        """Begin with the first attempt.

        Args:
            retry_seconds: Within how many seconds others begin.
            is_transient: Whether the same request may succeed a moment after an error.
            remedy: What to do about an error that does not pass, for the log.
        """
        self._retry_seconds = retry_seconds
        self._is_transient = is_transient
        self._remedy = remedy
        self._number = 0
        self._began = time.monotonic()

    def seconds_to_next(self, error: Exception, at_least: float = 0.0) -> float | None:
        """Seconds to wait after an attempt that failed, no fewer than it asks for; None where it was the last one."""
        if not self._is_transient(error):
            return None
        self._number += 1
        wait = max(at_least, backoff_seconds(self._number, _rng))
        passed = time.monotonic() - self._began
        if passed + wait > self._retry_seconds:
            return None
        if passed > RETRY_SECONDS_QUIET:
            self._warn(error, self._retry_seconds - passed)
        return wait

    def _warn(self, error: Exception, seconds_left: float) -> None:
        """Say what is wrong while it is being tried again: once in a while, however many requests it befalls."""
        global _silent_until
        now = time.monotonic()
        if now < _silent_until:
            return
        _silent_until = now + RETRY_WORDS_SECONDS
        logger.warning("%s. Trying again for %.0f s", self._remedy(error), seconds_left)


_silent_until = 0.0
