"""`list`: which checkpoints, in which order, and with few requests."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._operations import list as list_module
from langgraph.checkpoint.dynamodb._operations.list import Selection, list_checkpoints
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream, collected
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness, Run


@pytest.fixture
def harness() -> Harness:
    """A thread with three checkpoints, of which the second is of another kind."""
    harness = Harness()
    process = harness.process()
    for number in range(1, 4):
        parent = str(number - 1) if number > 1 else None
        source = "update" if number == 2 else "loop"
        harness.run(process.put(str(number), {"x": number}, parent, source=source))
    return harness


def _listing(harness: Harness, **options: Any) -> Run[list[str]]:
    """Begin to list the thread's checkpoints."""
    arguments = {"metadata_filter": None, "before": None, "limit": None, **options}
    stream = list_checkpoints(harness.process().storage, thread_config(THREAD), *arguments.values())
    return harness.begin(_ids(stream))


def _ids(stream: Stream[CheckpointTuple]) -> Op[list[str]]:
    return [each.config["configurable"]["checkpoint_id"] for each in (yield from collected(stream))]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"limit": 1}, ["3"]),
        ({"limit": 0}, []),
        ({"before": thread_config(THREAD, checkpoint_id="3")}, ["2", "1"]),
        ({"metadata_filter": {"source": "update"}}, ["2"]),
        ({"metadata_filter": {"source": "loop"}, "limit": 1}, ["3"]),
        ({"metadata_filter": {"source": "loop"}, "before": thread_config(THREAD, checkpoint_id="3")}, ["1"]),
    ],
)
def test_bounds_and_filters_go_together(harness: Harness, options: dict[str, Any], ids: list[str]) -> None:
    assert _listing(harness, **options).finish() == ids


def test_a_limit_of_nothing_asks_for_nothing(harness: Harness) -> None:
    assert _listing(harness, limit=0).trace() == []


def test_a_long_list_holds_the_segments_of_a_few_checkpoints(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_module, "_SEGMENT_BYTES_KEPT", 400_000)
    for number in range(4, 16):
        harness.run(harness.process().put(f"a{number:02}", {"x": noise(60_000, number)}))
    selection, most = Selection(storage=harness.process().storage), 0
    run = harness.begin(_ids(selection.of(thread_config(THREAD))))
    while not run.done:
        run.go_on()
        held = [data for each in selection.segments.values() for data in each.contents.values()]
        most = max(most, sum(map(len, held)))
    # At least one checkpoint is read at a time, whatever is held already.
    assert 60_000 < most < 400_000 + 60_000 + 1000
