"""The inventory of a namespace: its items by kind, what they name, and how large they are."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import CheckpointFormatError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._operations.inventory import scan_namespace
from langgraph.checkpoint.dynamodb._operations.threads import read_thread
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, Harness

PARTITION = items.partition_of(THREAD)


@pytest.fixture
def harness() -> Harness:
    """A thread with two checkpoints in segments, writes of two tasks, a subgraph and a lock."""
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": noise(60_000)}))
    harness.run(process.put("2", {"x": noise(60_000), "y": noise(60_000, 2)}, "1", ["y"]))
    harness.run(process.put_writes("2", [("x", 1)], "task-1"))
    harness.run(process.put_writes("3", [("x", 1)], "task-2"))
    harness.run(process.put("7", {"x": 1}, namespace="sub"))
    return harness


def test_items_are_sorted_by_kind(harness: Harness) -> None:
    found = harness.run(scan_namespace(harness.process().storage, PARTITION))
    assert (set(found.heads), set(found.writes)) == ({"1", "2"}, {"2", "3"})
    assert found.checkpoint_ids == {"1", "2", "3"}
    assert [items.namespace_of(each) for each in found.markers] == ["sub"]
    assert set(found.segments) == set(map(items.segment_id_of, harness.items("S#").values()))
    # A deletion would read most of the thread otherwise.
    assert not any(items.DATA in each for each in found.segments.values())


def test_what_some_checkpoints_name_is_all_that_their_items_name(harness: Harness) -> None:
    found = harness.run(scan_namespace(harness.process().storage, PARTITION))
    assert found.named(["1"]) < found.named(["2"]) == set(found.segments)
    assert found.items_of(["2", "3", "4"]) == [found.heads["2"], *found.writes["2"], *found.writes["3"]]


def test_a_head_of_another_epoch_is_not_committed(harness: Harness) -> None:
    harness.change(harness.items("C#1#")["C#1#"], epoch={"B": b"another"})
    storage = harness.process().storage
    found = harness.run(scan_namespace(storage, PARTITION))
    found.mark_committed(harness.run(read_thread(storage, PARTITION)))
    assert found.committed == {"2"}
    found.mark_committed(None)
    assert found.committed == set()


def test_what_is_measured_is_as_large_as_what_is_stored(harness: Harness) -> None:
    found = harness.run(scan_namespace(harness.process().storage, PARTITION, measured=True))
    stored = {
        items.sort_key(each): item_bytes(each)
        for each in harness.model.items()
        if each["PK"]["S"] == f"{THREAD}#"
    }
    assert found.sizes == stored


def test_a_head_of_a_newer_release_is_refused_before_anything_is_deleted(harness: Harness) -> None:
    harness.change(harness.items("C#1#")["C#1#"], v={"N": "99"})
    with pytest.raises(CheckpointFormatError, match="format version 99"):
        harness.run(scan_namespace(harness.process().storage, PARTITION))
