"""Lists of partitions by the index: each is written once an hour and process, and found without a scan."""

from langgraph.checkpoint.dynamodb._format.items import key, partition_key
from langgraph.checkpoint.dynamodb._operations.listed_partitions import (
    LISTED_SECONDS,
    ensure_listed,
    listed,
)
from tests.support.harness import Harness


def test_a_partition_is_listed_once_an_hour_under_the_mark_of_its_list(harness: Harness) -> None:
    table, kept = harness.process().storage.table, dict[str, float]()

    def put(*partitions: str) -> None:
        harness.run(ensure_listed(table, "%M#", partitions, lambda pk: key(pk, "R"), kept, harness.now))

    put("a/%M#", "b/%M#", "a/%M#")
    begun = harness.now
    assert kept == {"a/%M#": begun, "b/%M#": begun}
    harness.now += LISTED_SECONDS - 1
    put("a/%M#", "c/%M#")
    assert kept["a/%M#"] == begun
    harness.now += 1
    put("a/%M#")
    # What is due again is forgotten: the index has it, and a process may run for years.
    assert kept == {"a/%M#": begun + LISTED_SECONDS, "c/%M#": begun + LISTED_SECONDS - 1}
    assert harness.run(listed(table, "%M#", partition_key)) == {"a/%M#", "b/%M#", "c/%M#"}
    assert harness.run(listed(table, "%M#", partition_key, "b/")) == {"b/%M#"}
    assert harness.run(listed(table, "%K#", partition_key)) == set()


def test_a_run_whose_id_is_the_name_of_a_list_is_not_in_it(harness: Harness) -> None:
    process, pk = harness.process(), "a/%N#"
    table = process.storage.table
    harness.run(ensure_listed(table, "%N#", [pk], lambda pk: key(pk, "P#"), {}, harness.now))
    for shard in range(4):
        harness.run(process.put(str(shard), {}, run_id=f"%N#{shard}"))
    assert harness.run(listed(table, "%N#", partition_key)) == {pk}
