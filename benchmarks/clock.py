"""Times: how long calls take, and what many measurements of one thing come to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Times:
    """Measurements of one thing, in seconds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        """The median, in milliseconds."""
        return statistics.median(self.seconds) * 1000

    @property
    def p99_ms(self) -> float:
        """What one measurement in a hundred exceeds, in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) * 99 // 100] * 1000

    def measure(self, call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> None:
        """Add how long a call takes by a clock."""
        started = clock()
        call()
        self.seconds.append(clock() - started)


def interleaved(
    calls: Sequence[Callable[[], object]], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> list[Times]:
    """Measure calls in turn, so that whatever else the machine does meets all of them alike."""
    times = [Times() for _ in calls]
    for _ in range(repetitions):
        for each, call in zip(times, calls, strict=True):
            each.measure(call, clock)
    return times
