"""`LoadedSegments`: what is read, from where, and what is said to be missing."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.reads import AncestorReader, LoadedSegments, find, open_cached
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, Harness, Process

PARTITION = items.partition_of(THREAD)


@pytest.fixture
def harness() -> Harness:
    """A thread with one checkpoint in segments."""
    harness = Harness()
    harness.run(harness.process().put("1", {"x": noise(60_000)}))
    return harness


def _named(harness: Harness) -> set[bytes]:
    return items.named_ids(harness.items("C#").values())


def test_what_is_missing_is_returned_after_a_strongly_consistent_look(harness: Harness) -> None:
    gone = next(iter(harness.items("S#").values()))
    harness.remove(gone)
    loaded = LoadedSegments(PARTITION.pk)
    reading = harness.begin(loaded.read(harness.process().storage, _named(harness)))
    *_, last = reading.trace()
    [keys] = last.params["RequestItems"].values()
    assert keys["ConsistentRead"]
    assert loaded.missing(_named(harness)) == [items.segment_id_of(gone)]


def test_what_indexes_lead_to_is_read_with_them_and_indexes_alone_need_no_key() -> None:
    harness = Harness()
    harness.run(harness.process().put("1", {"x": noise(900_000)}))
    whole, indexes = LoadedSegments(PARTITION.pk), LoadedSegments(PARTITION.pk)
    storage = harness.process().storage
    assert harness.run(whole.read(storage, _named(harness))) == set()
    assert harness.run(indexes.read_indexes(storage, _named(harness))) == set()
    assert indexes.contents
    assert indexes.contents.items() < whole.contents.items()


def test_the_cache_serves_what_is_seen_to_be_committed_and_nothing_else(harness: Harness) -> None:
    process = harness.process()
    process.get("1")
    checkpoint = harness.run(find(process.storage, PARTITION, "1"))
    assert checkpoint is not None
    cached = LoadedSegments.of(checkpoint.head)
    [look] = harness.begin(cached.read_all(process.storage, checkpoint)).trace()
    assert look.params["Key"]["SK"] == {"S": "T"}
    assert cached.is_committed
    other = LoadedSegments(PARTITION.pk, protocol.next_epoch(cached.epoch or b""))
    assert harness.begin(other.read_all(process.storage, checkpoint)).trace() != []
    assert not other.is_committed


def test_what_is_cached_under_an_epoch_is_opened_without_a_request(harness: Harness) -> None:
    process = harness.process()
    process.get("1")
    epoch = items.binary(harness.items("C#")["C#1#"], items.EPOCH)
    found = open_cached(process.storage, PARTITION, epoch, [*_named(harness), bytes(8)])
    loaded = LoadedSegments(PARTITION.pk)
    harness.run(loaded.read(process.storage, _named(harness)))
    assert found == loaded.contents != {}
    assert open_cached(process.storage, PARTITION, b"other", _named(harness)) == {}


# Ancestors: read in pages, newest first, and by their ids where they are out of order


def _chain(*checkpoint_ids: str) -> Harness:
    harness, parent = Harness(), None
    for each in checkpoint_ids:
        harness.run(harness.process().put(each, {"x": each}, parent))
        parent = each
    return harness


def _back(harness: Harness, reader: AncestorReader, checkpoint_id: str, last: str) -> list[str]:
    head = harness.items("C#")[f"C#{checkpoint_id}#"]
    return [each.checkpoint_id for each in harness.run(reader.back(head, last))]


def test_the_way_back_ends_with_the_wanted_ancestor_or_the_first_checkpoint() -> None:
    harness = _chain("1", "2", "3", "4")
    reader = AncestorReader(harness.process().storage, PARTITION, below="4")
    assert _back(harness, reader, "4", "2") == ["3", "2"]
    assert _back(harness, reader, "4", "") == ["3", "2", "1"]


def test_a_parent_with_a_greater_id_is_found_alone() -> None:
    """Ids ascend within one process only."""
    harness = _chain("1", "9", "4")
    reader = AncestorReader(harness.process().storage, PARTITION, below="4")
    assert _back(harness, reader, "4", "1") == ["9", "1"]


def test_a_parent_that_is_gone_ends_the_way_back() -> None:
    harness = _chain("1", "2", "3")
    harness.remove(harness.items("C#")["C#2#"])
    reader = AncestorReader(harness.process().storage, PARTITION, below="3")
    assert _back(harness, reader, "3", "1") == []


def test_a_cycle_of_parents_has_an_end() -> None:
    harness = _chain("1", "2", "3")
    harness.change(harness.items("C#")["C#1#"], parent={"S": "3"})
    reader = AncestorReader(harness.process().storage, PARTITION)
    assert _back(harness, reader, "3", "") == ["2", "1"]
    newest = harness.run(AncestorReader(harness.process().storage, PARTITION).newest())
    assert newest is not None
    assert newest.checkpoint_id == "3"


# The newest checkpoint


def test_an_empty_checkpoint_id_means_the_newest(harness: Harness) -> None:
    harness.run(harness.process().put("2", {"x": 2}, ""))
    assert harness.process().values("") == {"x": 2}
    assert harness.process().found("2").parent_config is None


def test_a_put_and_a_prune_come_between_the_requests_of_a_reader(harness: Harness, process: Process) -> None:
    """Writes come before their head, so that the newest checkpoint's items need not be on the first page."""
    harness.run(process.put("1", {"text": "oldest"}))
    harness.run(process.put("2", {"text": "older"}, "1"))
    for each in ("2", "3"):
        harness.run(process.put_writes(each, [("text", each)]))
    read = harness.begin(harness.process().read())
    read.until(lambda call: call.method == "query")
    read.go_on()
    harness.run(process.put("3", {"text": "newest"}, "2"))
    harness.run(harness.process().prune())
    found = read.finish()
    assert found is not None
    assert found.checkpoint["channel_values"] == {"text": "newest"}
