"""Random runs see it if a rule of the directory is broken."""

from dataclasses import replace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format.items import Life
from langgraph.checkpoint.dynamodb._operations import entries, thread_item, threads
from langgraph.checkpoint.dynamodb._operations.entries import ThreadDescription
from langgraph.checkpoint.dynamodb.protocol import Change
from tests.simulation.history import Violation
from tests.simulation.mutants import Mutation
from tests.simulation.random_runs import copying_run, random_run
from tests.simulation.schedule import Choices

# Each mutant was caught within the first twenty seeds.
SEEDS = range(1, 100)


def puts_enter_nothing(patch: pytest.MonkeyPatch) -> None:
    """A put neither creates its thread with an entry, nor enters it later."""
    create = protocol.create_thread

    def without_entry(epoch: bytes, life: Life, now: float, _entry: Any = None) -> Change:
        return create(epoch, life, now)

    def nothing(*_: Any) -> Any:
        yield from ()
        return None

    patch.setattr(protocol, "create_thread", without_entry)
    patch.setattr(thread_item, "_touch", nothing)


def nothing_is_touched(patch: pytest.MonkeyPatch) -> None:
    """A thread's last activity stays that of its first put."""
    patch.setattr(thread_item, "activity_seconds", lambda *_: 10**9)


def the_last_put_owns(patch: pytest.MonkeyPatch) -> None:
    """A put that touches enters the thread anew, with the owner that it names."""
    enter = protocol.list_thread

    def enter_again(*listed: Any) -> Change:
        return enter(*listed)._replace(condition="#epoch = :epoch")

    activity = thread_item._activity  # noqa: SLF001 - a mutant changes what nobody else may.

    def activity_anew(storage: Any, partition: Any, thread: Any) -> Any:
        return activity(storage, partition, replace(thread, last_active=None) if storage.entry else thread)

    patch.setattr(protocol, "list_thread", enter_again)
    patch.setattr(thread_item, "_activity", activity_anew)


def a_description_drops_the_rest(patch: pytest.MonkeyPatch) -> None:
    """A title replaces the owner."""
    described = entries.described
    patch.setattr(threads, "described", lambda _about, *asked: described(ThreadDescription(), *asked))


def copies_enter_nothing(patch: pytest.MonkeyPatch) -> None:
    """A copy does not enter its target."""

    def nothing(*_: Any) -> Any:
        yield from ()

    patch.setattr(entries, "carried_entry", nothing)


MUTANTS: list[Mutation] = [
    puts_enter_nothing,
    nothing_is_touched,
    the_last_put_owns,
    a_description_drops_the_rest,
    copies_enter_nothing,
]


@pytest.mark.parametrize(
    "mutate", [MUTANTS[0], *(pytest.param(each, marks=pytest.mark.search) for each in MUTANTS[1:])]
)
def test_random_runs_catch_a_broken_directory(monkeypatch: pytest.MonkeyPatch, mutate: Mutation) -> None:
    mutate(monkeypatch)

    def run_all() -> None:
        for seed in SEEDS:
            random_run(Choices(seed=seed))
            copying_run(Choices(seed=seed))

    with pytest.raises(Violation):
        run_all()
