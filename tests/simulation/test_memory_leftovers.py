"""What calls of the store leave that lose an answer or die, and what removes it."""

import pytest

from langgraph.checkpoint.dynamodb._format.items import SEGMENTS, partition_key, sort_key
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.protocol import Change
from langgraph.store.dynamodb import memory_items, partitions
from langgraph.store.dynamodb.keys import MEMORIES, address_of
from langgraph.store.dynamodb.memory_items import VALUE
from langgraph.store.dynamodb.reads import belongings
from langgraph.store.dynamodb.resources import LEFTOVER_SECONDS, StoreStorage
from tests.simulation.memories import PLACES, MemoryWorld, Place
from tests.simulation.mutants import Mutation
from tests.simulation.schedule import Choices, every_schedule
from tests.simulation.simulator import FAIR, Faults
from tests.simulation.test_memory_crash_points import LARGE_BYTES, ROUNDS_MAX, IndexedWorld


@pytest.mark.parametrize("change", ["replace", "delete", "delete_namespace"])
def test_what_a_change_replaces_is_removed_although_its_answer_is_lost(change: str) -> None:
    """Each request is carried out twice, and only the second answer arrives: it does not have the old item."""
    world = IndexedWorld(has_engine=False)
    process = world.simulator.process()
    place, other = PLACES[1], PLACES[2]
    for each in (place, other):
        world.simulator.run_alone(world.value(process, each, LARGE_BYTES, 2))
    kept = _parts(world, other)
    assert len(_parts(world, place)) >= 4
    world.simulator.faults = Faults(repeated=1.0)
    flows = {
        "replace": lambda: world.value(process, place, LARGE_BYTES, 1),
        "delete": lambda: world.deleter(process, place),
        "delete_namespace": lambda: world.eraser(process, place[0]),
    }
    actor = world.simulator.start(change, process, flows[change]())
    world.simulator.run()
    assert actor.failure is None
    world.simulator.settle()
    world.simulator.faults = FAIR
    assert all(each.acknowledged for each in world.history.writes)
    if change != "delete_namespace":
        assert _parts(world, other) == kept
    beside = {
        (partition_key(each), sort_key(each))
        for each in world.simulator.model.items()
        if partition_key(each).endswith("%M#") and not sort_key(each).startswith(MEMORIES)
    }
    assert beside == _parts(world, place) | _parts(world, other)
    world.simulator.run_alone(world.look(process))


def test_a_partition_stays_registered_until_nothing_is_left_in_it() -> None:
    """A put dies 42 minutes after its process has registered the partition, so its segments are that much younger."""
    world = MemoryWorld(Choices(), FAIR)
    simulator, process, place = world.simulator, world.simulator.process(), PLACES[1]
    simulator.run_alone(world.put_value(process, place, lambda _: []))
    simulator.run_alone(world.deleter(process, place))
    registered_at = simulator.now
    simulator.now += 42 * 60
    for rounds in range(ROUNDS_MAX):
        simulator.run_partly(world.put_value(process, place, lambda _: [], LARGE_BYTES), rounds, ())
        if any(sort_key(each).startswith(SEGMENTS) for each in simulator.model.items()):
            break
    else:
        pytest.fail("no put died between its segments and its commit")
    sweeper = simulator.process()
    simulator.now = registered_at + LEFTOVER_SECONDS + 1
    simulator.run_alone(world.sweeper(sweeper, ("a",)))
    simulator.now += 42 * 60
    simulator.run_alone(world.sweeper(sweeper, ("a",)))
    assert simulator.model.items() == []


def put_beside_erasure(choices: Choices) -> None:
    """Put a memory while an erasure removes the partition's entry, on which the put relies."""
    world = MemoryWorld(choices, FAIR, switches_max=2)
    simulator, process, place = world.simulator, world.simulator.process(), PLACES[1]
    simulator.run_alone(world.put_value(process, PLACES[2], lambda _: []))
    simulator.run_alone(world.deleter(process, PLACES[2]))
    other = simulator.process()
    simulator.start("put", process, world.put_value(process, place, lambda _: []))
    simulator.start("erasure", other, world.eraser(other, ("a",)))
    simulator.run()
    assert [each.failure for each in simulator.actors] == [None, None]
    # In which order to read is no part of the race.
    world.choices = Choices()
    simulator.run_alone(world.look(simulator.process()))
    world.check_erased(other)


def test_a_put_beside_an_erasure_stays_registered() -> None:
    assert every_schedule(put_beside_erasure, 100_000) > 100


def late_puts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A put does not look whether an erasure has removed its partition's entry meanwhile."""
    patch.setattr(partitions, "stay_registered", _nothing)


def entries_are_not_marked(patch: pytest.MonkeyPatch) -> None:
    """A put does not see that an erasure is about to remove its partition's entry."""
    patch.setattr(memory_items, "LEAVING", "nothing")


def entries_of_late_puts_go(patch: pytest.MonkeyPatch) -> None:
    """An erasure removes an entry that was written again since it looked for memories."""
    patch.setattr(
        memory_items, "unregister", lambda _: Change("", "attribute_exists(#pk)", {"#pk": "PK"}, {})
    )


def _nothing(storage: StoreStorage, pk: str) -> Op[None]:
    del storage, pk
    yield from ()


@pytest.mark.parametrize(
    "mutation", [late_puts_are_forgotten, entries_are_not_marked, entries_of_late_puts_go]
)
def test_a_broken_rule_of_the_register_is_noticed(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(AssertionError, match="was read after"):
        every_schedule(put_beside_erasure, 100_000)


def _parts(world: MemoryWorld, place: Place) -> set[tuple[str, str]]:
    """Return the keys of the segments and vectors of a memory; none if it was deleted."""
    name = address_of(*place).sk
    found = [each for each in world.simulator.model.items() if sort_key(each) == name and VALUE in each]
    storage = world.storage(world.simulator.process())
    return {
        (partition_key(key), sort_key(key))
        for item in found
        for key in world.simulator.run_alone(belongings(storage, item))
    }
