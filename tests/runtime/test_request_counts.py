"""How many requests operations make, and what they consume: promises that a change could break unnoticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
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


def _delta_chain(
    saver: DynamoDBSaver, steps: int, *, tasks: int = 1, counter: object = "steps"
) -> RunnableConfig:
    """Store twenty checkpoints of a delta channel, one with its snapshot, and so many that count from that one."""
    config: RunnableConfig = thread_config("t")
    for number in range(21 + steps):
        since = number - 20 if number >= 20 else number
        checkpoint = empty_checkpoint()
        checkpoint["id"], checkpoint["channel_versions"] = f"{number:04}", {"log": 1 + number}
        if number == 20:
            checkpoint["channel_values"] = {"log": ["snapshot"]}
        counted = (since, since) if counter == "steps" else counter
        metadata: Any = {"step": number, "counters_since_delta_snapshot": {"log": counted}}
        config = saver.put(config, checkpoint, metadata, {"log": 1 + number})
        for task in range(tasks):
            saver.put_writes(config, [("log", [number])], f"task {task}")
    return config


def test_a_step_may_have_many_tasks(saver: DynamoDBSaver, traffic: Traffic) -> None:
    config = _delta_chain(saver, 60, tasks=4)
    for asked in (config, thread_config("t")):
        traffic.clear()
        history = saver.get_delta_channel_history(config=asked, channels=["log"])
        assert len(history["log"]["writes"]) == 240
        # How many they are shows where others have been read.
        assert len(traffic.operations) <= 3


def test_a_near_snapshot_is_reached_without_reading_what_lies_before_it(
    saver: DynamoDBSaver, traffic: Traffic, own_client: DynamoDBClient
) -> None:
    config = _delta_chain(saver, 3)
    counts: list[int] = []
    own_client.meta.events.register(
        "after-call.dynamodb.Query", lambda parsed, **_: counts.append(parsed["Count"])
    )
    traffic.clear()
    history = saver.get_delta_channel_history(config=config, channels=["log"])
    assert history["log"]["seed"] == ["snapshot"]
    assert len(history["log"]["writes"]) == 3
    assert traffic.operations == ["Query", "Query"]
    assert sum(counts) < 16


@pytest.mark.parametrize("counter", [5, [5], ["5", "5"], [1, 10**18], [1, -300], [0, 0], None])
def test_counters_that_an_application_made_up_do_no_harm(
    saver: DynamoDBSaver, traffic: Traffic, counter: object
) -> None:
    config = _delta_chain(saver, 20, counter=counter)
    traffic.clear()
    history = saver.get_delta_channel_history(config=config, channels=["log"])
    assert len(history["log"]["writes"]) == 20
    assert len(traffic.operations) <= 4
