"""The store under random faults, and cut short at every request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.memories import random_memories
from tests.simulation.schedule import Choices, shrink
from tests.support.seeds import VARIABLE, fresh_seed

FIXED_SEED = 1


@pytest.fixture(autouse=True)
def _small_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred bytes be a large value."""
    monkeypatch.setattr("langgraph.store.dynamodb.put.INLINE_VALUE_BYTES_MAX", 200)


@pytest.mark.parametrize("source", ["fixed", "fresh"])
def test_random_schedules(source: str, schedules: int, tell: Callable[[str], None]) -> None:
    """Run schedules from consecutive seeds; the first that fails is shrunk and told."""
    first = FIXED_SEED if source == "fixed" else fresh_seed()
    tell(f"{schedules} random schedules of the store from {VARIABLE}={first}")
    for seed in range(first, first + schedules):
        choices = Choices(seed=seed)
        try:
            random_memories(choices)
        except AssertionError as violation:
            script = shrink(choices.taken, lambda script: failure_of(script) is not None)
            message = f"{VARIABLE}={seed}: {violation}\nshrunk to {script}: {failure_of(script)}"
            raise AssertionError(message) from violation


def failure_of(script: list[int]) -> str | None:
    """Return what goes wrong in the run of a script, if anything."""
    try:
        random_memories(Choices(script))
    except AssertionError as violation:
        return str(violation)
    return None
