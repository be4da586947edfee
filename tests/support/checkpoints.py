"""Checkpoints for tests that call a saver without a graph, and what a table holds of them."""

import random
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE, table_schema

METADATA: CheckpointMetadata = {"source": "loop", "step": 1, "parents": {}}


def noise(size: int, seed: int = 0) -> bytes:
    """Bytes that do not compress; the same each time."""
    return random.Random(seed).randbytes(size)


def thread_config(
    thread_id: str = "thread-1", namespace: str = "", checkpoint_id: str | None = None
) -> RunnableConfig:
    """The config of a namespace's newest checkpoint, or of a certain one."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def checkpoint_of(checkpoint_id: str, values: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint, each of whose values is at version 1; equal ones are equal to the byte."""
    return {
        **empty_checkpoint(),
        "id": checkpoint_id,
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": dict(values),
        "channel_versions": dict.fromkeys(values, 1),
    }


def store(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    checkpoint_id: str,
    values: Mapping[str, Any],
    **metadata: Any,
) -> RunnableConfig:
    """Put a checkpoint all of whose values are new, with more metadata where that is given."""
    checkpoint = checkpoint_of(checkpoint_id, values)
    stored_metadata = cast("CheckpointMetadata", {**METADATA, **metadata})
    return saver.put(config, checkpoint, stored_metadata, checkpoint["channel_versions"])


class Conversation:
    """A thread's state that changes channel by channel, each change stored as one more checkpoint."""

    def __init__(self, saver: BaseCheckpointSaver[Any], thread_id: str, namespace: str = "") -> None:
        """Start without a checkpoint."""
        self.saver = saver
        self.config = thread_config(thread_id, namespace)
        self.values: dict[str, Any] = {}
        self.versions: dict[str, Any] = {}
        self.step = -1

    def change(self, **values: Any) -> tuple[RunnableConfig, Checkpoint, Any, dict[str, Any]]:
        """The arguments of a put in which these channels have new values."""
        self.values |= values
        new = {name: self.saver.get_next_version(self.versions.get(name), None) for name in values}
        self.versions |= new
        self.step += 1
        checkpoint = empty_checkpoint()
        checkpoint["id"] = str(uuid6(clock_seq=self.step))
        checkpoint["channel_values"] = dict(self.values)
        checkpoint["channel_versions"] = dict(self.versions)
        return self.config, checkpoint, {"source": "loop", "step": self.step, "parents": {}}, new

    def put(self, **values: Any) -> RunnableConfig:
        """Store a checkpoint in which these channels have new values."""
        self.config = self.saver.put(*self.change(**values))
        return self.config

    async def aput(self, **values: Any) -> RunnableConfig:
        """Do as `put` does, with the saver's async method."""
        self.config = await self.saver.aput(*self.change(**values))
        return self.config


def stored_values(saver: BaseCheckpointSaver[Any], config: RunnableConfig) -> dict[str, Any]:
    """The channel values that a saver reads back of a checkpoint, which has to be there."""
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


def make_table(client: Any, name: str) -> None:
    """Make a table as `setup()` makes it, behind the saver's back."""
    client.create_table(**table_schema(name))
    expiry = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
    client.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)


@contextmanager
def table_of_its_own(client: Any, begins: str) -> Iterator[str]:
    """Give the name of a new table, which begins so, and delete it afterwards."""
    name = f"{begins}-{uuid.uuid4().hex}"
    make_table(client, name)
    try:
        yield name
    finally:
        client.delete_table(TableName=name)


def all_items(client: Any, table_name: str, *, begins: str = "") -> list[Any]:
    """The items whose sort key begins so, read behind the saver's back, in the order of their keys."""
    pages = client.get_paginator("scan").paginate(TableName=table_name, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"] if item["SK"]["S"].startswith(begins)]
    return sorted(items, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
