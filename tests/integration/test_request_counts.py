"""How many requests operations make, and what they consume: promises that a change could break unnoticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Send

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import Conversation, thread_config

MakeSaver = Callable[..., DynamoDBSaver]


class Meter:
    """Counts the requests of a client by operation, and adds up the write units that the engine reports."""

    def __init__(self, client: Any) -> None:
        """Start to listen."""
        self.calls: Counter[str] = Counter()
        self.write_units = 0.0
        self.read_units = 0.0
        client.meta.events.register("provide-client-params.dynamodb", self._ask)
        client.meta.events.register("after-call.dynamodb", self._note)

    def _ask(self, params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def _note(self, model: Any, parsed: dict[str, Any], **_: Any) -> None:
        self.calls[model.name] += 1
        consumed = parsed.get("ConsumedCapacity") or []
        units = sum(
            each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed])
        )
        if model.name in ("Query", "GetItem", "BatchGetItem"):
            self.read_units += units
        else:
            self.write_units += units

    @contextmanager
    def measured(self) -> Iterator[Meter]:
        """Count only what happens inside."""
        self.calls.clear()
        self.write_units = self.read_units = 0.0
        yield self


@pytest.fixture
def metered(make_saver: MakeSaver) -> tuple[DynamoDBSaver, Meter]:
    """A saver that has opened its client, and the meter of that client."""
    saver = make_saver()
    saver.get_tuple(thread_config("none"))
    return saver, Meter(saver._clients._blocking_client())


def _messages(count: int) -> list[HumanMessage]:
    return [
        HumanMessage(f"{number} " + "and so on, at some length, " * 20, id=str(number))
        for number in range(count)
    ]


def test_small_operations_make_as_few_requests_as_they_can(metered: tuple[DynamoDBSaver, Meter]) -> None:
    saver, meter = metered
    conversation = Conversation(saver, "t")
    conversation.put(messages=_messages(3))
    with meter.measured():
        config = conversation.put(messages=_messages(4))
    assert meter.calls == {"PutItem": 1, "GetItem": 1}
    with meter.measured():
        saver.put_writes(config, [("messages", _messages(2)), ("branch", None)], "task")
    assert meter.calls == {"UpdateItem": 1}
    with meter.measured():
        saver.get_tuple(thread_config("t"))
    assert meter.calls == {"Query": 1}
    with meter.measured():
        saver.put_writes(config, [], "idle")
    assert meter.calls == {}


def test_a_step_that_leaves_a_large_channel_alone_does_not_write_it(
    metered: tuple[DynamoDBSaver, Meter],
) -> None:
    saver, meter = metered
    conversation = Conversation(saver, "t")
    conversation.put(documents=_messages(1_000), count=0)
    conversation.put(count=1)
    with meter.measured():
        conversation.put(count=2)
    assert meter.calls == {"PutItem": 1, "GetItem": 1}


@pytest.mark.engines("dynamodb-local")
def test_a_thousand_sends_cost_less_than_twenty_write_units(metered: tuple[DynamoDBSaver, Meter]) -> None:
    saver, meter = metered
    config = Conversation(saver, "t").put(count=0)
    sends = [("__pregel_tasks", Send("worker", {"index": index})) for index in range(1_000)]
    with meter.measured():
        saver.put_writes(config, sends, "plan")
    assert meter.calls == {"UpdateItem": 1}
    assert 0 < meter.write_units < 20


@pytest.mark.engines("dynamodb-local")
def test_a_list_that_grows_costs_what_it_gains(metered: tuple[DynamoDBSaver, Meter]) -> None:
    saver, meter = metered
    conversation = Conversation(saver, "t")
    conversation.put(messages=_messages(1_500))
    with meter.measured():
        for count in range(1_501, 1_521):
            conversation.put(messages=_messages(count))
    assert 0 < meter.write_units / 20 < 12


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_large_state_is_read_in_three_requests(
    metered: tuple[DynamoDBSaver, Meter], make_saver: MakeSaver, *, interrupted: bool
) -> None:
    saver, meter = metered
    config = Conversation(make_saver(), "t").put(messages=_messages(650))
    if interrupted:
        saver.put_writes(config, [("__interrupt__", ("May I?",))], "task")
    with meter.measured():
        found = saver.get_tuple(thread_config("t"))
    assert found is not None
    assert len(saver.serde.dumps_typed(found.checkpoint["channel_values"])[1]) > 360_000
    assert meter.calls.total() <= 3


def test_a_list_requests_nothing_before_it_is_asked(metered: tuple[DynamoDBSaver, Meter]) -> None:
    saver, meter = metered
    conversation = Conversation(saver, "t")
    for count in range(40):
        conversation.put(count=count)
    with meter.measured():
        listed = saver.list(thread_config("t"), limit=2)
        assert meter.calls == {}
        assert [each.metadata["step"] for each in listed] == [39, 38]
    assert meter.calls == {"Query": 1}


def test_equal_segments_of_a_list_are_read_once(metered: tuple[DynamoDBSaver, Meter]) -> None:
    saver, meter = metered
    conversation = Conversation(saver, "t")
    conversation.put(documents=_messages(300))
    for count in range(8):
        conversation.put(count=count)
    with meter.measured():
        assert len(list(saver.list(thread_config("t"), limit=8))) == 8
    assert meter.calls["BatchGetItem"] == 1


def test_a_thread_is_deleted_in_batches(metered: tuple[DynamoDBSaver, Meter], make_saver: MakeSaver) -> None:
    saver, meter = metered
    conversation = Conversation(saver, "t")
    for count in range(100):
        saver.put_writes(conversation.put(count=count), [("count", count + 1)], "task")
    with meter.measured():
        make_saver(client=saver._clients._blocking_client()).delete_thread("t")
    # Two hundred items in batches of 25, the newest head alone, and the claim, the epoch and the readings.
    assert meter.calls["BatchWriteItem"] <= 9
    assert meter.calls.total() <= 9 + 7
