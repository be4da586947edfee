"""Calls over several threads: one that is damaged or busy does not keep the others from being served."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerError,
    CheckpointFormatError,
    DynamoDBSaver,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations import threads
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.change import change_requests
from tests.support.checkpoints import all_items, store, thread_config
from tests.support.operations import Side, ask, both_sides

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver = Callable[..., DynamoDBSaver]
Hurt = Callable[..., None]

pytestmark = pytest.mark.engines("dynamodb-local")

THREADS = ["a", "b", "c", "d"]
DAMAGE: dict[str, tuple[str, Any]] = {
    "body": (items.BODY, {"B": b"\0"}),
    "format": (items.FORMAT, {"N": "99"}),
}
DELETIONS: dict[str, tuple[Any, ...]] = {"delete_for_runs": (["run"],), "prune": (THREADS,)}


@pytest.fixture
def hurt(client: DynamoDBClient, table_name: str) -> Hurt:
    """Give what damages a thread's newest head, in one of two ways."""

    def hurt(thread_id: str, kind: str = "body") -> None:
        name, value = DAMAGE[kind]
        client.update_item(
            TableName=table_name,
            Key=items.key(items.partition_of(thread_id).pk, items.checkpoint_prefix("2")),
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": value},
        )

    return hurt


def _fill(saver: DynamoDBSaver) -> None:
    for thread_id in THREADS:
        first = store(saver, thread_config(thread_id), "1", {"value": 1}, run_id="run")
        store(saver, first, "2", {"value": 2}, run_id="run" if thread_id == "a" else "other")


def _untouched(client: DynamoDBClient, table_name: str) -> list[str]:
    """The threads whose first checkpoint is still there."""
    heads = all_items(client, table_name, begins=items.checkpoint_prefix("1"))
    return [items.parse_partition(items.partition_key(each)).thread_id for each in heads]


@both_sides
@pytest.mark.parametrize("method", DELETIONS)
def test_a_damaged_thread_does_not_keep_others_from_being_deleted_from(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, hurt: Hurt, side: Side, method: str
) -> None:
    _fill(make_saver())
    hurt("b")
    with pytest.raises(CheckpointCorruptionError, match=r"PK='b#'"):
        ask(side, make_saver(), method, *DELETIONS[method])
    assert _untouched(client, table_name) == ["b"]


@pytest.mark.parametrize("method", DELETIONS)
def test_of_several_damaged_threads_the_error_names_all(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, hurt: Hurt, method: str
) -> None:
    _fill(make_saver())
    hurt("b", "format")
    hurt("d")
    with pytest.raises(CheckpointFormatError, match=r"2 .* thread 'b', thread 'd'; .*PK='b#'") as caught:
        ask("sync", make_saver(), method, *DELETIONS[method])
    assert isinstance(caught.value.__cause__, CheckpointFormatError)
    assert _untouched(client, table_name) == ["b", "d"]


@pytest.mark.parametrize("method", DELETIONS)
def test_a_thread_that_is_being_deleted_does_not_keep_others_from_it(
    make_saver: MakeSaver,
    client: DynamoDBClient,
    table_name: str,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    monkeypatch.setattr(threads, "BACKOFF_SECONDS_TOTAL", 0.0)
    _fill(make_saver())
    storage = make_saver().storage
    root = items.partition_of("b")
    make_saver().runner.run(threads.acquire_claim(storage, root, b"somebody", resets=False))
    with pytest.raises(ThreadBusyError, match=r"[Tt]hread 'b'"):
        ask("sync", make_saver(), method, *DELETIONS[method])
    assert _untouched(client, table_name) == ["b"]


def test_an_error_that_is_of_no_thread_ends_a_deletion_at_once(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    saver = make_saver()
    _fill(saver)

    def send(call: Call) -> Any:
        if "b#" in str(call.params):
            raise ConnectionError("of the network")
        return saver.transport.send(call)

    change_requests(saver, send=send)
    with pytest.raises(ConnectionError, match="of the network"):
        saver.prune(THREADS)
    assert _untouched(client, table_name) == ["b", "c", "d"]


@pytest.mark.parametrize("metadata", [None, {"run_id": "other"}], ids=["scan", "index"])
async def test_a_list_of_everything_goes_on_behind_what_is_damaged(
    make_saver: MakeSaver, hurt: Hurt, metadata: dict[str, str] | None
) -> None:
    saver = make_saver()
    _fill(saver)
    hurt("b")
    hurt("c", "format")
    expected = ["a", "a", "d", "d"] if metadata is None else ["d"]
    both_named = pytest.raises(CheckpointerError, match=r"PK='b#', PK='c#'|PK='c#', PK='b#'")
    listed: list[str] = []
    with both_named:
        for each in saver.list(None, filter=metadata):
            listed.append(each.config["configurable"]["thread_id"])  # noqa: PERF401 - up to the error.
    assert sorted(listed) == expected
    listed.clear()
    with both_named:
        async for each in saver.alist(None, filter=metadata):
            listed.append(each.config["configurable"]["thread_id"])  # noqa: PERF401 - up to the error.
    assert sorted(listed) == expected
