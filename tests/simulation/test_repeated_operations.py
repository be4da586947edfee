"""An operation that is made again, as by a caller who has not heard that it succeeded, changes nothing."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.simulation.scenarios import prepare
from tests.simulation.schedule import Choices
from tests.simulation.simulator import Process
from tests.simulation.world import World

Operation = Callable[[World, Process, Any], Any]


def _next_put(world: World) -> Any:
    parent = max(
        (put for put in world.history.puts.values() if put.place == ("one", "")),
        key=lambda put: put.checkpoint_id,
    )
    return world.next_put("one", "", parent, "again", renew=True)


# What the operation is made with, both times, and the operation.
OPERATIONS: Mapping[str, tuple[Callable[[World], Any], Operation]] = {
    "put": (_next_put, lambda world, process, record: world.put(process, record)),
    "put_writes": (
        lambda world: world.next_writes(world.history.puts["one", "inner", "0005"], "another task"),
        lambda world, process, record: world.put_writes(process, record),
    ),
    "prune": (lambda _: None, lambda world, process, _: world.prune(process, "one")),
    "delete_for_runs": (lambda _: None, lambda world, process, _: world.delete_for_runs(process, "run")),
    "delete_thread": (lambda _: None, lambda world, process, _: world.delete_thread(process, "one")),
    "copy_thread": (lambda _: None, lambda world, process, _: world.copy_thread(process, "one", "two")),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("delta", [False, True], ids=["plain", "delta"])
@pytest.mark.parametrize("warm", [True, False], ids=["same process", "another process"])
def test_the_second_time_changes_nothing(name: str, *, warm: bool, delta: bool) -> None:
    world = World(Choices(), delta=delta)
    process = prepare(world)
    make, operation = OPERATIONS[name]
    argument = make(world)
    before = world.seen()
    world.alone(operation(world, process, argument))
    once = world.seen()
    assert once != before
    world.alone(operation(world, process if warm else world.simulator.process(), argument))
    assert world.seen() == once
