"""How many requests operations make, and what they consume: promises that a change could break unnoticed."""

from __future__ import annotations

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
def write_units(own_client: DynamoDBClient) -> list[float]:
    """Give the write units of every request from now on, as the engine reports them."""
    units: list[float] = []

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: dict[str, Any], **_: Any) -> None:
        consumed = parsed.get("ConsumedCapacity") or []
        each_table = consumed if isinstance(consumed, list) else [consumed]
        units.extend(each["CapacityUnits"] for each in each_table)

    for operation in ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"):
        own_client.meta.events.register(f"provide-client-params.dynamodb.{operation}", ask)
        own_client.meta.events.register(f"after-call.dynamodb.{operation}", note)
    return units


def _messages(count: int) -> list[HumanMessage]:
    return [
        HumanMessage(f"{number} " + "and so on, at some length, " * 20, id=str(number))
        for number in range(count)
    ]


def test_small_operations_make_as_few_requests_as_they_can(saver: DynamoDBSaver, traffic: Traffic) -> None:
    conversation = Conversation(saver, "t")
    conversation.put(messages=_messages(3))
    traffic.clear()
    config = conversation.put(messages=_messages(4))
    assert traffic.operations == ["PutItem", "GetItem"]
    traffic.clear()
    saver.put_writes(config, [("messages", _messages(2)), ("branch", None)], "task")
    assert traffic.operations == ["UpdateItem"]
    traffic.clear()
    saver.get_tuple(thread_config("t"))
    assert traffic.operations == ["Query"]
    traffic.clear()
    saver.put_writes(config, [], "idle")
    assert traffic.operations == []


def test_a_step_that_leaves_a_large_channel_alone_does_not_write_it(
    saver: DynamoDBSaver, traffic: Traffic
) -> None:
    conversation = Conversation(saver, "t")
    conversation.put(documents=_messages(1_000), count=0)
    conversation.put(count=1)
    traffic.clear()
    conversation.put(count=2)
    assert traffic.operations == ["PutItem", "GetItem"]


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


def test_a_list_that_grows_costs_what_it_gains(saver: DynamoDBSaver, write_units: list[float]) -> None:
    conversation = Conversation(saver, "t")
    conversation.put(messages=_messages(1_500))
    write_units.clear()
    for count in range(1_501, 1_521):
        conversation.put(messages=_messages(count))
    assert 0 < sum(write_units) / 20 < 12


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_large_state_is_read_in_three_requests(
    saver: DynamoDBSaver, traffic: Traffic, table_name: str, client: DynamoDBClient, *, interrupted: bool
) -> None:
    config = Conversation(DynamoDBSaver(table_name, client=client), "t").put(messages=_messages(650))
    if interrupted:
        saver.put_writes(config, [("__interrupt__", ("May I?",))], "task")
    traffic.clear()
    found = saver.get_tuple(thread_config("t"))
    assert found is not None
    assert len(saver.serde.dumps_typed(found.checkpoint["channel_values"])[1]) > 360_000
    assert len(traffic.operations) <= 3


def test_a_list_requests_nothing_before_it_is_asked(saver: DynamoDBSaver, traffic: Traffic) -> None:
    conversation = Conversation(saver, "t")
    for count in range(40):
        conversation.put(count=count)
    traffic.clear()
    listed = saver.list(thread_config("t"), limit=2)
    assert traffic.operations == []
    assert [each.metadata["step"] for each in listed] == [39, 38]
    assert traffic.operations == ["Query"]


def test_equal_segments_of_a_list_are_read_once(saver: DynamoDBSaver, traffic: Traffic) -> None:
    conversation = Conversation(saver, "t")
    conversation.put(documents=_messages(300))
    for count in range(8):
        conversation.put(count=count)
    traffic.clear()
    assert len(list(saver.list(thread_config("t"), limit=8))) == 8
    assert traffic.operations.count("BatchGetItem") == 1


def test_a_thread_is_deleted_in_batches(
    saver: DynamoDBSaver, traffic: Traffic, own_client: DynamoDBClient, table_name: str
) -> None:
    conversation = Conversation(saver, "t")
    for count in range(100):
        saver.put_writes(conversation.put(count=count), [("count", count + 1)], "task")
    traffic.clear()
    DynamoDBSaver(table_name, client=own_client).delete_thread("t")
    # Two hundred items in batches of 25, the newest head alone, and the claim, the epoch and the readings.
    assert traffic.operations.count("BatchWriteItem") <= 9
    assert len(traffic.operations) <= 9 + 7
