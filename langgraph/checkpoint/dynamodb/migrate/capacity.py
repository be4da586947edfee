"""A limit on the capacity of a command, so that agents on the same table keep theirs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError


class CapacityLimit:
    """A limit of capacity units per second, on average. Without a rate there is no limit."""

    def __init__(
        self,
        units_per_second: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with nothing spent.

        Args:
            units_per_second: The rate, or None for no limit.
            clock: Returns the time in seconds.

        Raises:
            CheckpointerInputError: The rate is not a number above 0.
        """
        if units_per_second is not None and not 0 < units_per_second < math.inf:
            msg = f"{units_per_second!r} units per second is not a rate; give a number above 0, or None"
            raise CheckpointerInputError(msg)
        self.spent = 0.0
        self._rate = units_per_second
        self._clock = clock
        self._lock = threading.Lock()
        # When everything spent so far is within the rate.
        self._paid_at = 0.0

    def seconds_to_wait(self) -> float:
        """Return how many seconds to wait until everything spent is within the rate.

        Wait before a checkpoint, and not during one: a put that stands still is started again.
        """
        return self.reserve(0.0)

    def reserve(self, units: float) -> float:
        """Count units that a request will consume, if it need not wait; return how many seconds it has to."""
        with self._lock:
            wait = max(0.0, self._paid_at - self._clock())
            if not wait:
                self._spend(units)
        return wait

    def spend(self, units: float) -> None:
        """Count the units that a request consumed."""
        with self._lock:
            self._spend(units)

    def _spend(self, units: float) -> None:
        self.spent += units
        if self._rate is not None:
            self._paid_at = max(self._paid_at, self._clock()) + units / self._rate
