"""Two to eight actors in random weather: from a fixed seed, and from a fresh one that is printed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from tests.simulation.random_runs import random_run
from tests.simulation.schedule import Choices, shrink

SEED_VARIABLE = "LANGGRAPH_DYNAMODB_SEED"
FIXED_SEED = 4


def fresh_seed() -> int:
    """Return the seed asked for, or one that has not been tried yet."""
    return int(os.environ.get(SEED_VARIABLE, random.SystemRandom().randrange(1 << 32)))


@pytest.mark.parametrize("source", ["fixed", "fresh"])
def test_random_schedules(source: str, schedules: int, tell: Callable[[str], None]) -> None:
    """Run schedules from consecutive seeds; the first that fails is shrunk and told."""
    first = FIXED_SEED if source == "fixed" else fresh_seed()
    tell(f"{schedules} random schedules from {SEED_VARIABLE}={first}")
    for seed in range(first, first + schedules):
        choices = Choices(seed=seed)
        try:
            random_run(choices)
        except AssertionError as violation:
            script = shrink(choices.taken, lambda script: failure_of(script) is not None)
            message = f"{SEED_VARIABLE}={seed}: {violation}\nshrunk to {script}: {failure_of(script)}"
            raise AssertionError(message) from violation


def failure_of(script: list[int]) -> str | None:
    """Return what goes wrong in the run of a script, if anything."""
    try:
        random_run(Choices(script))
    except AssertionError as violation:
        return str(violation)
    return None
