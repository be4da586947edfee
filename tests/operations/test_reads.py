"""What is opened without a request, and how the ancestors and the newest checkpoint are found."""

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.reads import AncestorReader, LoadedSegments, open_cached
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, Harness, Process, asks

PARTITION = items.partition_of(THREAD)


def test_what_is_cached_under_an_epoch_is_opened_without_a_request(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"x": noise(60_000)}))
    named, process = items.named_ids(harness.items("C#").values()), harness.process()
    process.get("1")
    epoch = items.binary(harness.items("C#")["C#1#"], items.EPOCH)
    found = open_cached(process.storage, PARTITION, epoch, [*named, bytes(8)])
    loaded = LoadedSegments(PARTITION.pk)
    harness.run(loaded.read(process.storage, named))
    assert found == loaded.contents != {}
    assert open_cached(process.storage, PARTITION, b"other", named) == {}


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
    read = harness.begin(harness.process().read()).until(asks("query"))
    read.go_on()
    harness.run(process.put("3", {"text": "newest"}, "2"))
    harness.run(harness.process().prune())
    found = read.finish()
    assert found is not None
    assert found.checkpoint["channel_values"] == {"text": "newest"}
