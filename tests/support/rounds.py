"""Operations made by hand, requests that go nowhere, and both drivers to run them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, Step

Send: TypeAlias = Callable[[Call], Any]
Run: TypeAlias = Callable[[Op[Any], Send], Any]
# A driver that waits for ever is a failure of its own, not a test run without an end.
WAIT_SECONDS_MAX = 10.0


def run_blocking(operation: Op[Any], send: Send) -> Any:
    """Run an operation with the blocking driver."""
    with ThreadPoolExecutor(4) as pool:
        return BlockingDriver(send, lambda: pool).run(operation)


def as_coroutine(send: Send) -> Callable[[Call], Awaitable[Any]]:
    """Send as the asyncio driver does."""

    async def asend(call: Call) -> Any:
        return send(call)

    return asend


def run_async(operation: Op[Any], send: Send) -> Any:
    """Run an operation with the asyncio driver, on an event loop of its own."""

    async def run() -> Any:
        return await asyncio.wait_for(AsyncDriver(as_coroutine(send)).run(operation), WAIT_SECONDS_MAX)

    return asyncio.run(run())


either_driver = pytest.mark.parametrize("run", [run_blocking, run_async], ids=["blocking", "async"])


def calls(*methods: str) -> list[Step]:
    """A round of one request for each method."""
    return [Call(method, {}) for method in methods]


def rounds_of(*rounds: Sequence[Step]) -> Op[list[Any]]:
    """Ask for rounds one after the other and return all their outcomes."""
    outcomes: list[Any] = []
    for steps in rounds:
        answers = yield steps
        outcomes += [answers]
    return outcomes


def echo(call: Call) -> str:
    """Answer every request."""
    return f"answer to {call.method}"


def fail_on_b(call: Call) -> str:
    """Answer every request but `b`."""
    if call.method == "b":
        raise ConnectionError(call.method)
    return echo(call)


def recording(sent: list[str]) -> Send:
    """Answer every request, and note it."""

    def send(call: Call) -> str:
        sent.append(call.method)
        return echo(call)

    return send
