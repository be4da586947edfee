"""The drivers, with operations made by hand and requests that go nowhere."""

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.limits import THREADED_WORK_BYTES
from langgraph.checkpoint.dynamodb._runtime import drivers
from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, Step, Wait, Work
from tests.support.rounds import (
    WAIT_SECONDS_MAX,
    Run,
    as_coroutine,
    calls,
    echo,
    either_driver,
    fail_on_b,
    rounds_of,
    run_async,
    run_blocking,
)

request_id: ContextVar[str] = ContextVar("request_id", default="unset")


# Rounds and their outcomes


@either_driver
def test_a_wait_ends_with_what_it_waits_for(run: Run) -> None:
    ended = Future[None]()
    timer = threading.Timer(0.05, ended.set_result, [None])
    timer.start()
    assert run(rounds_of([Wait(ended, WAIT_SECONDS_MAX)]), echo) == [[None]]
    assert ended.done()


@either_driver
def test_a_wait_ends_in_time(run: Run) -> None:
    ended = Future[None]()
    assert run(rounds_of([Wait(ended, 0.01)]), echo) == [[None]]
    # Whoever waited does not listen any more.
    ended.set_result(None)


async def test_a_blocking_call_on_an_event_loop_waits_for_nothing_that_may_need_the_loop() -> None:
    assert run_blocking(rounds_of([Wait(Future(), 1e9)]), echo) == [[None]]


@either_driver
def test_outcomes_come_in_the_order_of_the_steps_whichever_ends_first(run: Run) -> None:
    last_is_done = threading.Event()

    def work(name: str) -> str:
        if name == "first":
            assert last_is_done.wait(WAIT_SECONDS_MAX)
        else:
            last_is_done.set()
        return name

    large = THREADED_WORK_BYTES + 1
    steps = [Work(partial(work, name), size_bytes=large) for name in ("first", "last")]
    assert run(rounds_of(steps), echo) == [["first", "last"]]


# Exceptions


@either_driver
@pytest.mark.parametrize("methods", [["b"], ["a", "b", "c"]], ids=["alone", "among others"])
def test_what_a_request_raises_is_its_outcome_and_the_others_keep_theirs(
    run: Run, methods: list[str]
) -> None:
    (outcomes,) = run(rounds_of(calls(*methods)), fail_on_b)
    assert [type(each) for each in outcomes] == [
        ConnectionError if method == "b" else str for method in methods
    ]


def _end_the_iteration(_: Call | None = None) -> Any:
    raise StopIteration("not a result")


@either_driver
@pytest.mark.parametrize(
    "step",
    [
        Call("next", {}),
        Work(_end_the_iteration),
        Work(_end_the_iteration, size_bytes=THREADED_WORK_BYTES + 1),
    ],
    ids=["request", "work", "work in a thread"],
)
@pytest.mark.parametrize("count", [1, 2], ids=["alone", "among others"])
def test_a_stop_iteration_of_a_step_does_not_pass_for_the_operation_s_result(
    run: Run, step: Step, count: int
) -> None:
    (outcomes,) = run(rounds_of([step] * count), _end_the_iteration)
    assert len(outcomes) == count
    # A coroutine cannot raise StopIteration: Python itself makes a RuntimeError of it.
    assert all(isinstance(each, (StopIteration, RuntimeError)) for each in outcomes)


# Ends that nobody planned


@pytest.mark.parametrize("count", [1, 3])
async def test_a_cancelled_task_ends_its_requests_and_closes_the_operation(count: int) -> None:
    closed: list[str] = []
    cancelled: list[str] = []
    all_started = asyncio.Event()
    started: list[str] = []

    async def send(call: Call) -> None:
        started.append(call.method)
        if len(started) == count:
            all_started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(call.method)
            raise

    def operation() -> Op[None]:
        try:
            yield [Call(str(number), {}) for number in range(count)]
        finally:
            closed.append("closed")

    task = asyncio.create_task(AsyncDriver(send).run(operation()))
    await asyncio.wait_for(all_started.wait(), WAIT_SECONDS_MAX)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == ["closed"]
    assert sorted(cancelled) == sorted(started)


# Threads


@either_driver
def test_requests_and_work_see_the_caller_s_context(run: Run) -> None:
    large = Work(request_id.get, size_bytes=THREADED_WORK_BYTES + 1)
    token = request_id.set("from the caller")
    try:
        outcomes = run(
            rounds_of(calls("alone"), [*calls("beside", "another"), large], [large]),
            lambda _: request_id.get(),
        )
    finally:
        request_id.reset(token)
    assert {each for round_ in outcomes for each in round_} == {"from the caller"}


def test_the_blocking_driver_asks_for_no_pool_as_long_as_a_round_has_one_step() -> None:
    def no_pool() -> ThreadPoolExecutor:
        msg = "a pool was asked for"
        raise AssertionError(msg)

    driver = BlockingDriver(echo, no_pool)
    assert driver.run(rounds_of(calls("a"), [Work(lambda: 1)])) == [["answer to a"], [1]]
    with pytest.raises(AssertionError, match="a pool was asked for"):
        driver.run(rounds_of(calls("a", "b")))


def test_only_large_work_leaves_the_event_loop_for_a_thread() -> None:
    def thread() -> int:
        return threading.get_ident()

    steps: list[Step] = [Work(thread, THREADED_WORK_BYTES), Work(thread, THREADED_WORK_BYTES + 1)]
    ((small, large),) = run_async(rounds_of(steps), echo)
    assert small == threading.get_ident()
    assert large != threading.get_ident()


@pytest.mark.parametrize(
    "rounds",
    [[[Work(lambda: time.sleep(0.006), 0)]] * 3, [calls(*map(str, range(100)))], [[Work(int, 0)] * 100]],
    ids=["work", "requests", "much work"],
)
async def test_other_tasks_have_their_turn_beside_many_steps(rounds: list[list[Step]]) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(take_turns())
    await AsyncDriver(as_coroutine(echo)).run(rounds_of(*rounds))
    other.cancel()
    assert turns >= 3


# Delays


@pytest.mark.parametrize("is_async", [False, True])
def test_a_driver_waits_before_a_delayed_request_only(
    monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    log: list[str] = []

    async def sleep(seconds: float) -> None:
        log.append(f"wait {seconds}")

    operation = rounds_of([Call("now", {})], [Call("later", {}, delay_seconds=7.5)])
    send = as_coroutine(lambda call: log.append(call.method))
    if is_async:
        asyncio.run(AsyncDriver(send, sleep).run(operation))
    else:
        clock = SimpleNamespace(sleep=lambda seconds: log.append(f"wait {seconds}"))
        monkeypatch.setattr(drivers, "time", clock)
        run_blocking(operation, lambda call: log.append(call.method))
    assert log == ["now", "wait 7.5", "later"]
