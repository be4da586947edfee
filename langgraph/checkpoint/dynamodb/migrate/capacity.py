"""A bound on the write capacity that a migration takes, so that agents on the same table have theirs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError


class Budget:
    """Write units per second, on average over what one checkpoint takes; unlimited where there is no rate."""

    def __init__(
        self,
        units_per_second: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with nothing spent.

        Raises:
            CheckpointerInputError: The rate is no number above 0.
        """
        if units_per_second is not None and not 0 < units_per_second < math.inf:
            msg = f"{units_per_second!r} write units per second is no rate; give a number above 0, or None"
            raise CheckpointerInputError(msg)
        self.spent = 0.0
        self._rate = units_per_second
        self._clock = clock
        self._lock = threading.Lock()
        # When all that was spent so far is paid for.
        self._paid_at = 0.0

    def seconds_to_wait(self) -> float:
        """How long it takes until what was spent is paid for.

        To be waited for before a checkpoint, not in the midst of one: a put that stands still is begun anew.
        """
        with self._lock:
            return max(0.0, self._paid_at - self._clock())

    def spend(self, units: float) -> None:
        """Note what a request has taken."""
        with self._lock:
            self.spent += units
            if self._rate is not None:
                self._paid_at = max(self._paid_at, self._clock()) + units / self._rate
