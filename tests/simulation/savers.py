"""The saver's operations as a simulated process runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_with_writes import put_with_writes
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream
from tests.simulation.simulator import Process, Simulator

CODEC = Codec(JsonPlusSerializer())


class TableSaver:
    """A saver that reaches the table itself."""

    was_hurt = False
    """Whether requests of it broke of which an operation was not told."""
    left_behind = 0
    """How many requests it gave up, without its operation being told, that somebody may still be carrying out."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        """Take the process, whose memory it uses."""
        del simulator
        self.table = process.table

    def get_tuple(self, config: RunnableConfig) -> Op[CheckpointTuple | None]:
        """Read a checkpoint."""
        return get_tuple(self.table, CODEC, config)

    def list(self, config: RunnableConfig) -> Stream[CheckpointTuple]:
        """List checkpoints."""
        return list_checkpoints(self.table, CODEC, config, None, None, None)

    def put(self, *arguments: Any) -> Op[RunnableConfig]:
        """Store a checkpoint."""
        return put(self.table, CODEC, *arguments)

    def put_with_writes(self, *arguments: Any) -> Op[RunnableConfig]:
        """Store a checkpoint with writes that were held back."""
        return put_with_writes(self.table, CODEC, *arguments)

    def put_writes(self, *arguments: Any) -> Op[None]:
        """Store a task's writes."""
        return put_writes(self.table, CODEC, *arguments)

    def delete_thread(self, thread_id: str) -> Op[None]:
        """Delete a thread."""
        return delete_thread(self.table, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> Op[None]:
        """Delete runs."""
        return delete_for_runs(self.table, run_ids)

    def prune(self, thread_ids: Sequence[str], kept: int) -> Op[None]:
        """Keep only so many checkpoints of each namespace."""
        return prune(self.table, thread_ids, "keep_last", kept)

    def copy_thread(self, source: str, target: str) -> Op[None]:
        """Copy a thread."""
        return copy_thread(self.table, CODEC, source, target)

    def history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Op[Mapping[str, DeltaChannelHistory]]:
        """Read what delta channels are rebuilt from."""
        return get_delta_channel_history(self.table, CODEC, config, channels)
