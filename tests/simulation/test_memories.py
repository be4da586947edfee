"""Random schedules of the store notice each rule that is broken."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.store.dynamodb import erase, memory_items, partitions
from langgraph.store.dynamodb.resources import StoreStorage
from tests.simulation.memories import random_memories
from tests.simulation.mutants import Mutation
from tests.simulation.schedule import Choices, failure_of

MUTANT_SCHEDULES_MAX = 2000


def anything_replaces(patch: pytest.MonkeyPatch) -> None:
    """A put replaces what is newer."""
    patch.setattr(memory_items, "_LATER", "(attribute_exists(#updated) OR attribute_not_exists(#updated))")


def unregistered(patch: pytest.MonkeyPatch) -> None:
    """A put does not register its partition."""

    def nothing(storage: StoreStorage, partitions: Any) -> Op[None]:
        del storage, partitions
        yield from ()

    # Neither before it is stored nor afterwards.
    patch.setattr(partitions, "register", nothing)


def erasure_waits(patch: pytest.MonkeyPatch) -> None:
    """An erasure leaves what a put may be about to name, as a sweep does."""
    remove = vars(erase)["_remove_leftovers"]

    def as_a_sweep(storage: StoreStorage, left: Any, *, is_erasure: bool) -> Op[None]:
        del is_erasure
        yield from remove(storage, left, is_erasure=False)

    patch.setattr(erase, "_remove_leftovers", as_a_sweep)


def erasure_leaves_no_tombstone(patch: pytest.MonkeyPatch) -> None:
    """An erasure removes what a put may be about to name, and nothing keeps the put from it."""

    def nothing(storage: StoreStorage, item: Any, kept_seconds: int) -> Op[None]:
        del storage, item, kept_seconds
        yield from ()

    patch.setattr(erase, "_bury", nothing)


def tombstones_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A put may commit over another one that has replaced a tombstone."""
    patch.setattr(memory_items, "_unburied", lambda *_: "")


def sweep_is_early(patch: pytest.MonkeyPatch) -> None:
    """A sweep removes what a put is about to commit."""
    patch.setattr(erase, "LEFTOVER_SECONDS", -10)


@pytest.mark.parametrize(
    "mutation",
    [
        anything_replaces,
        unregistered,
        sweep_is_early,
        erasure_waits,
        erasure_leaves_no_tombstone,
        pytest.param(tombstones_are_forgotten, marks=pytest.mark.search),
    ],
)
def test_a_broken_rule_is_noticed(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert any(
        failure_of(random_memories, Choices(seed=seed)) is not None for seed in range(MUTANT_SCHEDULES_MAX)
    )
