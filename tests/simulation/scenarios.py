"""What simulated runs start from, and the calls that are cut short or raced against each other."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from tests.simulation.schedule import Choices
from tests.simulation.simulator import FAIR, Faults, Process
from tests.simulation.snapshot import Snapshot
from tests.simulation.world import Flow, World

Call: TypeAlias = Callable[[World, Process], Flow]
Start: TypeAlias = Snapshot[tuple[World, Process]]
"""What `prepare` leaves, for any number of runs of the same code."""


def prepare(world: World) -> Process:
    """Store a small thread with an inner namespace and two runs; return the process that remembers it."""
    process = world.simulator.process()
    world.alone(world.conversation(process, "one", 3, run_id="old"))
    world.alone(world.conversation(process, "one", 2, namespace="inner", run_id="old"))
    world.alone(world.conversation(process, "one", 1, run_id="run"))
    return process


def prepared(faults: Faults = FAIR, *, switches_max: int | None = None) -> Start:
    """Prepare a world for many runs, which takes no decision."""
    world = World(Choices(), faults, switches_max=switches_max)
    start = Snapshot((world, prepare(world)))
    assert not world.simulator.choices.taken
    return start


def put_on(world: World, process: Process) -> Flow:
    """Go on from the newest checkpoint."""
    return world.fork(process, ("one", ""), 0, length=1)


def put_fork(world: World, process: Process) -> Flow:
    """Fork the conversation at an older checkpoint, whose parts it reuses."""
    return world.fork(process, ("one", ""), 1, run_id="fork", length=1)


def put_first(world: World, process: Process) -> Flow:
    """Begin a namespace."""
    return world.conversation(process, "one", 1, namespace="new")


def put_inner(world: World, process: Process) -> Flow:
    """Go on in the inner namespace."""
    return world.conversation(process, "one", 1, namespace="inner", run_id="run")


CALLS: Mapping[str, Call] = {
    "put": put_on,
    "fork": put_fork,
    "first put": put_first,
    "inner put": put_inner,
    "prune": lambda world, process: world.prune(process, "one"),
    "prune to two": lambda world, process: world.prune(process, "one", 2),
    "delete_for_runs": lambda world, process: world.delete_for_runs(process, "old"),
    "delete_thread": lambda world, process: world.delete_thread(process, "one"),
    "copy_thread": lambda world, process: world.copy_thread(process, "one", "two"),
    "read": lambda world, process: world.reader(process, "one", 1),
}


def race(choices: Choices, names: Sequence[str], start: Start, *, ends: set[str] | None = None) -> None:
    """Let calls run at the same time, the first in the process that remembers the thread, and check everything.

    What decides also decides whether a conversation goes on in the end. With `ends`, the states that other runs ended
    in, both ends are looked at, unless another run ended alike: looking takes much longer than running.
    """
    world, warm = start.copy(choices)
    try:
        world.together([partial(CALLS[name], world) for name in names], warm)
        if ends is None:
            world.check_end(go_on=choices.pick(2) == 1)
        elif (state := world.state()) not in ends:
            world.check_both_ends()
            ends.add(state)
    except AssertionError as violation:
        message = f"schedule {choices.taken}: {violation}\n" + "\n".join(world.simulator.log)
        raise AssertionError(message) from violation
