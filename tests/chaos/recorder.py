"""An agent's recorder: every operation is noted in the operation log before it is asked for and after it returned."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.chaos.access import OPERATION
from tests.chaos.operation_log import OperationLog
from tests.simulation.history import Moment

T = TypeVar("T")

REPEAT_RATE = 0.5


class OperationFailedError(Exception):
    """An operation raised, which is in the operation log."""

    def __init__(self, began: Moment) -> None:
        """Take the moment of its beginning."""
        super().__init__(began)
        self.began = began


class Methods:
    """The methods of a saver, its async ones or its sync ones in threads."""

    def __init__(self, saver: DynamoDBSaver, *, blocking: bool) -> None:
        """Choose the kind of methods."""
        self._saver = saver
        self._blocking = blocking

    async def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the saver by the name of the sync one."""
        if self._blocking:
            return await asyncio.to_thread(getattr(self._saver, name), *arguments, **options)
        return await getattr(self._saver, f"a{name}")(*arguments, **options)

    async def list(self, thread: str) -> list[CheckpointTuple]:
        """List a whole thread."""
        where: RunnableConfig = {"configurable": {"thread_id": thread}}
        if self._blocking:
            return await asyncio.to_thread(lambda: list(self._saver.list(where)))
        return [each async for each in self._saver.alist(where)]


class Recorder:
    """The operation log of one process of an agent, and the numbers of its operations."""

    def __init__(self, operation_log: OperationLog, process: str, rng: random.Random) -> None:
        """Begin with the first operation of a process, whose name ends in a number that grows with each."""
        self.operation_log = operation_log
        self._process = process
        self._rng = rng
        self._count = 0

    def new_id(self) -> str:
        """Return an id that is larger than all before, also those of former processes."""
        self._count += 1
        return f"{self._process.rpartition('/')[2]}.{self._count:06}"

    async def perform(self, perform: Callable[[], Awaitable[T]], kind: str, **about: Any) -> tuple[Moment, T]:
        """Perform an operation; return the moment of its beginning, and its result.

        Raises:
            OperationFailedError: It raised.
        """
        operation = f"{self._process}/{self.new_id()}"
        began = self.operation_log.ask(operation, kind, **about)
        token = OPERATION.set(operation)
        try:
            result = await perform()
        except Exception as error:
            self.operation_log.fail(operation, error)
            raise OperationFailedError(began) from error
        finally:
            OPERATION.reset(token)
        self.operation_log.acknowledge(operation)
        return began, result

    async def insist(self, perform: Callable[[], Awaitable[T]], kind: str, **about: Any) -> T:
        """Perform an operation that may be repeated, and sometimes repeat it where it failed."""
        try:
            return (await self.perform(perform, kind, **about))[1]
        except OperationFailedError:
            if self._rng.random() > REPEAT_RATE:
                raise
        return (await self.perform(perform, kind, **about))[1]
