"""Attempts: send a request again after a transient error, with growing waits and for a bounded time.

botocore's own retries are off if its configuration is ours: how long they last differs from release to release. Each
of our requests may be sent twice; docs/design.md says why.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from .._format import limits
from .events import running_meter

logger = logging.getLogger(__name__)

_rng = random.SystemRandom()


def backoff_seconds(attempt: int, rng: random.Random) -> float:
    """Return how many seconds to wait before an attempt, jittered. There is no wait before the first, number 0."""
    if attempt == 0:
        return 0.0
    ceiling = min(limits.BACKOFF_SECONDS_MAX, limits.BACKOFF_SECONDS_FIRST * 2.0**attempt)
    return ceiling * (0.5 + rng.random() / 2)


@dataclass
class Attempts:
    """The attempts of one request."""

    retry_seconds: float
    """For how many seconds to start further attempts."""
    is_transient: Callable[[Exception], bool]
    """Tells whether the same request may succeed a moment after an error."""
    remedy: Callable[[Exception], str]
    """Returns what to do about an error that does not pass, for the log."""
    number: int = 0
    """How many attempts have failed."""

    def __post_init__(self) -> None:
        """Start with the first attempt."""
        self._began = time.monotonic()

    def seconds_to_next(self, error: Exception, at_least: float = 0.0) -> float | None:
        """Return how many seconds to wait after a failed attempt, or `None` if it was the last one.

        Args:
            error: The error of the attempt.
            at_least: How long to wait at least. The wait is longer at random, so that not all come back at once.
        """
        self.number += 1
        wait = self._seconds_to_next(error, at_least)
        meter = running_meter.get()
        if meter is not None:
            meter.count_failure(error, wait)
        return wait

    @property
    def spent(self) -> str:
        """How many attempts have failed, and how long they took, for the error."""
        count = "1 attempt" if self.number == 1 else f"{self.number} attempts"
        return f"{count} in {time.monotonic() - self._began:.1f} s"

    def _seconds_to_next(self, error: Exception, at_least: float) -> float | None:
        if not self.is_transient(error):
            return None
        passed = time.monotonic() - self._began
        left = self.retry_seconds - passed
        if left <= 0 or at_least > left:
            return None
        if passed > limits.RETRY_SECONDS_QUIET:
            self._warn(error, left)
        # The last attempt starts when the time is up, and not a wait before that.
        return max(at_least * (1 + _rng.random() / 2), min(backoff_seconds(self.number, _rng), left))

    def _warn(self, error: Exception, seconds_left: float) -> None:
        """Log the error while the request is retried, at a limited rate however many requests fail."""
        global _silent_until
        now = time.monotonic()
        if now < _silent_until:
            return
        _silent_until = now + limits.RETRY_WORDS_SECONDS
        logger.warning("%s. Trying again for %.0f s", self.remedy(error), seconds_left)


_silent_until = 0.0
