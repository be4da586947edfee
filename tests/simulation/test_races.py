"""Two calls at once: some orders of their requests, and every order of their rounds with a bound on interruptions."""

import os
from functools import partial
from itertools import combinations_with_replacement

import pytest

from tests.simulation.scenarios import CALLS, prepared, race
from tests.simulation.schedule import Choices, every_schedule
from tests.simulation.simulator import Faults
from tests.support.examples import percent

SWITCHES_MAX = int(os.environ.get("LANGGRAPH_DYNAMODB_SWITCHES", "1"))
SCHEDULES_MAX = 200_000
FEW_SCHEDULES = percent(4)
# Calls that interrupt each other at one in ten moves do so anywhere in their work.
PATIENCE = 0.9

PAIRS = [pair for pair in combinations_with_replacement(CALLS, 2) if pair != ("read", "read")]


every_pair = pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)


@every_pair
def test_two_calls_may_run_at_the_same_time(pair: tuple[str, str]) -> None:
    """Run a few schedules, drawn from fixed seeds, in which a call may be interrupted within a round and often."""
    start = prepared(Faults(patience=PATIENCE))
    for seed in range(FEW_SCHEDULES):
        race(Choices(seed=seed), pair, start)


@pytest.mark.search
@every_pair
def test_two_calls_may_interrupt_each_other_anywhere(pair: tuple[str, str]) -> None:
    """Run every schedule of two processes, one of which remembers what it stored."""
    run = partial(race, names=pair, start=prepared(switches_max=SWITCHES_MAX), ends=set())
    assert every_schedule(run, SCHEDULES_MAX) > SWITCHES_MAX
