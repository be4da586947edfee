"""The methods of a saver as operations: directly on the table here, through the gateway in `http.operations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from langgraph.checkpoint.dynamodb._operations.backend import LocalBackend
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.directory import ThreadPage, list_threads, set_thread
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_with_writes import HeldWrites, put_with_writes
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.runs import RunSummary, list_runs
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage


class Operations(Protocol):
    """The operations of a saver. `BackendSaver` documents what each does, returns and raises."""

    def get_tuple(self, config: RunnableConfig) -> Op[CheckpointTuple | None]:
        """Read a checkpoint."""

    def list(
        self,
        config: RunnableConfig | None,
        metadata_filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Stream[CheckpointTuple]:
        """List checkpoints."""

    def get_delta_channel_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Op[Mapping[str, DeltaChannelHistory]]:
        """Read the stored values and writes that delta channels are rebuilt from."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Op[RunnableConfig]:
        """Store a checkpoint."""

    def put_with_writes(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        pending_writes: Sequence[HeldWrites],
    ) -> Op[RunnableConfig]:
        """Store a checkpoint with writes that were held back."""

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Op[None]:
        """Store a task's writes."""

    def delete_thread(self, thread_id: str) -> Op[None]:
        """Delete a thread."""

    def delete_for_runs(self, run_ids: Sequence[str]) -> Op[None]:
        """Delete the checkpoints of runs."""

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> Op[None]:
        """Copy a thread."""

    def prune(self, thread_ids: Sequence[str], strategy: str, keep_last: int | None) -> Op[None]:
        """Remove old checkpoints."""

    def set_thread(
        self, thread_id: str, owner: Any, title: Any, metadata: Mapping[str, Any] | None
    ) -> Op[None]:
        """Describe a thread."""

    def list_threads(
        self,
        owner: Any,
        status: str | None,
        metadata: Mapping[str, Any] | None,
        limit: Any,
        before: str | None,
        with_status: bool,
        since: datetime | None,
    ) -> Op[ThreadPage]:
        """List threads."""

    def list_runs(self, thread_id: str) -> Op[Sequence[RunSummary]]:
        """List the runs of a thread."""


class LocalOperations:
    """The operations of a saver with access to the table."""

    def __init__(self, storage: LocalStorage) -> None:
        """Bind each operation to the storage."""
        self.get_tuple = partial(get_tuple, storage)
        self.list = partial(list_checkpoints, storage)
        self.get_delta_channel_history = partial(get_delta_channel_history, storage)
        self.put = partial(put, storage)
        self.put_with_writes = partial(put_with_writes, storage)
        self.put_writes = partial(put_writes, storage)
        self.delete_thread = partial(delete_thread, storage)
        self.delete_for_runs = partial(delete_for_runs, storage)
        self.copy_thread = partial(copy_thread, storage)
        self.prune = partial(prune, storage)
        self.set_thread = partial(set_thread, LocalBackend(storage))
        self.list_threads = partial(list_threads, LocalBackend(storage))
        self.list_runs = partial(list_runs, storage)
