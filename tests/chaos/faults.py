"""What goes wrong with which request: decided by a seed and the request's number, and by nothing else.

Real concurrency is not repeatable, but the stream of faults is.
"""

import random
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class Fault(str, Enum):
    """What can happen to a request."""

    THROTTLED = "throttled"
    FAILED = "answered 500"
    FAILED_AFTER = "answered 500 after it took effect"
    DROPPED = "connection dropped"
    DROPPED_AFTER = "connection dropped after it took effect"
    SLOW = "delayed"
    UNPROCESSED = "batch left partly unprocessed"


# Shares of all requests. Only batches can be left unprocessed, so that share is higher.
RATES: Mapping[Fault, float] = MappingProxyType(
    {
        Fault.THROTTLED: 0.02,
        Fault.FAILED: 0.01,
        Fault.FAILED_AFTER: 0.01,
        Fault.DROPPED: 0.015,
        Fault.DROPPED_AFTER: 0.015,
        Fault.SLOW: 0.03,
        Fault.UNPROCESSED: 0.2,
    }
)
# In a storm most requests go wrong, for long enough that retries run out and errors reach the callers.
STORM_REQUESTS = 150
STORM_RATE = 0.1
STORM_FACTOR = 10.0
OUTRIGHT = frozenset(Fault) - {Fault.SLOW, Fault.UNPROCESSED}


class Faults:
    """The faults of one run."""

    def __init__(self, seed: str, rates: Mapping[Fault, float] = RATES) -> None:
        """Take the seed, and the share of the requests that each fault befalls."""
        self._seed = seed
        self._rates = rates

    def of(self, number: int) -> tuple[Fault | None, random.Random]:
        """Return what happens to a request, and a generator for the details."""
        rng = random.Random(f"{self._seed}/{number}")
        storm = random.Random(f"{self._seed}/storm/{number // STORM_REQUESTS}").random() < STORM_RATE
        roll = rng.random()
        for fault, rate in self._rates.items():
            roll -= rate * STORM_FACTOR if storm and fault in OUTRIGHT else rate
            if roll < 0:
                return fault, rng
        return None, rng
