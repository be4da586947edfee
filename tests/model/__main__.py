"""`make model`: explore as much as ten minutes of two cores allow, and print how many states there were."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from multiprocessing import Pool

from tests.model.configurations import BY_EFFECT, PAIRS, SIX, TRIPLES, WAITING
from tests.model.explore import Configuration, Report, explore

PROCESSES = 2
SECONDS = 600.0
# What is left of the time after pairs and triples is for all six.
_SECONDS_OF_SIX = 150.0


def _printed(reports: Iterable[Report]) -> list[Report]:
    found = []
    for report in reports:
        print(report, flush=True)  # noqa: T201 - this is what it is for.
        found.append(report)
    return found


def main() -> int:
    """Explore everything; return 1 where a rule is broken."""
    until = time.monotonic() + SECONDS
    small: Sequence[Configuration] = [*PAIRS, *BY_EFFECT, *WAITING]
    with Pool(PROCESSES, maxtasksperchild=1) as pool:
        reports = _printed(pool.imap(partial(explore, seconds_max=SECONDS / 10), small))
        left = PROCESSES * (until - time.monotonic() - _SECONDS_OF_SIX) / len(TRIPLES)
        reports += _printed(pool.imap(partial(explore, seconds_max=left), TRIPLES))
        left = PROCESSES * (until - time.monotonic()) / len(SIX)
        reports += _printed(pool.imap(partial(explore, seconds_max=left), SIX))
    states, transitions = sum(each.states for each in reports), sum(each.transitions for each in reports)
    exhausted = sum(each.exhausted for each in reports)
    print(  # noqa: T201
        f"{len(reports)} configurations, {exhausted} exhausted: {states:,} states, {transitions:,} transitions"
    )
    return 1 if any(each.violation for each in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
