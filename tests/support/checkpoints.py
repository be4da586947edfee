"""Checkpoints for tests: a conversation as LangGraph stores it, with one channel per keyword."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6


def thread_config(thread_id: str, namespace: str = "", checkpoint_id: str | None = None) -> RunnableConfig:
    """The config of a namespace's newest checkpoint, or of a certain one."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


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
    """The channel values that a saver reads back."""
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]


def all_items(client: Any, table_name: str, *, begins: str = "", attributes: Sequence[str] = ()) -> list[Any]:
    """What the table holds, behind the saver's back: items whose sort key begins so, or these attributes of them."""
    pages = client.get_paginator("scan").paginate(TableName=table_name, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"] if item["SK"]["S"].startswith(begins)]
    return [{name: item.get(name) for name in attributes} for item in items] if attributes else items
