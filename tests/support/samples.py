"""Checkpoints to store, and the whole content of a table, for tests that call a saver without a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, empty_checkpoint

from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

METADATA: CheckpointMetadata = {"source": "loop", "step": 1, "parents": {}}


def config_of(
    thread_id: str = "thread-1", namespace: str = "", checkpoint_id: str | None = None
) -> RunnableConfig:
    """Build the config that points to a namespace of a thread, or to one of its checkpoints."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    return {"configurable": configurable | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def checkpoint_of(checkpoint_id: str, values: Mapping[str, Any]) -> Checkpoint:
    """Build a checkpoint, each of whose values is at version 1; equal ones are equal to the byte."""
    return {
        **empty_checkpoint(),
        "id": checkpoint_id,
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": dict(values),
        "channel_versions": dict.fromkeys(values, 1),
    }


def store(
    saver: DynamoDBSaver,
    config: RunnableConfig,
    checkpoint_id: str,
    values: Mapping[str, Any],
    **metadata: Any,
) -> RunnableConfig:
    """Put a checkpoint all of whose values are new, with more metadata where that is given."""
    checkpoint = checkpoint_of(checkpoint_id, values)
    stored_metadata = cast("CheckpointMetadata", {**METADATA, **metadata})
    return saver.put(config, checkpoint, stored_metadata, checkpoint["channel_versions"])


def values_of(saver: DynamoDBSaver, config: RunnableConfig) -> dict[str, Any]:
    """Read the values of the checkpoint that a config points to, which has to be there."""
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


def everything_in(client: DynamoDBClient, table_name: str) -> list[dict[str, Any]]:
    """Read every item of a table, in the order of their keys where they are the saver's."""
    pages = client.get_paginator("scan").paginate(TableName=table_name, ConsistentRead=True)
    items = [dict(item) for page in pages for item in page["Items"]]
    return sorted(items, key=lambda item: (str(item.get("PK")), str(item.get("SK"))))
