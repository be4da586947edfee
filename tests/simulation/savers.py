"""The saver's operations as a simulated process runs them."""

import inspect
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

from langgraph.checkpoint.dynamodb import base_saver
from tests.simulation.simulator import Process, Simulator

T = TypeVar("T")

# Those that the methods of a saver run, by name.
OPERATIONS: Mapping[str, Callable[..., Any]] = {
    name: each
    for name, each in vars(base_saver).items()
    if inspect.isfunction(each) and "._operations." in each.__module__
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
