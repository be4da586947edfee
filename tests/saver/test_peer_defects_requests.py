"""Defects found in other DynamoDB savers, as in `test_peer_defects_answers`: what is asked of AWS, and how."""

from __future__ import annotations

import asyncio
import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import boto3
import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import NO_SECOND_OPINION
from tests.support.checkpoints import METADATA, checkpoint_of, noise, store, thread_config
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = NO_SECOND_OPINION

DATA_PLANE = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem"}


def test_defect_03_requests_do_not_grow_with_the_writes_or_the_checkpoints_of_a_page(
    saver: DynamoDBSaver, traffic: Traffic
) -> None:
    """A peer made 24 requests for 12 writes, 15 to read them back, and 21 to list five checkpoints.

    Here the writes of a call are one request, a checkpoint with its writes is one, and so is a short list.
    """
    config = thread_config()
    for number in range(5):
        config = store(saver, config, str(number), {"a": number})
    traffic.clear()
    saver.put_writes(config, [("channel", number) for number in range(12)], "task")
    assert traffic.operations == ["UpdateItem"]
    traffic.clear()
    found = saver.get_tuple(thread_config())
    assert found is not None
    assert len(found.pending_writes or ()) == 12
    assert traffic.operations == ["Query"]
    traffic.clear()
    assert len(list(saver.list(thread_config(), limit=5))) == 5
    assert traffic.operations == ["Query"]


def test_defect_11_one_saver_serves_one_event_loop_after_the_other(
    engine: Engine, table_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A peer kept its async client, so that the second `asyncio.run` ended with "Event loop is closed".

    A saver of module level, as a Lambda function has it, works on every loop that comes, with native async.
    """
    saver = DynamoDBSaver(table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name)

    async def step(number: int) -> int:
        config = thread_config(checkpoint_id=str(number - 1) if number else None)
        checkpoint = checkpoint_of(str(number), {"number": number, "big": noise(50_000)})
        await saver.aput(config, checkpoint, METADATA, checkpoint["channel_versions"])
        return len([each async for each in saver.alist(thread_config())])

    assert [asyncio.run(step(number)) for number in range(3)] == [1, 2, 3]
    assert "in threads" not in caplog.text


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


def test_defect_13_an_agent_needs_permissions_for_items_only(
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


def test_defect_16_checkpoints_are_read_strongly_consistent(
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
