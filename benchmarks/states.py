"""States to store by hand, checkpoint by checkpoint, as the runtime would."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from benchmarks.prose import prose, uuid

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol


def message(number: int) -> AnyMessage:
    """Return one message of a chat: a person's and a model's in turn, the same for the same number."""
    random = Random(f"message/{number}")
    if number % 2 == 0:
        return HumanMessage(prose(random, 200), id=uuid(random))
    return AIMessage(
        prose(random, 700), id=f"lc_run--{uuid(random)}", response_metadata={"model_name": "scripted-model-1"}
    )


def chat(serde: SerializerProtocol, size_bytes: int) -> list[AnyMessage]:
    """Return messages that a serializer makes this many bytes of, or a little more."""
    messages: list[AnyMessage] = []
    size = 0
    while size < size_bytes:
        messages.append(message(len(messages)))
        size += len(serde.dumps_typed(messages[-1])[1])
    return messages


class Thread:
    """A thread whose state changes channel by channel, each change stored as one more checkpoint."""

    def __init__(self, saver: BaseCheckpointSaver[Any], thread_id: str, namespace: str = "") -> None:
        """Start without a checkpoint."""
        self.saver = saver
        self.config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace}}
        self.checkpoint: Checkpoint = empty_checkpoint()
        self.step = -2

    def put(self, **values: Any) -> RunnableConfig:
        """Store a checkpoint in which these channels have new values."""
        self.step += 1
        versions = self.checkpoint["channel_versions"]
        new: ChannelVersions = {
            name: self.saver.get_next_version(versions.get(name), None) for name in values
        }
        self.checkpoint = {
            **empty_checkpoint(),
            "id": str(uuid6(clock_seq=self.step)),
            "channel_values": {**self.checkpoint["channel_values"], **values},
            "channel_versions": {**versions, **new},
        }
        metadata: CheckpointMetadata = {"source": "loop", "step": self.step, "parents": {}}
        self.config = self.saver.put(self.config, self.checkpoint, metadata, new)
        return self.config
