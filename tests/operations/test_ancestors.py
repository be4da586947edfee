"""Ancestors: read in pages, newest first, and by their ids where they are out of order."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.reads import AncestorReader
from tests.support.harness import THREAD, Harness

PARTITION = items.partition_of(THREAD)


def _chain(harness: Harness, *checkpoint_ids: str) -> None:
    parent: str | None = None
    for each in checkpoint_ids:
        harness.run(harness.process().put(each, {"x": each}, parent))
        parent = each


def _back(harness: Harness, reader: AncestorReader, checkpoint_id: str, last: str) -> list[str]:
    head = harness.items("C#")[f"C#{checkpoint_id}#"]
    return [each.checkpoint_id for each in harness.run(reader.back(head, last))]


def test_the_way_back_ends_with_the_wanted_ancestor_or_the_first_checkpoint(harness: Harness) -> None:
    _chain(harness, "1", "2", "3", "4")
    reader = AncestorReader(harness.process().storage, PARTITION, below="4")
    assert _back(harness, reader, "4", "2") == ["3", "2"]
    assert _back(harness, reader, "4", "") == ["3", "2", "1"]


def test_a_parent_with_a_greater_id_is_found_alone(harness: Harness) -> None:
    """Ids ascend within one process only."""
    _chain(harness, "1", "9", "4")
    reader = AncestorReader(harness.process().storage, PARTITION, below="4")
    assert _back(harness, reader, "4", "1") == ["9", "1"]


def test_a_parent_that_is_gone_ends_the_way_back(harness: Harness) -> None:
    _chain(harness, "1", "2", "3")
    harness.remove(harness.items("C#")["C#2#"])
    reader = AncestorReader(harness.process().storage, PARTITION, below="3")
    assert _back(harness, reader, "3", "1") == []


def test_a_cycle_of_parents_has_an_end(harness: Harness) -> None:
    _chain(harness, "1", "2", "3")
    harness.change(harness.items("C#")["C#1#"], parent={"S": "3"})
    reader = AncestorReader(harness.process().storage, PARTITION)
    assert _back(harness, reader, "3", "") == ["2", "1"]
    newest = harness.run(AncestorReader(harness.process().storage, PARTITION).newest())
    assert newest is not None
    assert newest.checkpoint_id == "3"
