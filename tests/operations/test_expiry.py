"""Expiry: what counts as gone, and that nothing goes before what needs it (I6). The clock is the test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.change import change_storage
from tests.support.checkpoints import Conversation, all_items, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The test deletes what has expired itself, so that nothing depends on the engine.
pytestmark = pytest.mark.engines("dynamodb-local")

TTL_SECONDS = 1000
BIG = "".join(f"entry {number} of a long text; " for number in range(2000))

MakeSaver = Callable[..., DynamoDBSaver]


class Clock:
    """A time that moves when it is told to."""

    def __init__(self) -> None:
        """Start at some time."""
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the time, in epoch seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Give the clock of every saver of the test."""
    return Clock()


@pytest.fixture
def open_saver(make_saver: MakeSaver, clock: Clock) -> MakeSaver:
    """Give a factory of savers that go by the test's clock; a ttl is set unless the test says None."""

    def make(**options: Any) -> DynamoDBSaver:
        saver = make_saver(**({"ttl_seconds": TTL_SECONDS} | options))
        change_storage(saver, clock=clock)
        return saver

    return make


async def test_an_expired_checkpoint_is_gone_although_its_item_is_still_there(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock
) -> None:
    saver = open_saver()
    config = Conversation(saver, "thread").put(text="short")
    clock.now += TTL_SECONDS - 1
    assert saver.get_tuple(config) is not None
    clock.now += 1

    assert all_items(client, table_name, begins="C#"), "the engine has not removed the item"
    assert saver.get_tuple(config) is None
    assert saver.get_tuple(thread_config("thread")) is None
    assert await saver.aget_tuple(thread_config("thread")) is None
    assert list(saver.list(config)) == []
    assert list(saver.list(thread_config("thread"))) == []
    assert list(saver.list(None)) == []


async def test_a_thread_whose_newest_checkpoint_expired_is_gone_as_a_whole(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock
) -> None:
    """An older state that happens to live longer, as an earlier release left it, must never pass for the latest."""
    conversation = Conversation(open_saver(), "thread")
    older = conversation.put(text="older, for ever")
    conversation.put(text="newer, for a while")
    client.update_item(
        TableName=table_name,
        Key={"PK": {"S": "thread#"}, "SK": {"S": f"C#{older['configurable']['checkpoint_id']}#"}},
        UpdateExpression="REMOVE expires_at",
    )
    clock.now += TTL_SECONDS

    saver = open_saver()
    assert saver.get_tuple(thread_config("thread")) is None
    assert list(saver.list(thread_config("thread"))) == []
    assert list(saver.list({"configurable": {"thread_id": "thread"}})) == []
    assert list(saver.list(thread_config("thread"), limit=1)) == []
    assert [each async for each in saver.alist(thread_config("thread"))] == []
