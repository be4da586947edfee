"""How long calls take."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Times:
    """Measurements of one thing, in seconds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        """The median, in milliseconds."""
        return statistics.median(self.seconds) * 1000

    def measure(self, call: Callable[[], object]) -> None:
        """Add how long a call takes."""
        started = time.perf_counter()
        call()
        self.seconds.append(time.perf_counter() - started)
