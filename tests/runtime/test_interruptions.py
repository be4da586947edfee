"""Interruptions on both drivers: an operation may let go of what it holds; one that is dropped asks for nothing."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime import drivers
from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Emit, Op, Step, Stream, gather
from tests.support.rounds import WAIT_SECONDS_MAX, Send, calls, run_blocking


def _holding(log: list[str], *steps: Step) -> Op[None]:
    """Take something, ask for a round, and let go even where that is interrupted; note what happened."""
    yield calls("take")
    log.append("took")
    try:
        yield steps
    except GeneratorExit:
        log.append("dropped")
        raise
    except BaseException:
        yield calls("let go")
        log.append("let go")
        raise
    finally:
        log.append("ended")


# Blocking


def _stream(operation: Op[Any], send: Send) -> None:
    def stream() -> Stream[str]:
        yield Emit("first")
        yield from operation

    with ThreadPoolExecutor(4) as pool:
        values = BlockingDriver(send, lambda: pool).stream(stream())
        assert next(values) == "first"
        next(values)


@pytest.mark.parametrize("run", [run_blocking, _stream])
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("methods", [["a"], ["a", "b"]], ids=["alone", "beside another"])
def test_an_interrupted_blocking_operation_lets_go_after_what_is_under_way(
    run: Callable[[Op[Any], Send], Any], interruption: type[BaseException], methods: list[str]
) -> None:
    log: list[str] = []
    under_way = threading.Event()

    def send(call: Call) -> None:
        if call.method == "a":
            assert len(methods) == 1 or under_way.wait(WAIT_SECONDS_MAX)
            raise interruption
        if call.method == "b":
            under_way.set()
            # Ends after the interruption.
            time.sleep(0.05)
            log.append("b")

    with pytest.raises(interruption):
        run(_holding(log, *calls(*methods)), send)
    assert log == ["took", *methods[1:], "let go", "ended"]


def test_a_second_interrupt_ends_a_blocking_operation_that_lets_go() -> None:
    log: list[str] = []

    def send(call: Call) -> None:
        if call.method != "take":
            raise KeyboardInterrupt(call.method)

    with pytest.raises(KeyboardInterrupt, match="let go"):
        run_blocking(_holding(log, *calls("a")), send)
    assert log == ["took", "ended"]


def test_a_stream_that_is_left_in_the_middle_is_dropped_without_a_request() -> None:
    log: list[str] = []

    def stream() -> Stream[str]:
        try:
            yield Emit("first")
        except BaseException as interruption:
            log.append(type(interruption).__name__)
            if not isinstance(interruption, GeneratorExit):
                yield calls("let go")
            raise

    values = BlockingDriver(lambda call: log.append(call.method), ThreadPoolExecutor).stream(stream())
    assert next(values) == "first"
    del values
    assert log == ["GeneratorExit"]


# On an event loop


class _Gates:
    """Requests of which those to `a` and `let go` wait for the test."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.arrived = {name: asyncio.Event() for name in ("a", "let go")}
        self.open = {name: asyncio.Event() for name in ("a", "let go")}

    async def send(self, call: Call) -> None:
        if call.method in self.open:
            self.arrived[call.method].set()
            await self.open[call.method].wait()
            self.log.append(f"answer to {call.method}")

    async def wait_for(self, name: str) -> None:
        await asyncio.wait_for(self.arrived[name].wait(), WAIT_SECONDS_MAX)


async def _async_run(driver: AsyncDriver, operation: Op[Any]) -> None:
    await driver.run(operation)


async def _async_stream(driver: AsyncDriver, operation: Op[Any]) -> None:
    def stream() -> Stream[str]:
        yield Emit("first")
        yield from operation

    async for value in driver.stream(stream()):
        assert value == "first"


either_async = pytest.mark.parametrize("run", [_async_run, _async_stream])
RunAsync = Callable[[AsyncDriver, Op[Any]], Coroutine[Any, Any, None]]


@either_async
@pytest.mark.parametrize("times", [1, 3], ids=["once", "again and again"])
async def test_a_cancelled_operation_lets_go_after_what_is_under_way(run: RunAsync, times: int) -> None:
    gates = _Gates()
    task = asyncio.create_task(run(AsyncDriver(gates.send), _holding(gates.log, *calls("a"))))
    await gates.wait_for("a")
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        assert gates.log == ["took"]
    gates.open["a"].set()
    await gates.wait_for("let go")
    for _ in range(times - 1):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gates.open["let go"].set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, WAIT_SECONDS_MAX)
    assert gates.log == ["took", "answer to a", "answer to let go", "let go", "ended"]


async def test_a_cancelled_operation_does_not_begin_requests_that_wait() -> None:
    gates = _Gates()
    steps = [Call("late", {}, delay_seconds=WAIT_SECONDS_MAX), *calls("a")]
    task = asyncio.create_task(AsyncDriver(gates.send).run(_holding(gates.log, *steps)))
    await gates.wait_for("a")
    for gate in gates.open.values():
        gate.set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, WAIT_SECONDS_MAX / 2)
    assert gates.log == ["took", "answer to a", "answer to let go", "let go", "ended"]


@either_async
async def test_a_cancelled_operation_that_cannot_let_go_in_time_is_dropped(
    run: RunAsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "ENDING_SECONDS_MAX", 0.01)
    gates = _Gates()
    task = asyncio.create_task(run(AsyncDriver(gates.send), _holding(gates.log, *calls("a"))))
    await gates.wait_for("a")
    gates.open["a"].set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, WAIT_SECONDS_MAX)
    assert gates.log == ["took", "answer to a", "ended"]


async def test_a_coroutine_that_is_dropped_makes_no_more_requests() -> None:
    gates = _Gates()
    coroutine = AsyncDriver(gates.send).run(gather([_holding(gates.log, *calls("a"))]))
    under_way: Awaitable[Any] = coroutine.send(None)
    while not gates.arrived["a"].is_set():
        await asyncio.sleep(0)
        if getattr(under_way, "done", lambda: False)():
            under_way = coroutine.send(None)
    coroutine.close()
    assert gates.log == ["took", "dropped", "ended"]
    gates.open["a"].set()


# Gathered operations


def test_what_interrupts_one_of_several_lets_all_of_them_go_together() -> None:
    logs: list[list[str]] = [[], []]
    sent: list[str] = []

    def failing() -> Op[None]:
        yield calls("take")
        yield calls("fail")
        msg = "of one"
        raise LookupError(msg)

    def send(call: Call) -> None:
        sent.append(call.method)

    held = [_holding(log, *calls("a")) for log in logs]
    held.insert(1, failing())
    with pytest.raises(LookupError, match="of one"):
        run_blocking(gather(held), send)
    assert logs == [["took", "ended"], ["took", "let go", "ended"]]
    assert sorted(sent) == ["a", "a", "fail", "let go", "take", "take", "take"]
