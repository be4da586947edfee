"""Two to eight actors under random faults."""

from collections.abc import Callable

import pytest

from tests.simulation.memories import random_memories
from tests.simulation.random_runs import copying_run, random_run, sharing_run, waiting_run
from tests.simulation.schedule import Choices, search
from tests.simulation.similarity import searches_beside_puts
from tests.support.seeds import VARIABLE, first_seed


@pytest.mark.parametrize(
    "run", [random_run, copying_run, sharing_run, waiting_run, random_memories, searches_beside_puts]
)
def test_random_schedules(
    run: Callable[[Choices], object], schedules: int, tell: Callable[[str], None]
) -> None:
    """Run schedules from consecutive seeds; the first that fails is shrunk and told."""
    first = first_seed()
    tell(f"{schedules} random schedules from {VARIABLE}={first}")
    search(run, range(first, first + schedules), VARIABLE)
