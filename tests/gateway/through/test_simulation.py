"""The promises of saver and store hold through client and service, whatever happens to connections and services."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from typing_extensions import override

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint
from langgraph.checkpoint.dynamodb.gateway.memory_calls import PutRevision
from langgraph.checkpoint.dynamodb.http import HttpStore
from langgraph.store.dynamodb.batch import Batch, new_memory
from langgraph.store.dynamodb.memory_items import Expected
from langgraph.store.dynamodb.similarity import NewVector
from tests.gateway.through.remote import RemoteSaver, Services, asking
from tests.simulation.memories import MemoryWorld, Place, random_memories
from tests.simulation.random_runs import copying_run, random_run, waiting_run
from tests.simulation.scenarios import CALLS, prepare
from tests.simulation.schedule import Choices, failure_of, search
from tests.simulation.simulator import Faults, Process
from tests.simulation.world import World, use_small_limits
from tests.support.examples import percent
from tests.support.seeds import RUNS_VARIABLE, VARIABLE, first_seed

Run: TypeAlias = Callable[[Choices], object]

MUTANT_SCHEDULES_MAX = 2000

# What is embedded of a value, by position.
TOPICS = ("a", "b", "c")
EMBEDDED = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}
INDEX: Any = {"dims": 2, "embed": lambda texts: [EMBEDDED[each] for each in texts], "fields": ["topics[*]"]}


class RemoteMemories(MemoryWorld):
    """A world whose stores reach the table through the gateway."""

    def _ask(self, process: Process, operation: Callable[[Any], Op[Any]]) -> Op[Any]:
        """Run an operation of the client in a process."""
        made = (HttpStore("http://localhost", index=INDEX), Services(self.simulator, process))
        client, services = vars(process).setdefault("store", made)
        return asking(operation(client), services.ask)

    def _batch(self, process: Process, op: Any) -> Op[Any]:
        batch = Batch(None, [op])
        outcome = yield from self._ask(process, lambda it: it._batch(batch))  # noqa: SLF001
        return outcome.results[0]

    @override
    def delete(self, process: Process, place: Place) -> Op[Any]:
        yield from self._batch(process, PutOp(*place, None))
        return "deleted"

    @override
    def erase(self, process: Process, prefix: tuple[str, ...]) -> Op[Any]:
        return self._ask(process, lambda it: it._remove(prefix, is_erasure=True))  # noqa: SLF001

    @override
    def sweep(self, process: Process, prefix: tuple[str, ...]) -> Op[Any]:
        return self._ask(process, lambda it: it._remove(prefix, is_erasure=False))  # noqa: SLF001

    @override
    def store(
        self,
        process: Process,
        place: Place,
        value: dict[str, Any],
        vectors: Sequence[NewVector],
        ttl_seconds: int | None,
        expected: Expected | None,
    ) -> Op[Any]:
        ttl = None if ttl_seconds is None else ttl_seconds / 60
        op = PutOp(*place, value | {"topics": list(TOPICS[: len(vectors)])}, ttl=ttl)

        def stored(client: Any) -> Op[Any]:
            batch = Batch(client._embedder, [])  # noqa: SLF001
            batch.add_put(new_memory(op, client._embedder, expected), "put")  # noqa: SLF001
            batch.embedded = EMBEDDED
            made: Op[Any] = client._batch(batch)  # noqa: SLF001
            return made

        outcome = yield from self._ask(process, stored)
        return outcome.revisions[0] if expected is not None else "stored"

    @override
    def read(self, process: Process, place: Place) -> Op[Any]:
        return self._read(process, place, refresh_ttl=False)

    def _read(self, process: Process, place: Place, *, refresh_ttl: bool) -> Op[Any]:
        found = yield from self._batch(process, GetOp(*place, refresh_ttl))
        return [None if found is None else _loaded(found)]

    @override
    def renew(self, process: Process, place: Place, found: Any) -> Op[Any]:
        return self._read(process, place, refresh_ttl=True)

    @override
    def search(self, process: Process, prefix: tuple[str, ...], order: Any) -> Op[Any]:
        batch = Batch(None, [SearchOp(prefix, limit=99, refresh_ttl=False)], order=order)
        outcome = yield from self._ask(process, lambda it: it._batch(batch))  # noqa: SLF001
        return [(_loaded(each), None) for each in outcome.results[0]]

    @override
    def list(self, process: Process, prefix: tuple[str, ...]) -> Op[Any]:
        return self._batch(process, ListNamespacesOp((MatchCondition("prefix", prefix),)))


def _loaded(found: Any) -> Any:
    return SimpleNamespace(
        value=lambda: found.value,
        memory=SimpleNamespace(revision=found.revision),
        address=SimpleNamespace(namespace=found.namespace, key=found.key),
    )


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


_memories = partial(random_memories, make_world=RemoteMemories)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("run", "share"),
    [(partial(each, saver=RemoteSaver), 20) for each in (random_run, copying_run, waiting_run)]
    + [(_memories, 100)],
    ids=["random", "copying", "waiting", "memories"],
)
def test_random_schedules(run: Run, share: int, tell: Callable[[str], None]) -> None:
    first, schedules = first_seed(), int(os.environ.get(RUNS_VARIABLE, percent(share)))
    tell(f"{schedules} random schedules through the gateway from {VARIABLE}={first}")
    search(run, range(first, first + schedules), VARIABLE)


def test_a_service_that_ignores_conditions_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Endpoint.operation

    def ignoring(endpoint: Endpoint[Any], it: Any, arguments: Any) -> Op[Any]:
        if endpoint.name != "store/batch":
            return (yield from run(endpoint, it, arguments))
        plain = [
            replace(each, revision=None, token=None) if each.op == "put" else each for each in arguments.ops
        ]
        answer = yield from run(endpoint, it, arguments.model_copy(update={"ops": plain}))
        for position, each in enumerate(arguments.ops):
            if getattr(each, "token", None) is not None:
                answer.results[position] = PutRevision("0123456789abcdef")
        return answer

    monkeypatch.setattr(Endpoint, "operation", ignoring)
    assert any(failure_of(_memories, Choices(seed=seed)) is not None for seed in range(MUTANT_SCHEDULES_MAX))
