"""The saver's operations as a simulated process runs them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory

from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.directory import (
    ThreadPage,
    ThreadQuery,
    list_threads,
    set_thread,
)
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.runs import RunSummary, list_runs
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Stream
from tests.simulation.simulator import Process, Simulator

T = TypeVar("T")

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "get_tuple": get_tuple,
    "list": list_checkpoints,
    "put": put,
    "put_writes": put_writes,
    "delete_thread": delete_thread,
    "delete_for_runs": delete_for_runs,
    "prune": prune,
    "copy_thread": copy_thread,
    "set_thread": set_thread,
    "list_threads": list_threads,
    "list_runs": list_runs,
    "get_delta_channel_history": get_delta_channel_history,
}


class TableSaver:
    """A saver that reaches the table itself."""

    def __init__(self, simulator: Simulator, process: Process) -> None:
        """Take the process, whose cache it uses."""
        del simulator
        self.storage = process.storage
        self.operations: Mapping[str, Callable[..., Any]] = {
            name: partial(operation, process.storage) for name, operation in OPERATIONS.items()
        }

    @property
    def was_hurt(self) -> bool:
        """Whether requests of it broke of which an operation was not told."""
        return False

    @property
    def left_behind(self) -> int:
        """How many requests it gave up, without its operation being told, that somebody may still be carrying out."""
        return 0

    def _run(self, operation: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        return operation

    def get_tuple(self, config: RunnableConfig) -> Op[CheckpointTuple | None]:
        """Read a checkpoint."""
        return self._run(self.operations["get_tuple"](config))

    def list(self, config: RunnableConfig) -> Stream[CheckpointTuple]:
        """List checkpoints."""
        return self._run(self.operations["list"](config, None, None, None))

    def put(self, *arguments: Any) -> Op[RunnableConfig]:
        """Store a checkpoint."""
        return self._run(self.operations["put"](*arguments))

    def put_writes(self, *arguments: Any) -> Op[None]:
        """Store a task's writes."""
        return self._run(self.operations["put_writes"](*arguments))

    def delete_thread(self, thread_id: str) -> Op[None]:
        """Delete a thread."""
        return self._run(self.operations["delete_thread"](thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> Op[None]:
        """Delete runs."""
        return self._run(self.operations["delete_for_runs"](run_ids))

    def prune(self, thread_ids: Sequence[str], kept: int) -> Op[None]:
        """Keep only so many checkpoints of each namespace."""
        return self._run(self.operations["prune"](thread_ids, "keep_last", kept))

    def copy_thread(self, source: str, target: str) -> Op[None]:
        """Copy a thread."""
        return self._run(self.operations["copy_thread"](source, target))

    def set_thread(self, thread_id: str, title: str) -> Op[None]:
        """Give a thread a title; an empty one takes it back."""
        return self._run(self.operations["set_thread"](thread_id, None, title, None))

    def list_threads(
        self, owner: str | None, limit: int, before: str | None, *, with_status: bool
    ) -> Op[ThreadPage]:
        """List threads of an owner, or all."""
        operation = self.operations["list_threads"](
            ThreadQuery(owner=owner, limit=limit, before=before, with_status=with_status)
        )
        return self._run(operation)

    def list_runs(self, thread_id: str) -> Op[Sequence[RunSummary]]:
        """List the runs of a thread."""
        return self._run(self.operations["list_runs"](thread_id))

    def history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Op[Mapping[str, DeltaChannelHistory]]:
        """Read what delta channels are rebuilt from."""
        return self._run(self.operations["get_delta_channel_history"](config, channels))
