"""How many requests operations make, and what they consume: promises that a change could break unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Send

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import Conversation, thread_config
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What is counted is what the saver sends.
pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def write_units() -> list[float]:
    """Give the write units of the saver's operations."""
    return []


@pytest.fixture
def saver(
    own_client: DynamoDBClient, table_name: str, traffic: Traffic, write_units: list[float]
) -> Iterator[DynamoDBSaver]:
    """Give a saver whose requests are recorded, and whose units are counted."""
    del traffic
    options: Any = {"on_event": lambda event: write_units.append(event.write_units or 0.0)}
    with DynamoDBSaver(table_name, client=own_client, **options) as saver:
        yield saver


def _messages(count: int) -> list[HumanMessage]:
    return [
        HumanMessage(f"{number} " + "and so on, at some length, " * 20, id=str(number))
        for number in range(count)
    ]


def test_a_thousand_sends_cost_less_than_twenty_write_units(
    saver: DynamoDBSaver, traffic: Traffic, write_units: list[float]
) -> None:
    config = Conversation(saver, "t").put(count=0)
    sends = [("__pregel_tasks", Send("worker", {"index": index})) for index in range(1_000)]
    traffic.clear()
    write_units.clear()
    saver.put_writes(config, sends, "plan")
    assert traffic.operations == ["UpdateItem"]
    assert 0 < sum(write_units) < 20


@pytest.mark.parametrize("resumed", [False, True])
def test_a_task_that_writes_its_whole_state_again_costs_what_it_adds(
    saver: DynamoDBSaver, write_units: list[float], table_name: str, client: DynamoDBClient, *, resumed: bool
) -> None:
    """As agents without a reducer do, in the process that stored the checkpoint or in one that read it."""
    config = Conversation(DynamoDBSaver(table_name, client=client) if resumed else saver, "t").put(
        messages=_messages(1_500)
    )
    if resumed:
        saver.get_tuple(thread_config("t"))
    write_units.clear()
    saver.put_writes(config, [("messages", _messages(1_501)), ("count", 1)], "task")
    assert 0 < sum(write_units) < 25
    found = saver.get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", "messages", _messages(1_501)), ("task", "count", 1)]


def test_equal_segments_of_a_list_are_read_once(saver: DynamoDBSaver, traffic: Traffic) -> None:
    conversation = Conversation(saver, "t")
    conversation.put(documents=_messages(3000))
    for count in range(8):
        conversation.put(count=count)
    traffic.clear()
    assert len(list(saver.list(thread_config("t"), limit=8))) == 8
    # One for the checkpoints, and one for the segments.
    assert traffic.operations == ["Query", "Query"]
