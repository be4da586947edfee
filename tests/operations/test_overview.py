"""What a list says of a thread, without its values: `lines`, `is_stored` and the threads of a run."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb._format import items, pricing
from langgraph.checkpoint.dynamodb._operations import overview
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.support.checkpoints import noise
from tests.support.harness import ENCRYPTED, TABLE, THREAD, Harness


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
    newest, oldest = harness.run(
        collected(overview.lines(harness.process().storage, items.partition_of(THREAD)))
    )
    assert (newest.checkpoint_id, newest.parent_id, newest.tasks, newest.status) == ("2", "1", 1, "waiting")
    assert (oldest.checkpoint_id, oldest.parent_id, oldest.tasks, oldest.status) == ("1", None, 0, "idle")
    assert newest.metadata is not None
    assert newest.metadata["source"] == "update"


def test_a_deleted_thread_is_not_stored_though_its_item_is_left() -> None:
    harness = _thread()
    storage = harness.process().storage
    assert harness.run(overview.is_stored(storage, THREAD))
    assert harness.run(overview.threads_of_run(storage, "run-1")) == [THREAD]
    harness.run(harness.process().delete_thread())
    assert not harness.run(overview.is_stored(storage, THREAD))
    assert harness.run(overview.threads_of_run(storage, "run-1")) == []


@pytest.mark.parametrize("with_bytes", [False, True])
def test_a_scan_finds_each_thread_once(harness: Harness, *, with_bytes: bool) -> None:
    for number, thread, namespace in (
        (1, "a", ""),
        (2, "a", ""),
        (3, "a", "child"),
        (1, "b", ""),
        (1, "c", "child"),
    ):
        harness.run(harness.process().put(str(number), {}, thread=thread, namespace=namespace))
    harness.run(harness.process().put_writes("2", [("x", 1)], thread="a"))
    harness.run(harness.process().put("1", {}, thread="d"))
    harness.run(harness.process().delete_thread("d"))
    run = harness.begin(collected(overview.scan_threads(harness.process().storage, with_bytes=with_bytes)))
    assert [call.params["Segment"] for call in run.calls] == list(range(8))
    assert {call.params["TotalSegments"] for call in run.calls} == {8}
    page: Any = {"Items": harness.model.items(), "ScannedCount": 20}
    if not with_bytes:
        assert run.calls[0].params["FilterExpression"] == "begins_with(#sk, :checkpoints)"
        assert run.calls[0].params["ExpressionAttributeValues"] == {":checkpoints": {"S": "C#"}}
    empty = {"Items": [], "ScannedCount": 0}
    # Two parts are done at once, and one has another page.
    run.go_on([{**page, "LastEvaluatedKey": page["Items"][0]}, page, *[empty] * 6])
    assert len(run.calls) == 1
    run.go_on([page])
    first, second = run.finish()
    assert sorted(first.thread_ids) == ["a", "b", "c"]
    assert (first.scanned_items, second.scanned_items) == (40, 20)
    assert second.thread_ids == []
    assert first.newest == second.newest == {"a": "C#2#W#task", "b": "C#1#"}
    sizes: dict[str, int] = {}
    for item in harness.model.items():
        thread = item["PK"]["S"].split("#")[0] + "#"
        sizes[thread] = sizes.get(thread, 0) + pricing.item_bytes(item)
    assert second.bytes == (sizes if with_bytes else {})


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"Table": {"ItemCount": 3, "TableSizeBytes": 7}}, overview.Extent(3, 7)),
        (ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, "an operation"), None),
    ],
)
def test_the_size_of_a_table_is_what_dynamodb_says(
    harness: Harness, answer: Any, found: overview.Extent | None
) -> None:
    run = harness.begin(overview.extent(harness.process().storage))
    assert [(call.method, call.params) for call in run.calls] == [("describe_table", {"TableName": TABLE})]
    run.go_on([answer])
    assert run.finish() == found


@pytest.mark.parametrize("namespace", ["", "child"])
def test_a_thread_without_a_checkpoint_of_its_root_may_be_stored(harness: Harness, namespace: str) -> None:
    storage = harness.process().storage
    harness.run(harness.process().put("1", {}, namespace=namespace))
    for begins in ("C#", "T"):
        for item in harness.items(begins).values():
            harness.remove(item)
    assert harness.run(overview.is_stored(storage, THREAD)) == bool(namespace)
    harness.change({"PK": {"S": f"{THREAD}#"}, "SK": {"S": "T"}}, last_active={"N": "1"})
    assert harness.run(overview.is_stored(storage, THREAD))


def test_metadata_of_another_key_are_none(harness: Harness) -> None:
    harness.run(harness.process(codec=ENCRYPTED).put("1", {}, note="x" * 20_000))
    for codec in (None, ENCRYPTED):
        storage = harness.process(codec=codec).storage
        (line,) = harness.run(collected(overview.lines(storage, items.partition_of(THREAD))))
        assert (line.metadata is None) == (codec is None)
