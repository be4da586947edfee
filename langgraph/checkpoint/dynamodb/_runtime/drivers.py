"""The drivers: run an operation's rounds, blocking or on an event loop. Neither knows what it runs.

`StopIteration` is caught around `send` alone, so that none of a client's exceptions can pass for a result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any, TypeVar

from langgraph.checkpoint.dynamodb._format.limits import THREADED_WORK_BYTES
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Emit, Op, Outcome, Step, Stream, Work

T = TypeVar("T")


class BlockingDriver:
    """Runs operations in the calling thread; the steps of a larger round side by side in a pool."""

    def __init__(self, send: Callable[[Call], Any], pool: Callable[[], Executor]) -> None:
        """Take what makes a request and what gives the pool, which is asked for when it is needed."""
        self._send = send
        self._pool = pool

    def run(self, operation: Op[T]) -> T:
        """Run an operation to its end and return its result."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration as stop:
                    value: T = stop.value
                    return value
                outcomes = self._perform(steps)
        finally:
            operation.close()

    def stream(self, operation: Stream[T]) -> Iterator[T]:
        """Run a stream as far as its consumer asks."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration:
                    return
                if isinstance(steps, Emit):
                    yield steps.value
                    outcomes = None
                else:
                    outcomes = self._perform(steps)
        finally:
            operation.close()

    def _perform(self, steps: Sequence[Step]) -> list[Outcome]:
        if len(steps) == 1:
            return [self._step(steps[0])]
        pool = self._pool()
        # Each step needs a context of its own: one cannot be entered twice at a time.
        futures = [pool.submit(copy_context().run, self._step, step) for step in steps]
        return [future.result() for future in futures]

    def _step(self, step: Step) -> Outcome:
        if isinstance(step, Work):
            return _work(step)
        try:
            if step.delay_seconds:
                time.sleep(step.delay_seconds)
            return self._send(step)
        except Exception as error:  # noqa: BLE001 - an outcome: the operation decides what it means.
            return error


class AsyncDriver:
    """Runs operations on the running event loop; larger pieces of CPU work in threads."""

    def __init__(self, send: Callable[[Call], Awaitable[Any]]) -> None:
        """Take what makes a request."""
        self._send = send

    async def run(self, operation: Op[T]) -> T:
        """Run an operation to its end and return its result."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration as stop:
                    value: T = stop.value
                    return value
                outcomes = await self._perform(steps)
        finally:
            operation.close()

    async def stream(self, operation: Stream[T]) -> AsyncIterator[T]:
        """Run a stream as far as its consumer asks."""
        outcomes: Any = None
        try:
            while True:
                try:
                    steps = operation.send(outcomes)
                except StopIteration:
                    return
                if isinstance(steps, Emit):
                    yield steps.value
                    outcomes = None
                else:
                    outcomes = await self._perform(steps)
        finally:
            operation.close()

    async def _perform(self, steps: Sequence[Step]) -> list[Outcome]:
        if len(steps) == 1:
            return [await self._step(steps[0])]
        return list(await asyncio.gather(*map(self._step, steps)))

    async def _step(self, step: Step) -> Outcome:
        if isinstance(step, Work):
            # An exception is made an outcome in the thread: a future cannot carry every kind of it.
            return (
                await asyncio.to_thread(_work, step) if step.size_bytes > THREADED_WORK_BYTES else _work(step)
            )
        try:
            if step.delay_seconds:
                await asyncio.sleep(step.delay_seconds)
            return await self._send(step)
        except Exception as error:  # noqa: BLE001 - an outcome: the operation decides what it means.
            return error


def _work(step: Work) -> Outcome:
    try:
        return step.function()
    except Exception as error:  # noqa: BLE001 - an outcome: the operation decides what it means.
        return error
