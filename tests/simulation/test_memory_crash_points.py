"""Every call of the store is cut short at every round, after every subset of the round's effects.

A new process then finds the old value or the new one, each with its own vectors, and a repeated call or a sweep removes
what was left over.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._format.items import SEGMENTS, sort_key
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.store.dynamodb.keys import MEMORIES, VECTORS
from langgraph.store.dynamodb.memory_items import TOMBSTONE_SECONDS, Expected
from langgraph.store.dynamodb.resources import LEFTOVER_SECONDS
from langgraph.store.dynamodb.search import Search, search
from langgraph.store.dynamodb.similarity import EngineVectors, NewVector, SimilarityQuery, Vectors
from langgraph.store.dynamodb.vectors import ExactVectors
from tests.simulation.memories import PLACES, Flow, MemoryWorld, Place
from tests.simulation.schedule import Choices, subsets
from tests.simulation.simulator import FAIR, Process
from tests.simulation.snapshot import Snapshot
from tests.store.conftest import DictEngine

LARGE, EXPIRING, SMALL, NEW = PLACES
LARGE_BYTES = 350
TTL_SECONDS = 5000
# Directions are kept in 16 bits.
SCORE_ERROR = 0.005
# More than a put has until its commit.
ROUNDS_MAX = 10


class IndexedWorld(MemoryWorld):
    """A world in which every vector tells which value it belongs to."""

    def __init__(self, *, has_engine: bool, choices: Choices | None = None) -> None:
        """Let the store compare vectors itself, or an engine beside the table."""
        super().__init__(choices or Choices(), FAIR)
        engine = self.engine = DictEngine() if has_engine else None
        self._vectors: Vectors = ExactVectors("cosine") if engine is None else EngineVectors(engine)
        self._angles: dict[int, list[float]] = {}

    def value(
        self,
        process: Process,
        place: Place,
        size: int = 0,
        vectors: int = 0,
        ttl_seconds: int | None = None,
        expected: Expected | None = None,
    ) -> Flow:
        """Put the next value, with so many vectors of its own."""

        def pack(number: int) -> list[NewVector]:
            self._angles[number] = [0.7 * number + 0.3 * each for each in range(vectors)]
            return [self._vectors.pack(_embedding(each)) for each in self._angles[number]]

        return self.put_value(process, place, pack, size, ttl_seconds, expected)

    def put_if(self, process: Process, place: Place) -> Flow:
        """Read a memory, and replace what was read."""
        found = yield from self._get(process, place, renew=False)
        expected = Expected(None if found is None else found.memory.revision)
        yield from self.value(process, place, LARGE_BYTES, 2, expected=expected)

    def look(self, process: Process) -> Op[None]:
        """Read everything, and search by each vector that a value has."""
        yield from super().look(process)
        everything = yield from search(self.storage(process), Search(("a",), limit=99))
        for angle in [each for loaded, _ in everything for each in self._angles[loaded.value()["n"]]]:
            yield from self.check_scores(process, _embedding(angle))

    def check_scores(self, process: Process, query: Sequence[float]) -> Op[None]:
        """Search by an embedding, and check the scores and their order."""
        wanted = Search(("a",), limit=99, similar_to=SimilarityQuery(self._vectors, query))
        found = yield from search(self.storage(process), wanted)
        scores = [score for _, score in found if score is not None]
        assert scores == sorted(scores, reverse=True), f"the best does not come first: {scores}"
        assert [score for _, score in found[: len(scores)]] == scores, "a memory without a score comes first"
        for loaded, score in found:
            own = [
                math.cos(each) * query[0] + math.sin(each) * query[1]
                for each in self._angles[loaded.value()["n"]]
            ]
            expected = max(own, default=None)
            assert (score is None) == (expected is None), f"{loaded.value()} has the score {score}"
            assert score is None or abs(score - (expected or 0)) < SCORE_ERROR, (
                f"{loaded.value()['n']} has the score {score} and not {expected}"
            )


def _embedding(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


Call: TypeAlias = Callable[[IndexedWorld, Process], Flow]
Start: TypeAlias = Snapshot[tuple[IndexedWorld, Process]]

CALLS: Mapping[str, Call] = {
    "put small": lambda world, process: world.value(process, NEW),
    "put in segments": lambda world, process: world.value(process, NEW, LARGE_BYTES, 2),
    "replace small by large": lambda world, process: world.value(process, SMALL, LARGE_BYTES, 2),
    "replace large by small": lambda world, process: world.value(process, LARGE, 0, 1),
    "replace large by large": lambda world, process: world.value(process, LARGE, LARGE_BYTES, 2),
    "put_if": lambda world, process: world.put_if(process, LARGE),
    "put_if of a new memory": lambda world, process: world.put_if(process, NEW),
    "delete": lambda world, process: world.deleter(process, LARGE),
    "read that renews": lambda world, process: world.reader(process, EXPIRING, ("a",)),
    "delete_namespace": lambda world, process: world.eraser(process, ("a", "b")),
    "delete_namespace of old memories": lambda world, process: world.eraser(process, ("a",)),
    "sweep_ttl": lambda world, process: world.sweeper(process, ("a",)),
}
# How long after the memories were put, in seconds.
LATER = {
    "read that renews": TTL_SECONDS // 5,
    "delete_namespace of old memories": 2 * TOMBSTONE_SECONDS,
    "sweep_ttl": 2 * LEFTOVER_SECONDS,
}


def prepare(world: IndexedWorld) -> Process:
    """Store three memories and what a put left that died before it committed; return the process that put them."""
    process = world.simulator.process()
    world.simulator.run_alone(world.value(process, LARGE, LARGE_BYTES, 2))
    world.simulator.run_alone(world.value(process, EXPIRING, LARGE_BYTES, 1, TTL_SECONDS))
    world.simulator.run_alone(world.value(process, SMALL, 0, 1))
    stored = _segments(world)
    for rounds in range(ROUNDS_MAX):
        world.simulator.run_partly(world.value(world.simulator.process(), SMALL, LARGE_BYTES, 2), rounds, ())
        if _segments(world) > stored:
            return process
    message = "no put died between its segments and its commit"
    raise AssertionError(message)


def prepared(*, has_engine: bool) -> Start:
    """Prepare a world for many runs."""
    world = IndexedWorld(has_engine=has_engine)
    return Snapshot((world, prepare(world)))


def _segments(world: IndexedWorld) -> int:
    return sum(sort_key(each).startswith(SEGMENTS) for each in world.simulator.model.items())


def cut_short(
    start: Start,
    name: str,
    rounds: int,
    effects: tuple[int, ...],
    *,
    warm: bool,
    again: Sequence[bool] = (True,),
) -> int | None:
    """Let a call die at one point, look, perhaps make the call again, let a sweep pass, and look again.

    If the call is to be made again and not, each goes on in a world of its own. In another one, everything is erased.
    """
    world, process = start.copy(Choices())
    call, simulator = CALLS[name], world.simulator
    simulator.now += LATER.get(name, 0)
    simulator.moves += 1
    size = simulator.run_partly(call(world, process if warm else simulator.process()), rounds, effects)
    simulator.moves += 1
    try:
        reader = simulator.process()
        simulator.run_alone(world.look(reader))
        if warm:
            erased, eraser = Snapshot((world, reader)).copy(Choices())
            erased.check_erased(eraser)
        for left, is_made_again in enumerate(again, 1 - len(again)):
            here = Snapshot((world, reader)).copy(Choices()) if left else (world, reader)
            _go_on(*here, call if is_made_again else None)
    except AssertionError as violation:
        message = f"{name}, {rounds} rounds and effects {effects} of the next of {size}: {violation}"
        raise AssertionError(message) from violation
    return size


def _go_on(world: IndexedWorld, reader: Process, call: Call | None) -> None:
    if call is None:
        world.check_swept(reader)
        return
    world.simulator.run_alone(call(world, world.simulator.process()))
    world.check_end()


def test_the_small_sizes_make_large_values() -> None:
    """Without several segments, and something left over, the crash points would prove little."""
    world = IndexedWorld(has_engine=False)
    prepare(world)
    items = [sort_key(each) for each in world.simulator.model.items()]
    # Of two memories, and of the put that died.
    assert sum(each.startswith(SEGMENTS) for each in items) >= 6
    assert sum(each.startswith(VECTORS) for each in items) == 6
    assert sum(each.startswith(MEMORIES) for each in items) == 3


@pytest.mark.share
@pytest.mark.parametrize("name", CALLS)
def test_a_call_may_die_in_each_round(name: str) -> None:
    """Run a share of the search below: look before each round, and go on after effects of it, drawn from a seed."""
    rng = random.Random(name)
    warm, start, rounds = rng.choice([True, False]), prepared(has_engine=rng.choice([True, False])), 0
    while (size := cut_short(start, name, rounds, (), warm=warm, again=())) is not None:
        effects, again = rng.choice(subsets(size)), rng.choice([True, False])
        cut_short(start, name, rounds, effects, warm=warm, again=[again])
        rounds += 1
    assert rounds > 2


@pytest.mark.search
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("warm", "has_engine"),
    # The two have nothing to do with each other, so not all four are needed.
    [(True, False), (False, True)],
    ids=["warm and exact", "cold and engine"],
)
def test_a_call_may_die_anywhere(name: str, *, warm: bool, has_engine: bool) -> None:
    """Run with new worlds: the call dies, a new process looks, and the call is made again or a sweep comes."""
    start, points, rounds = prepared(has_engine=has_engine), 0, 0
    while (size := cut_short(start, name, rounds, (), warm=warm, again=[False, True])) is not None:
        for effects in subsets(size)[1:]:
            cut_short(start, name, rounds, effects, warm=warm, again=[False, True])
            points += 1
        rounds += 1
    assert rounds > 2
    assert points > 0
