"""Defects found in other DynamoDB savers that the public conformance suite does not catch.

Each docstring says what went wrong there and what has to hold here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import boto3
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import writes_sort_key
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, DynamoDBSaver
from tests.conftest import NO_SECOND_OPINION
from tests.support.checkpoints import (
    METADATA,
    all_items,
    checkpoint_of,
    noise,
    store,
    stored_values,
    thread_config,
)
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

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


def test_a_payload_that_is_missing_is_an_error(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    """A peer read a checkpoint whose payload had gone as no checkpoint at all, and the thread began anew.

    It is an error that names the item, by whichever way the checkpoint is asked for; never an older state.
    """
    parent = store(saver, thread_config(), "1", {"small": 1})
    config = store(saver, parent, "2", {"big": noise(50_000)})
    saver.put_writes(parent, [("channel", noise(100_000))], "task")
    assert stored_values(saver, thread_config()) == {"big": noise(50_000)}
    reader = DynamoDBSaver(table_name, client=client)
    segments = [each for each in all_items(client, table_name) if each["SK"]["S"].startswith("S#")]
    for segment in segments:
        client.delete_item(TableName=table_name, Key={"PK": segment["PK"], "SK": segment["SK"]})

    asked: list[Callable[[], Any]] = [
        lambda: reader.get_tuple(thread_config()),
        lambda: reader.get_tuple(config),
        lambda: reader.get_tuple(parent),
        lambda: list(reader.list(thread_config())),
        lambda: list(reader.list(thread_config(), limit=1)),
    ]
    for ask in asked:
        with pytest.raises(CheckpointCorruptionError, match=r"PK='thread-1#' SK='C#[12]#.*missing.*restore"):
            ask()
    with pytest.raises(CheckpointCorruptionError, match="SK='C#2#'"):
        DynamoDBSaver(table_name, client=client).put(config, checkpoint_of("3", {"small": 2}), METADATA, {})


DATA_PLANE = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem"}


class _State(TypedDict):
    messages: Annotated[list[str], operator.add]


def _agent(saver: DynamoDBSaver) -> Any:
    """Build an agent that calls a tool, asks a person, and answers."""

    def model(state: _State) -> dict[str, list[str]]:
        return {"messages": [f"call {len(state['messages'])}"]}

    def tool(state: _State) -> dict[str, list[str]]:
        del state
        return {"messages": ["x" * 20_000, str(interrupt("go on?"))]}

    def route(state: _State) -> str:
        return "tool" if len(state["messages"]) < 3 else END

    builder = StateGraph(_State)
    builder.add_node("model", model)
    builder.add_node("tool", tool)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", route, ["tool", END])
    builder.add_edge("tool", "model")
    return builder.compile(checkpointer=saver)


def test_an_agent_needs_permissions_for_items_only(
    engine: Engine, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer's constructor wrote the life-cycle rules of a bucket, which takes an administrator's permissions.

    The constructor asks for nothing, and an agent's run, its history, its forks and its deletion are requests
    for items of one table, and of no other service.
    """
    session = boto3.Session()
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", session)
    traffic = Traffic(session.events)
    saver = DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url, ttl_seconds=3600)
    assert traffic.requests == []
    with saver:
        agent = _agent(saver)
        config = thread_config()
        assert "__interrupt__" in agent.invoke({"messages": ["hello"]}, config)
        answer = agent.invoke(Command(resume="yes"), config)
        assert answer["messages"][-2:] == ["yes", "call 4"]
        history = list(agent.get_state_history(config))
        agent.update_state(history[2].config, {"messages": ["another way"]})
        saver.copy_thread("thread-1", "copy")
        saver.prune(["copy"])
        saver.delete_thread("copy")
        saver.delete_thread("thread-1")
    assert {request.service for request in traffic.requests} == {"dynamodb"}
    # With a ttl it asks once whether the table removes what expires, for the log. It does without an answer, too.
    assert set(traffic.operations) <= DATA_PLANE | {"DescribeTimeToLive"}
    tables = {request.params.get("TableName") for request in traffic.requests} - {None}
    batches = {name for request in traffic.requests for name in request.params.get("RequestItems", ())}
    assert tables | batches == {table_name}


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
