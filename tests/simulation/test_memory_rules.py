"""Rules of the store that random schedules hardly ever break, each with a schedule that needs it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.store.dynamodb import erase, memory_items, reads
from langgraph.store.dynamodb.resources import StoreStorage
from tests.simulation.memories import PLACES, MemoryWorld
from tests.simulation.mutants import replace_for
from tests.simulation.schedule import Choices
from tests.simulation.simulator import FAIR
from tests.simulation.test_memory_crash_points import LARGE_BYTES, TTL_SECONDS

PLACE = PLACES[1]


def arrive_again_after_an_erasure(patch: pytest.MonkeyPatch) -> None:
    """Repeat the commit of an acknowledged put once everything is erased, and look."""
    world = MemoryWorld(Choices(), FAIR)
    simulator, process = world.simulator, world.simulator.process()
    sent: list[tuple[str, Any]] = []
    handle = simulator.model.handle

    def keep(method: str, params: Any, began_at: int | None = None) -> Any:
        sent.append((method, params))
        return handle(method, params, began_at)

    patch.setattr(simulator.model, "handle", keep)
    simulator.run_alone(world.put_value(process, PLACE, lambda _: []))
    (commit,) = [each for each in sent if each[0] == "update_item" and ":value" in str(each)]
    simulator.moves += 1
    simulator.run_alone(world.eraser(process, PLACE[0]))
    # The condition fails.
    with suppress(ClientError):
        handle(*commit)
    simulator.run_alone(world.look(process))


def read_for_longer_than_the_parts_live(patch: pytest.MonkeyPatch) -> None:
    """Read a memory with segments and vectors often enough to keep it, while DynamoDB removes what has expired."""
    del patch
    world = MemoryWorld(Choices(), FAIR)
    simulator, process = world.simulator, world.simulator.process()
    simulator.run_alone(world.put_value(process, PLACE, lambda _: [], LARGE_BYTES, TTL_SECONDS))
    for _ in range(2 * memory_items.PART_LIFETIMES + 2):
        simulator.now += TTL_SECONDS * 9 // 10
        simulator.moves += 1
        simulator.model.expire(simulator.model.expired())
        simulator.run_alone(world.reader(process, PLACE, PLACE[0]))
        simulator.run_alone(world.look(process))


def deletion_leaves_nothing(patch: pytest.MonkeyPatch) -> None:
    """An erasure leaves no tombstone, however new the memory is."""
    replace_for(patch, erase, memory_items, "TOMBSTONE_SECONDS", -(10**9))


def parts_are_not_renewed(patch: pytest.MonkeyPatch) -> None:
    """A read renews a memory, and not its segments."""
    patch.setattr(memory_items, "PART_LIFETIMES", 0)

    def nothing(storage: StoreStorage, key: Any, expires_at: Any) -> Op[bool]:
        del storage, key, expires_at
        yield from ()
        return True

    patch.setattr(reads, "extend", nothing)


Step = Callable[[pytest.MonkeyPatch], None]
RULES: dict[str, tuple[Step, Step]] = {
    "an erasure leaves a tombstone": (arrive_again_after_an_erasure, deletion_leaves_nothing),
    "a read renews parts, too": (read_for_longer_than_the_parts_live, parts_are_not_renewed),
}


@pytest.mark.parametrize(("schedule", "mutation"), RULES.values(), ids=RULES)
def test_a_rule_holds_and_its_breach_is_noticed(
    schedule: Step, mutation: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule(monkeypatch)
    mutation(monkeypatch)
    with pytest.raises(AssertionError, match=r"was read after|is missing|damaged|segment"):
        schedule(monkeypatch)
