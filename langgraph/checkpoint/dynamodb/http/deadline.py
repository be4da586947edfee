"""The deadline of a request, by the service's clock. The service does not carry out a request that arrives later."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime

HEADER = "X-Deadline"
# `Date` has whole seconds, and the clocks of a service's processes differ by a little.
_UNSURE_SECONDS = 2.0


class ServiceClock:
    """The service's clock, as its responses report it."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.time) -> None:
        """Take the time to wait for a response, in seconds, and this machine's clock."""
        self._timeout = timeout
        self._clock = clock
        self._ahead_seconds: float | None = None

    def headers(self) -> Mapping[str, str]:
        """Return the header with the deadline of a request that is sent now; none before the first response."""
        if self._ahead_seconds is None:
            return {}
        waits_seconds = max(self._timeout - _UNSURE_SECONDS, self._timeout / 2)
        return {HEADER: f"{self._clock() + self._ahead_seconds + waits_seconds:.3f}"}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Set the clock by the headers of a response."""
        with suppress(ValueError, TypeError):
            # The middle of the second that the header names.
            told = parsedate_to_datetime(headers.get("Date", "")).timestamp() + 0.5
            self._ahead_seconds = told - self._clock()
