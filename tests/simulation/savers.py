"""The saver's operations as a simulated process runs them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.directory import (
    list_threads,
    set_thread,
)
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.runs import list_runs
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

    def ask(self, name: str, *arguments: Any) -> Generator[Any, Any, Any]:
        """Run an operation by its name."""
        return self._run(self.operations[name](*arguments))
