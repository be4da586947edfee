"""Two calls at once, in every order of their rounds, with a bound on how often they interrupt each other."""

from __future__ import annotations

import os
from functools import partial
from itertools import combinations_with_replacement

import pytest

from tests.simulation.scenarios import CALLS, race
from tests.simulation.schedule import every_schedule

SWITCHES_MAX = int(os.environ.get("LANGGRAPH_DYNAMODB_SWITCHES", "1"))
SCHEDULES_MAX = 200_000

PAIRS = [pair for pair in combinations_with_replacement(CALLS, 2) if pair != ("read", "read")]


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_two_calls_may_interrupt_each_other_anywhere(pair: tuple[str, str]) -> None:
    """Run every schedule of two processes, one of which remembers what it stored."""
    assert every_schedule(partial(race, names=pair, switches_max=SWITCHES_MAX), SCHEDULES_MAX) > SWITCHES_MAX
