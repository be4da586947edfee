"""Two to eight actors under random faults: from a fixed seed, and from a fresh one that is printed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.random_runs import random_run
from tests.simulation.schedule import search
from tests.support.seeds import VARIABLE, fresh_seed

FIXED_SEED = 4


@pytest.mark.parametrize("source", ["fixed", "fresh"])
def test_random_schedules(source: str, schedules: int, tell: Callable[[str], None]) -> None:
    """Run schedules from consecutive seeds; the first that fails is shrunk and told."""
    first = FIXED_SEED if source == "fixed" else fresh_seed()
    tell(f"{schedules} random schedules from {VARIABLE}={first}")
    search(random_run, range(first, first + schedules), VARIABLE)
