"""A client that gets no answer in time sends its request again, and the first one may have been carried out."""

import pytest

from tests.simulation.scenarios import CALLS, prepare
from tests.simulation.schedule import Choices
from tests.simulation.simulator import Faults
from tests.simulation.world import World


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_call_succeeds_when_each_of_its_requests_is_carried_out_twice(name: str, warm: bool) -> None:
    world = World(Choices())
    process = prepare(world)
    world.simulator.faults = Faults(repeated=1.0)
    (actor,) = world.together([lambda process: CALLS[name](world, process)], process if warm else None)
    assert actor.failure is None
    world.check_end()
