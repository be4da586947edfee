"""A checkpoint with the writes that were held back: `put_with_writes`, as AWS's `DeferredCheckpointSaver` calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb import CheckpointSerializationError, DynamoDBSaver
from tests.support.checkpoints import Conversation, all_items, noise, stored_values
from tests.support.operations import Side, ask, both_sides
from tests.support.traffic import Traffic

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver = Callable[..., DynamoDBSaver]

PARTS = {str(number): noise(20_000, number) for number in range(20)}


class PendingWrite(NamedTuple):
    """What langgraph-checkpoint-aws hands over for each held call of `put_writes`."""

    config: RunnableConfig
    writes: list[tuple[str, Any]]
    task_id: str
    task_path: str


def _at(config: RunnableConfig, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}


@both_sides
def test_a_run_is_flushed_with_the_writes_that_somebody_can_find(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, side: Side
) -> None:
    saver = make_saver()
    conversation = Conversation(saver, "thread", "namespace")
    first = conversation.put(text="first")
    conversation.config, never_stored, *_ = conversation.change(text="second")
    conversation.config = between = _at(first, never_stored["id"])
    config, checkpoint, metadata, versions = conversation.change(text="third")
    last = _at(first, checkpoint["id"])
    held = [
        PendingWrite(first, [("text", "second")], "task-1", "~a"),
        PendingWrite(between, [("text", "third")], "task-2", "~a"),
        PendingWrite(last, [("text", "fourth"), ("__interrupt__", "early")], "task-3", "~a"),
        PendingWrite(last, [("__interrupt__", "late")], "task-3", "~a"),
    ]
    stored = ask(side, saver, "put_with_writes", config, checkpoint, metadata, versions, held)
    assert stored == last

    reader = make_saver()
    found = reader.get_tuple(last)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"text": "third"}
    assert found.pending_writes == [("task-3", "__interrupt__", "late"), ("task-3", "text", "fourth")]
    parent = reader.get_tuple(first)
    assert parent is not None
    assert parent.pending_writes == [("task-1", "text", "second")]
    tasks = [item["SK"]["S"] for item in all_items(client, table_name) if "#W#" in item["SK"]["S"]]
    assert len(tasks) == 2, "writes of a checkpoint that nobody can read were stored"


def test_what_the_last_flush_stored_is_reused(saver: DynamoDBSaver, traffic: Traffic) -> None:
    """The parent that a run names was never stored, so what is reused is what the newest checkpoint has."""
    conversation = Conversation(saver, "thread")
    conversation.put(**PARTS)
    conversation.config, never_stored, *_ = conversation.change(text="second")
    conversation.config = _at(conversation.config, never_stored["id"])
    saver.put_with_writes(*conversation.change(text="third"), [])
    traffic.requests.clear()
    conversation.config, never_stored, *_ = conversation.change(text="fourth")
    conversation.config = _at(conversation.config, never_stored["id"])
    config = saver.put_with_writes(*conversation.change(text="fifth"), [])
    assert stored_values(saver, config) == {**PARTS, "text": "fifth"}
    assert "BatchWriteItem" not in [each.operation for each in traffic.requests]


def test_versions_that_are_equal_by_chance_inherit_nothing(saver: DynamoDBSaver) -> None:
    """A checkpoint whose parent was never stored may be of another branch, where a version means another value."""
    conversation = Conversation(saver, "thread")
    conversation.put(**PARTS)
    config, checkpoint, metadata, _ = conversation.change(text="other")
    checkpoint["channel_values"]["0"] = noise(20_000, 1000)
    stored = saver.put_with_writes(_at(config, "1"), checkpoint, metadata, {}, [])
    assert stored_values(saver, stored) == {**PARTS, "text": "other", "0": noise(20_000, 1000)}


def test_writes_that_cannot_be_serialized_are_an_error_without_a_checkpoint(saver: DynamoDBSaver) -> None:
    conversation = Conversation(saver, "thread")
    config, checkpoint, metadata, versions = conversation.change(text="first")
    last: RunnableConfig = {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}
    held = [PendingWrite(last, [("text", lambda: None)], "task", "")]
    with pytest.raises(CheckpointSerializationError, match="text"):
        saver.put_with_writes(config, checkpoint, metadata, versions, held)
    assert saver.get_tuple(config) is None
