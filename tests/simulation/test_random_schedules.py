"""Two to eight actors under random faults: from a fixed seed, and from a fresh one that is printed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.random_runs import random_run
from tests.simulation.schedule import Choices, shrink
from tests.support.seeds import VARIABLE, fresh_seed

FIXED_SEED = 4


@pytest.mark.parametrize("source", ["fixed", "fresh"])
def test_random_schedules(source: str, schedules: int, tell: Callable[[str], None]) -> None:
    """Run schedules from consecutive seeds; the first that fails is shrunk and told."""
    first = FIXED_SEED if source == "fixed" else fresh_seed()
    tell(f"{schedules} random schedules from {VARIABLE}={first}")
    for seed in range(first, first + schedules):
        choices = Choices(seed=seed)
        try:
            random_run(choices)
        except AssertionError as violation:
            script = shrink(choices.taken, lambda script: failure_of(script) is not None)
            message = f"{VARIABLE}={seed}: {violation}\nshrunk to {script}: {failure_of(script)}"
            raise AssertionError(message) from violation


def failure_of(script: list[int]) -> str | None:
    """Return what goes wrong in the run of a script, if anything."""
    try:
        random_run(Choices(script))
    except AssertionError as violation:
        return str(violation)
    return None
