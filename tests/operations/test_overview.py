"""What a list says of a thread, without its values: `overview`, `lines`, `is_stored` and the threads of a run."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.directory import look_up
from langgraph.checkpoint.dynamodb._operations.overview import (
    is_stored,
    lines,
    measure_thread,
    overview,
    threads_of_run,
)
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness


def _thread(ttl_seconds: int | None = None) -> Harness:
    """A thread with two checkpoints of a run and a task that waits for a human."""
    harness = Harness()
    process = harness.process(ttl_seconds)
    harness.run(process.put("1", {"x": noise(60_000)}, run_id="run-1"))
    harness.run(process.put("2", {"x": 2}, "1", source="update", step=7, run_id="run-1"))
    harness.run(process.put_writes("2", [("__interrupt__", "go on?")]))
    return harness


def test_an_overview_counts_items_and_describes_the_newest_checkpoint() -> None:
    harness = _thread(ttl_seconds=100)
    harness.run(harness.process(100).put("1", {"x": 1}, namespace="sub"))
    found = harness.run(overview(harness.process().storage, THREAD))
    assert (found.checkpoint_id, found.step, found.source, found.waiting) == ("2", 7, "update", True)
    assert (found.namespaces, found.checkpoints, found.problem) == (2, 3, None)
    assert found.items == sum(each["PK"]["S"].startswith(f"{THREAD}#") for each in harness.model.items())
    assert found.expires_at == harness.now + 100


def test_an_expired_checkpoint_is_not_described() -> None:
    harness = _thread(ttl_seconds=100)
    harness.now += 101
    found = harness.run(overview(harness.process().storage, THREAD))
    assert (found.checkpoint_id, found.checkpoints) == (None, 0)


def test_damage_is_said_and_not_raised() -> None:
    harness = _thread()
    harness.change(harness.items("C#2#")["C#2#"], v={"N": "99"})
    found = harness.run(overview(harness.process().storage, THREAD))
    assert found.problem is not None
    assert "format version 99" in found.problem


def test_lines_are_checkpoints_without_their_values() -> None:
    harness = _thread()
    newest, oldest = harness.run(collected(lines(harness.process().storage, items.partition_of(THREAD))))
    assert (newest.checkpoint_id, newest.parent_id, newest.tasks, newest.status) == ("2", "1", 1, "waiting")
    assert (oldest.checkpoint_id, oldest.parent_id, oldest.tasks, oldest.status) == ("1", None, 0, "idle")
    assert newest.metadata is not None
    assert newest.metadata["source"] == "update"


def test_a_deleted_thread_is_not_stored_though_its_item_is_left() -> None:
    harness = _thread()
    storage = harness.process().storage
    assert harness.run(is_stored(storage, THREAD))
    assert harness.run(threads_of_run(storage, "run-1")) == [THREAD]
    harness.run(harness.process().delete_thread())
    assert not harness.run(is_stored(storage, THREAD))
    assert harness.run(threads_of_run(storage, "run-1")) == []


def test_a_thread_is_measured_with_what_is_committed() -> None:
    harness = _thread()
    [found] = harness.run(measure_thread(harness.process().storage, THREAD))
    assert found.committed == {"1", "2"}
    assert set(found.sizes) == {items.sort_key(each) for each in harness.model.items()}


ERROR, INTERRUPT, RESUME = ("__error__", "__interrupt__", "__resume__")
NO_TASK = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("written", "status"),
    [
        pytest.param({}, "idle", id="nothing"),
        pytest.param({"a": [INTERRUPT]}, "waiting", id="asked"),
        pytest.param({"a": [ERROR]}, "failed", id="failed"),
        pytest.param({"a": [ERROR, INTERRUPT]}, "waiting", id="failed, retried and asked"),
        pytest.param({NO_TASK: [RESUME], "a": [INTERRUPT, RESUME, ERROR]}, "failed", id="answered, failed"),
        pytest.param({NO_TASK: [RESUME], "a": [INTERRUPT, ERROR]}, "failed", id="answered, failed early"),
        pytest.param({"a": [INTERRUPT, RESUME]}, "waiting", id="asked again"),
        pytest.param({"a": [ERROR], "b": [INTERRUPT]}, "failed", id="one failed, one waits"),
        pytest.param({"a": [ERROR, "x"]}, "idle", id="retried and done"),
        pytest.param({"a": [ERROR, "x"], "b": [INTERRUPT]}, "waiting", id="one done, one waits"),
        pytest.param({"a": [INTERRUPT, RESUME, "x"]}, "idle", id="answered and done"),
    ],
)
def test_the_status_is_what_came_last(harness: Harness, written: dict[str, list[str]], status: str) -> None:
    harness.run(harness.process().put("1", {"x": 1}))
    for task, channels in written.items():
        for channel in channels:
            config = thread_config(THREAD, "", "1")
            harness.run(put_writes(harness.process().storage, config, [(channel, "?")], task, ""))
    storage = harness.process().storage
    assert harness.run(look_up(storage, THREAD)).status == status
    assert harness.run(overview(storage, THREAD)).waiting == (status == "waiting")
    (line,) = harness.run(collected(lines(storage, items.partition_of(THREAD))))
    assert line.status == status
