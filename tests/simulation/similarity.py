"""Searches by similarity while other processes put: a memory has its score, however late it was stored."""

from tests.simulation.memories import PLACES, Flow
from tests.simulation.schedule import Choices
from tests.simulation.simulator import Process
from tests.simulation.test_memory_crash_points import LARGE_BYTES, IndexedWorld


def _writer(world: IndexedWorld, process: Process) -> Flow:
    for _ in range(4):
        place = PLACES[world.choices.pick(len(PLACES))]
        yield from world.value(process, place, (0, LARGE_BYTES)[world.choices.pick(2)], 1)


def _searcher(world: IndexedWorld, process: Process) -> Flow:
    for _ in range(4):
        yield from world.check_scores(process, [1.0, 0.0])


def searches_beside_puts(choices: Choices) -> IndexedWorld:
    """Let a process search while two others put, and check each score."""
    world = IndexedWorld(has_engine=False, choices=choices)
    for number in range(2):
        process = world.simulator.process()
        world.simulator.start(f"writer {number}", process, _writer(world, process))
    process = world.simulator.process()
    searcher = world.simulator.start("searcher", process, _searcher(world, process))
    world.simulator.run()
    for each in world.simulator.actors:
        if each.failure is not None:
            raise each.failure
    assert searcher.finished
    return world
