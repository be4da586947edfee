"""Expiry: what counts as gone, and that nothing goes before what needs it (I6). The clock is the test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint

from langgraph.checkpoint.dynamodb import CheckpointNotFoundError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items
from tests.support.change import change_storage
from tests.support.checkpoints import Conversation, all_items, stored_values, thread_config
from tests.support.traffic import Traffic

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


def _expiry(item: Any) -> float:
    """When an item expires; one without the attribute never does."""
    return int(item["expires_at"]["N"]) if "expires_at" in item else float("inf")


def _expiries(client: DynamoDBClient, table_name: str, begins: str) -> dict[str, float]:
    return {item["SK"]["S"]: _expiry(item) for item in all_items(client, table_name, begins=begins)}


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


async def test_a_thread_that_expired_starts_afresh(open_saver: MakeSaver, clock: Clock) -> None:
    Conversation(open_saver(), "thread").put(text=BIG)
    clock.now += TTL_SECONDS
    saver = open_saver()
    config = Conversation(saver, "thread").put(text="new")

    assert stored_values(saver, thread_config("thread")) == {"text": "new"}
    assert stored_values(saver, config) == {"text": "new"}


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
async def test_what_a_checkpoint_reuses_lives_as_long_as_the_checkpoint(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock, *, cold: bool
) -> None:
    """After each put everything expired is really deleted; the newest checkpoint is whole to its last second."""
    conversation = Conversation(open_saver(), "thread", "namespace")
    for step in range(8):
        if cold:
            conversation.saver = open_saver()
        head = conversation.put(**({"big": BIG, "step": step} if step == 0 else {"step": step}))
        now, clock.now = clock.now, clock.now + TTL_SECONDS - 1
        expired = _delete_expired(client, table_name, clock.now)
        assert stored_values(open_saver(), head) == {"big": BIG, "step": step}
        for item in expired:
            client.put_item(TableName=table_name, Item=item)
        # The next step comes when most of this one's life is over.
        clock.now = now + TTL_SECONDS * 0.7
        _delete_expired(client, table_name, clock.now)


def _delete_expired(client: DynamoDBClient, table_name: str, now: float) -> list[Any]:
    """Do what DynamoDB's ttl does, in time; return what was deleted."""
    expired = [item for item in all_items(client, table_name) if _expiry(item) <= now]
    for item in expired:
        client.delete_item(TableName=table_name, Key={"PK": item["PK"], "SK": item["SK"]})
    return expired


async def test_writes_live_as_long_as_their_checkpoint(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock
) -> None:
    saver = open_saver()
    config = Conversation(saver, "thread").put(text="short")
    saver.put_writes(config, [("channel", BIG)], "first-task")
    clock.now += TTL_SECONDS - 1
    saver.put_writes(config, [("channel", "late")], "second-task")
    _delete_expired(client, table_name, clock.now)

    found = open_saver().get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("first-task", "channel", BIG), ("second-task", "channel", "late")]


async def test_what_writes_reuse_lives_as_long_as_the_writes(
    open_saver: MakeSaver,
    client: DynamoDBClient,
    own_client: DynamoDBClient,
    traffic: Traffic,
    table_name: str,
    clock: Clock,
) -> None:
    conversation = Conversation(open_saver(client=own_client), "thread")
    conversation.put(big=BIG, step=0)
    for step in (1, 2):
        clock.now += TTL_SECONDS - 1
        config = conversation.put(step=step)

    ends_at = clock.now + 2 * TTL_SECONDS
    short = [each for each in _expiries(client, table_name, "S#").values() if each < ends_at]
    for task in ("one", "two"):
        traffic.clear()
        conversation.saver.put_writes(config, [("big", BIG)], task)
        renewed = traffic.operations.count("UpdateItem") - 1
        assert renewed == (len(short) if task == "one" else 0), "once per ttl"

    writes = [_expiry(item) for item in all_items(client, table_name, begins="C#") if "writes" in item]
    assert writes == [ends_at, ends_at]
    assert min(_expiries(client, table_name, "S#").values()) >= ends_at
    found = open_saver().get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("one", "big", BIG), ("two", "big", BIG)]


async def test_writes_that_come_before_their_checkpoint_live_as_long(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock
) -> None:
    """LangGraph may store a step's writes a while before the checkpoint that they belong to."""
    saver = open_saver()
    config, checkpoint, metadata, versions = Conversation(saver, "thread").change(text="short")
    ahead = thread_config("thread", "", checkpoint["id"])
    saver.put_writes(ahead, [("channel", BIG)], "task")
    clock.now += TTL_SECONDS / 2
    config = saver.put(config, checkpoint, metadata, versions)
    clock.now += TTL_SECONDS - 1
    _delete_expired(client, table_name, clock.now)

    found = open_saver().get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", "channel", BIG)]


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
async def test_thread_item_and_namespace_entry_outlive_every_checkpoint(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock, *, cold: bool
) -> None:
    conversation = Conversation(open_saver(), "thread", "namespace")
    for step in range(8):
        if cold:
            conversation.saver = open_saver()
        conversation.put(step=step)
        heads = _expiries(client, table_name, "C#")
        assert _expiries(client, table_name, "T")["T"] >= max(heads.values())
        assert _expiries(client, table_name, "N#")["N#namespace"] >= max(heads.values())
        clock.now += TTL_SECONDS * 0.7
        _delete_expired(client, table_name, clock.now)


def _delta_put(saver: DynamoDBSaver, config: RunnableConfig, step: int) -> RunnableConfig:
    """Store one more checkpoint of a delta channel without a snapshot, and a write to the channel."""
    checkpoint = empty_checkpoint()
    checkpoint["id"], checkpoint["channel_versions"] = f"{step:04}", {"log": step + 1}
    metadata: CheckpointMetadata = {"step": step, "counters_since_delta_snapshot": {"log": (step, step)}}
    stored = saver.put(config, checkpoint, metadata, {"log": step + 1})
    saver.put_writes(stored, [("log", f"write {step}")], "task")
    return stored


async def test_what_is_kept_for_a_delta_channel_is_not_readable(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str, clock: Clock
) -> None:
    saver = open_saver()
    first = _delta_put(saver, thread_config("thread"), 0)
    clock.now += TTL_SECONDS * 0.6
    second = _delta_put(saver, first, 1)
    clock.now += TTL_SECONDS * 0.6
    assert open_saver().get_tuple(first) is None
    saver.copy_thread("thread", "copy")
    copied = client.get_item(TableName=table_name, Key=items.key("copy#", "C#0000#"))["Item"]
    assert _expiry(copied) == clock.now + 2 * TTL_SECONDS
    for thread in ("thread", "copy"):
        listed = [each.checkpoint["id"] for each in open_saver().list(thread_config(thread))]
        assert listed == ["0001"]
        at = thread_config(thread, "", "0001")
        history = open_saver().get_delta_channel_history(config=at, channels=["log"])
        assert [write[2] for write in history["log"]["writes"]] == ["write 0"]

    clock.now += TTL_SECONDS * 0.5
    _delete_expired(client, table_name, clock.now)
    assert _expiries(client, table_name, "C#0000#"), "the ancestor was to outlive its child"
    assert open_saver().get_tuple(second) is None
    assert open_saver().get_tuple(thread_config("thread")) is None
    assert list(open_saver().list(thread_config("thread"))) == []


async def test_a_delta_channel_without_its_ancestors_is_an_error(
    open_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    saver = open_saver()
    config = _delta_put(saver, _delta_put(saver, thread_config("thread"), 0), 1)
    for item in all_items(client, table_name):
        if item["SK"]["S"] == "C#0000#":
            client.delete_item(TableName=table_name, Key={"PK": item["PK"], "SK": item["SK"]})

    with pytest.raises(CheckpointNotFoundError, match="0000"):
        open_saver().get_delta_channel_history(config=config, channels=["log"])
