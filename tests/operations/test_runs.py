"""Runs of a thread: which checkpoints each has, and how it stands."""

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerInputError
from langgraph.checkpoint.dynamodb._operations.overview import RunSummary, list_runs
from tests.support.harness import THREAD, Harness


@pytest.fixture
def harness() -> Harness:
    """Give a table with two runs of a thread, of which the later one waits, and a checkpoint of none."""
    harness = Harness()
    process = harness.process()
    for number, run_id in enumerate(("a", "a", "b", "b", "b"), 1):
        parent = str(number - 1) if number > 1 else None
        harness.run(process.put(str(number), {"x": number}, parent, run_id=run_id))
    harness.run(process.put("6", {"x": 6}, "5"))
    harness.run(process.put_writes("5", [("__interrupt__", "?")]))
    return harness


def runs_of(harness: Harness, thread_id: str = THREAD) -> list[RunSummary]:
    """List runs as a process that remembers nothing does."""
    return harness.run(list_runs(harness.process().storage, thread_id))


def test_runs_are_listed_with_their_checkpoints(harness: Harness) -> None:
    assert runs_of(harness) == [RunSummary("b", "3", "5", 3, "waiting"), RunSummary("a", "1", "2", 2, "idle")]


def test_a_run_is_as_its_last_checkpoint_is(harness: Harness) -> None:
    harness.run(harness.process().put_writes("1", [("__error__", "?")]))
    assert runs_of(harness)[-1].status == "idle"
    harness.run(harness.process().put_writes("2", [("__error__", "?")]))
    assert runs_of(harness)[-1].status == "failed"


def test_a_run_that_goes_on_later_is_one(harness: Harness) -> None:
    harness.run(harness.process().put("7", {"x": 7}, "6", run_id="a"))
    assert runs_of(harness)[0] == RunSummary("a", "1", "7", 3, "idle")


def test_checkpoints_of_subgraphs_are_not_counted(harness: Harness) -> None:
    harness.run(harness.process().put("8", {"x": 8}, namespace="inner", run_id="c"))
    assert [each.run_id for each in runs_of(harness)] == ["b", "a"]


def test_a_thread_that_is_not_there_has_none(harness: Harness) -> None:
    assert runs_of(harness, "another") == []
    with pytest.raises(CheckpointerInputError, match="thread_id"):
        runs_of(harness, "")


def test_all_of_many_runs_are_listed(harness: Harness) -> None:
    process = harness.process()
    for number in range(1001, 1251):
        harness.run(process.put(f"{number}", {}, run_id=f"run {number}"))
    assert len(runs_of(harness, THREAD)) == 252
