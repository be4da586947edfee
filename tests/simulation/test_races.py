"""Two calls at once, in every order of their rounds, with a bound on how often they interrupt each other."""

from __future__ import annotations

import os
from functools import partial
from itertools import combinations_with_replacement

import pytest

from tests.simulation.scenarios import CALLS, prepare
from tests.simulation.schedule import Choices, every_schedule
from tests.simulation.world import World

SWITCHES_MAX = int(os.environ.get("LANGGRAPH_DYNAMODB_SWITCHES", "1"))
SCHEDULES_MAX = 200_000

PAIRS = [pair for pair in combinations_with_replacement(CALLS, 2) if pair != ("read", "read")]


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_two_calls_may_interrupt_each_other_anywhere(pair: tuple[str, str]) -> None:
    """Run every schedule of two processes, one of which remembers what it stored."""

    def run(choices: Choices) -> None:
        world = World(choices, switches_max=SWITCHES_MAX)
        warm = prepare(world)
        try:
            world.together([partial(CALLS[name], world) for name in pair], warm)
            world.check_end()
        except AssertionError as violation:
            message = f"schedule {choices.taken}: {violation}\n" + "\n".join(world.simulator.log)
            raise AssertionError(message) from violation

    assert every_schedule(run, SCHEDULES_MAX) > SWITCHES_MAX
