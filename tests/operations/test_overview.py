"""What a list says of a thread, without its values: `lines`, `is_stored` and the threads of a run."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.overview import (
    is_stored,
    lines,
    threads_of_run,
)
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.threads import look_up
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
    (line,) = harness.run(collected(lines(storage, items.partition_of(THREAD))))
    assert line.status == status
