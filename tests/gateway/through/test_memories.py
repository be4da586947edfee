"""The promises of the store hold through client and service, whatever happens to connections and services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.gateway import table_requests
from tests.gateway.through import remote
from tests.gateway.through.remote import RemoteTable
from tests.simulation.memories import random_memories
from tests.simulation.schedule import Choices, search
from tests.support.seeds import VARIABLE, fresh_seed

SCHEDULES = 30
SEARCHED = 500
MUTANT_SCHEDULES_MAX = 2000


@pytest.fixture(autouse=True)
def _small_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred bytes be a large value."""
    monkeypatch.setattr("langgraph.store.dynamodb.put.INLINE_VALUE_BYTES_MAX", 200)


def _run(choices: Choices) -> None:
    random_memories(choices, RemoteTable)


def test_random_schedules(tell: Callable[[str], None]) -> None:
    _search(SCHEDULES, tell)


@pytest.mark.search
def test_many_random_schedules(tell: Callable[[str], None]) -> None:
    _search(SEARCHED, tell)


def _search(schedules: int, tell: Callable[[str], None]) -> None:
    first = fresh_seed()
    tell(f"{schedules} random schedules of the store through the gateway from {VARIABLE}={first}")
    search(_run, range(first, first + schedules), VARIABLE)


# A service that answers wrongly is noticed


def conflicts_are_not_told(answer: dict[str, Any]) -> None:
    """A condition that failed looks like one that held."""
    if "conflict" in answer:
        answer["conflict"] = None


def unprocessed_writes_are_not_told(answer: dict[str, Any]) -> None:
    """Writes of a batch that were not made look like others."""
    if answer.keys() == {"left"}:
        answer["left"] = []


@pytest.mark.parametrize("mutation", [conflicts_are_not_told, unprocessed_writes_are_not_told])
def test_a_wrong_answer_is_noticed(
    mutation: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out = table_requests.carried_out

    def carried_out_wrongly(*arguments: Any) -> Op[dict[str, Any]]:
        answer = yield from carried_out(*arguments)
        mutation(answer)
        return answer

    monkeypatch.setattr(remote, "carried_out", carried_out_wrongly)
    assert any(_fails(seed) for seed in range(MUTANT_SCHEDULES_MAX))


def _fails(seed: int) -> bool:
    try:
        _run(Choices(seed=seed))
    except AssertionError:
        return True
    return False
