"""Every call is cut short at every round, after every subset of the round's effects, and nothing is lost or torn."""

import random
from collections.abc import Sequence

import pytest

from langgraph.checkpoint.dynamodb._format.items import CHECKPOINTS, SEGMENTS, is_head, segment_id_of
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations.reads import StoredCheckpoint
from tests.simulation.scenarios import CALLS, Call, Start, prepare, prepared
from tests.simulation.schedule import Choices, subsets
from tests.simulation.world import World


def test_the_small_sizes_make_large_states() -> None:
    """Without shared segments and index segments in them, the simulated states would prove little."""
    world = World(Choices())
    prepare(world)
    items = world.simulator.model.items()
    heads = [
        StoredCheckpoint(item) for item in items if item["SK"]["S"].startswith(CHECKPOINTS) and is_head(item)
    ]
    named = [each for head in heads for each in head.ids()]
    assert len(named) > len(set(named))
    assert any(is_index(segment_id_of(item)) for item in items if item["SK"]["S"].startswith(SEGMENTS))


CHANGES = [name for name in CALLS if name != "read"]


@pytest.mark.share
# A copy has so many rounds that it takes as long as all other calls together.
@pytest.mark.parametrize("name", [name for name in CHANGES if name != "copy_thread"])
def test_a_call_may_die_in_each_round(name: str) -> None:
    """Run a share of the search below: look before each round, and go on after effects of it, drawn from a seed."""
    rng = random.Random(name)
    start, warm, rounds, seen = prepared(), rng.choice([True, False]), 0, set[str]()
    while (size := cut_short(start, name, warm, rounds, (), again=(), seen=seen)) is not None:
        again = [rng.choice([True, False])]
        cut_short(start, name, warm, rounds, rng.choice(subsets(size)), again=again, seen=seen)
        rounds += 1
    assert rounds > 2


@pytest.mark.search
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_call_may_die_anywhere(name: str, warm: bool) -> None:
    """Run with new worlds: the call dies, a new process finds all that was acknowledged, and makes the call again."""
    start, points, rounds, seen = prepared(), 0, 0, set[str]()
    while (size := cut_short(start, name, warm, rounds, (), seen=seen)) is not None:
        for effects in subsets(size)[1:]:
            cut_short(start, name, warm, rounds, effects, again=[False, True], seen=seen)
            points += 1
        rounds += 1
    assert points > 2
    assert rounds > 2


def cut_short(
    start: Start,
    name: str,
    warm: bool,
    rounds: int,
    effects: tuple[int, ...],
    *,
    seen: set[str],
    again: Sequence[bool] = (True,),
) -> int | None:
    """Let a call die at one point, look, make the call again or delete everything, and look again.

    If both are to be seen, each goes on in a world of its own. `seen` has the states that the call has left at other
    points. If it left one of these again, nothing more is done: looking takes much longer than the call.
    """
    world, process = start.copy(Choices())
    call = CALLS[name]
    size = world.cut_short(call(world, process if warm else world.simulator.process()), rounds, effects)
    state = f"{world.state()} {[*again]}"
    if state in seen:
        return size
    seen.add(state)
    try:
        world.look()
        for left, is_made_again in enumerate(again, 1 - len(again)):
            _go_on(world.copy() if left else world, call if is_made_again else None)
    except AssertionError as violation:
        message = f"{name}, {rounds} rounds and effects {effects} of the next of {size}: {violation}"
        raise AssertionError(message) from violation
    return size


def _go_on(world: World, call: Call | None) -> None:
    if call is None:
        world.check_nothing_left()
        return
    # By now the claim of a deletion that died has run out.
    world.simulator.now += 130
    world.alone(call(world, world.simulator.process()))
    world.check_end()
