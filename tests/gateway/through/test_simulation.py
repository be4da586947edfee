"""The simulator's promises hold through client and service, whatever happens to connections and services."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pytest

from tests.gateway.through.remote import RemoteSaver
from tests.simulation.random_runs import copying_run, random_run, waiting_run
from tests.simulation.scenarios import CALLS, prepare
from tests.simulation.schedule import Choices, search
from tests.simulation.simulator import Faults
from tests.simulation.world import World, use_small_limits
from tests.support.seeds import VARIABLE, fresh_seed

Run: TypeAlias = Callable[..., World]

SCHEDULES = 10
SEARCHED = 60
FIXED_SEED = 11


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_limits(monkeypatch)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_call_succeeds_when_each_request_of_its_service_is_carried_out_twice(name: str, warm: bool) -> None:
    world = World(Choices(seed=1), saver=RemoteSaver)
    process = prepare(world)
    world.simulator.faults = Faults(repeated=1.0)
    world.together([lambda process: CALLS[name](world, process)], process if warm else None)
    world.check_end()


every_kind_of_run = pytest.mark.parametrize("run", [random_run, copying_run, waiting_run])


@every_kind_of_run
def test_random_schedules(run: Run) -> None:
    search(partial(run, saver=RemoteSaver), range(FIXED_SEED, FIXED_SEED + SCHEDULES), VARIABLE)


@pytest.mark.search
@every_kind_of_run
def test_many_random_schedules(run: Run, tell: Callable[[str], None]) -> None:
    first = fresh_seed()
    tell(f"{SEARCHED} random schedules through the gateway from {VARIABLE}={first}")
    search(partial(run, saver=RemoteSaver), range(first, first + SEARCHED), VARIABLE)
