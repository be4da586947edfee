"""Until when a request is waited for, by the clock of the service: one that arrives later is not to be done."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime

HEADER = "X-Deadline"
# `Date` has whole seconds, and the clocks of a service's processes differ by a little.
_UNSURE_SECONDS = 2.0


class ServiceClock:
    """The service's clock, as far as its answers have told it."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.time) -> None:
        """Take for how long an answer is waited for, in seconds, and this machine's clock."""
        self._timeout = timeout
        self._clock = clock
        self._ahead_seconds: float | None = None

    def headers(self) -> Mapping[str, str]:
        """The deadline of a request that is sent now; none before the first answer."""
        if self._ahead_seconds is None:
            return {}
        waits_seconds = max(self._timeout - _UNSURE_SECONDS, self._timeout / 2)
        return {HEADER: f"{self._clock() + self._ahead_seconds + waits_seconds:.3f}"}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Take the time that an answer tells."""
        with suppress(ValueError, TypeError):
            # In the middle of the second that it names.
            told = parsedate_to_datetime(headers.get("Date", "")).timestamp() + 0.5
            self._ahead_seconds = told - self._clock()
