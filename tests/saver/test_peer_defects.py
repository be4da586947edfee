"""Defects found in other DynamoDB savers that the public conformance suite does not catch.

Each docstring says what went wrong there and what has to hold here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import writes_sort_key

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import NO_SECOND_OPINION
from tests.support.checkpoints import (
    METADATA,
    all_items,
    checkpoint_of,
    noise,
    store,
    thread_config,
)
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


pytestmark = NO_SECOND_OPINION


def test_writes_come_back_in_the_order_in_which_a_run_applies_them(saver: DynamoDBSaver) -> None:
    """A peer sorted writes as text (0, 1, 10, 11, 2), by task id, and did not look at the task path.

    The order is LangGraph's `writes_sort_key`: the task path first, then the task, then the number.
    """
    config = store(saver, thread_config(), "1", {"a": 1})
    paths = {"task-a": "~__pregel_pull, z", "task-c": "~__pregel_pull, b", "task-b": "~__pregel_pull, b"}
    for task_id, task_path in paths.items():
        saver.put_writes(config, [("channel", number) for number in range(12)], task_id, task_path)
    found = saver.get_tuple(config)
    assert found is not None
    expected = sorted(
        ((task_id, "channel", number) for task_id in paths for number in range(12)),
        key=lambda write: writes_sort_key(paths[write[0]], write[0], write[2]),
    )
    assert found.pending_writes == expected
    assert [write[0] for write in expected[::12]] == ["task-b", "task-c", "task-a"]


def test_the_caller_s_metadata_is_added_and_replaces_nothing(saver: DynamoDBSaver) -> None:
    """A peer let `config["metadata"]` replace `source` and `step`, and left the configurable keys out.

    What LangGraph says of a checkpoint stays; what the caller says is added to it.
    """
    config: RunnableConfig = {
        "configurable": {"thread_id": "thread-1", "checkpoint_ns": "", "tenant": "acme", "step": -7},
        "metadata": {"source": "forged", "step": 99, "user": "ann"},
    }
    stored = saver.put(config, checkpoint_of("1", {}), {"source": "loop", "step": 3, "parents": {}}, {})
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata == {"source": "loop", "step": 3, "parents": {}, "tenant": "acme", "user": "ann"}
    assert [each.metadata for each in saver.list(thread_config(), filter={"step": 3, "tenant": "acme"})] == [
        found.metadata
    ]


def test_what_does_not_fit_into_a_page_is_read_too(
    saver: DynamoDBSaver, traffic: Traffic, client: DynamoDBClient, table_name: str
) -> None:
    """A peer read the first megabyte of a query only: of six large checkpoints three came back.

    Every page is read: by a list, by the copy and by the deletion of a thread.
    """
    # Values of up to 512 bytes stay in the head, and a head holds up to 32 KiB of them.
    values = {f"channel-{number}": noise(480, number) for number in range(60)}
    ids = [f"{number:02}" for number in range(60)]
    for checkpoint_id in ids:
        # Another first byte makes every value of this checkpoint new.
        store(
            saver,
            thread_config(),
            checkpoint_id,
            {name: checkpoint_id.encode() + v for name, v in values.items()},
        )
    assert sum(len(item["body"]["B"]) for item in all_items(client, table_name) if "body" in item) > 2**20

    traffic.clear()
    listed = list(saver.list(thread_config()))
    assert [each.config["configurable"]["checkpoint_id"] for each in listed] == ids[::-1]
    assert all(
        each.checkpoint["channel_values"]["channel-7"]
        == each.config["configurable"]["checkpoint_id"].encode() + values["channel-7"]
        for each in listed
    )
    assert traffic.operations.count("Query") > 1

    saver.copy_thread("thread-1", "copy")
    assert len(list(saver.list(thread_config("copy")))) == len(ids)
    saver.delete_thread("thread-1")
    saver.delete_thread("copy")
    assert all_items(client, table_name) == []


def _consistency(traffic: Traffic, operation: str) -> set[bool]:
    return {
        request.params.get("ConsistentRead", False)
        for request in traffic.requests
        if request.operation == operation
    }


def test_checkpoints_are_read_strongly_consistent(
    own_client: DynamoDBClient, table_name: str, traffic: Traffic
) -> None:
    """A peer read eventually consistent: the next message found the state before the last, and forked the thread."""
    writer = DynamoDBSaver(table_name, client=own_client)
    first = store(writer, thread_config(), "1", {"a": 1})
    traffic.clear()
    writer.get_tuple(thread_config())
    writer.get_tuple(first)
    list(writer.list(thread_config()))
    assert traffic.operations == ["Query"] * 3
    assert _consistency(traffic, "Query") == {True}

    # A saver that knows nothing yet reads the parent of what it is to store.
    traffic.clear()
    fresh = DynamoDBSaver(table_name, client=own_client)
    fresh.put(first, checkpoint_of("2", {"a": 1}), METADATA, {})
    assert traffic.operations.count("GetItem") >= 2
    assert _consistency(traffic, "GetItem") == {True}
    writer.delete_thread("thread-1")
    assert _consistency(traffic, "Query") == {True}
