"""The drivers and `gather`, stepped with operations made by hand and requests that go nowhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from langgraph.checkpoint.dynamodb import _drivers
from langgraph.checkpoint.dynamodb._drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._limits import THREADED_WORK_BYTES
from langgraph.checkpoint.dynamodb._steps import Call, Emit, Op, Step, Stream, Work, gather, result

Send: TypeAlias = Callable[[Call], Any]
Run: TypeAlias = Callable[[Op[Any], Send], Any]
# A driver that waits for ever is a failure of its own, not a test run without an end.
WAIT_SECONDS_MAX = 10.0

request_id: ContextVar[str] = ContextVar("request_id", default="unset")


def _run_blocking(operation: Op[Any], send: Send) -> Any:
    with ThreadPoolExecutor(4) as pool:
        return BlockingDriver(send, lambda: pool).run(operation)


def _run_async(operation: Op[Any], send: Send) -> Any:
    async def asend(call: Call) -> Any:
        return send(call)

    async def run() -> Any:
        return await asyncio.wait_for(AsyncDriver(asend).run(operation), WAIT_SECONDS_MAX)

    return asyncio.run(run())


either_driver = pytest.mark.parametrize("run", [_run_blocking, _run_async], ids=["blocking", "async"])


def _calls(*methods: str) -> list[Step]:
    return [Call(method, {}) for method in methods]


def _echo(call: Call) -> str:
    return f"answer to {call.method}"


def _rounds(*rounds: Sequence[Step]) -> Op[list[Any]]:
    """Ask for rounds one after the other and return all their outcomes."""
    outcomes: list[Any] = []
    for steps in rounds:
        answers = yield steps
        outcomes += [answers]
    return outcomes


# Rounds and their outcomes


@either_driver
def test_an_operation_gets_each_round_s_outcomes_and_returns_its_result(run: Run) -> None:
    outcomes = run(_rounds(_calls("a"), _calls("b", "c"), [Work(lambda: "worked")]), _echo)
    assert outcomes == [["answer to a"], ["answer to b", "answer to c"], ["worked"]]


@either_driver
def test_an_operation_without_a_round_returns_its_result(run: Run) -> None:
    assert run(_rounds(), _echo) == []


def test_outcomes_of_threads_come_in_the_order_of_the_steps_whichever_ends_first() -> None:
    last_is_done = threading.Event()

    def send(call: Call) -> str:
        if call.method == "first":
            assert last_is_done.wait(WAIT_SECONDS_MAX)
        else:
            last_is_done.set()
        return call.method

    assert _run_blocking(_rounds(_calls("first", "last")), send) == [["first", "last"]]


async def test_outcomes_of_tasks_come_in_the_order_of_the_steps_whichever_ends_first() -> None:
    last_is_done = asyncio.Event()

    async def send(call: Call) -> str:
        if call.method == "first":
            await asyncio.wait_for(last_is_done.wait(), WAIT_SECONDS_MAX)
        else:
            last_is_done.set()
        return call.method

    assert await AsyncDriver(send).run(_rounds(_calls("first", "last"))) == [["first", "last"]]


# Exceptions


def _fail_on_b(call: Call) -> str:
    if call.method == "b":
        raise ConnectionError(call.method)
    return _echo(call)


@either_driver
@pytest.mark.parametrize("methods", [["b"], ["a", "b", "c"]], ids=["alone", "among others"])
def test_what_a_request_raises_is_its_outcome_and_the_others_keep_theirs(
    run: Run, methods: list[str]
) -> None:
    (outcomes,) = run(_rounds(_calls(*methods)), _fail_on_b)
    assert [type(each) for each in outcomes] == [
        ConnectionError if method == "b" else str for method in methods
    ]


@either_driver
def test_an_operation_can_go_on_after_an_exception_or_end_with_it(run: Run) -> None:
    def operation() -> Op[Any]:
        outcomes = yield _calls("b")
        assert isinstance(outcomes[0], ConnectionError)
        outcomes = yield _calls("a", "b")
        return [result(each) for each in outcomes]

    with pytest.raises(ConnectionError, match="b"):
        run(operation(), _fail_on_b)


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
    (outcomes,) = run(_rounds([step] * count), _end_the_iteration)
    assert len(outcomes) == count
    # A coroutine cannot raise StopIteration: Python itself makes a RuntimeError of it.
    assert all(isinstance(each, (StopIteration, RuntimeError)) for each in outcomes)


@either_driver
def test_what_an_operation_raises_ends_it_and_reaches_the_caller(run: Run) -> None:
    def operation() -> Op[None]:
        yield _calls("a")
        msg = "the operation decided so"
        raise LookupError(msg)

    with pytest.raises(LookupError, match="decided so"):
        run(operation(), _echo)


# Ends that nobody planned


def _guarded(closed: list[str], *methods: str) -> Op[None]:
    """Ask for requests one after the other; note when the operation is closed."""
    try:
        for method in methods:
            yield _calls(method)
    finally:
        closed.append("closed")


def _emitting(closed: list[str], *methods: str) -> Stream[str]:
    """Hand on the answer of each request; note when the stream is closed."""
    try:
        for method in methods:
            outcomes = yield _calls(method)
            yield Emit(result(outcomes[0]))
    finally:
        closed.append("closed")


def test_an_interrupt_of_a_blocking_request_closes_the_operation() -> None:
    closed: list[str] = []

    def send(_: Call) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run_blocking(_guarded(closed, "a", "b"), send)
    assert closed == ["closed"]


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


# Streams


def _blocking_stream(stream: Stream[str], send: Send) -> Iterator[str]:
    with ThreadPoolExecutor(1) as pool:
        yield from BlockingDriver(send, lambda: pool).stream(stream)


def _async_stream(stream: Stream[str], send: Send) -> AsyncIterator[str]:
    async def asend(call: Call) -> Any:
        return send(call)

    return AsyncDriver(asend).stream(stream)


def _recording(sent: list[str]) -> Send:
    def send(call: Call) -> str:
        sent.append(call.method)
        return _echo(call)

    return send


def test_a_stream_asks_for_nothing_before_its_first_value_and_only_for_what_is_taken() -> None:
    sent: list[str] = []
    values = _blocking_stream(_emitting([], "a", "b", "c"), _recording(sent))
    assert sent == []
    assert next(values) == "answer to a"
    assert sent == ["a"]
    assert list(values) == ["answer to b", "answer to c"]


async def test_an_async_stream_asks_for_nothing_before_its_first_value_and_only_for_what_is_taken() -> None:
    sent: list[str] = []
    values = _async_stream(_emitting([], "a", "b", "c"), _recording(sent))
    assert sent == []
    assert await anext(values) == "answer to a"
    assert sent == ["a"]
    assert [each async for each in values] == ["answer to b", "answer to c"]


def test_a_stream_that_is_left_early_is_closed_and_asks_for_nothing_more() -> None:
    sent: list[str] = []
    closed: list[str] = []
    stream = _emitting(closed, "a", "b")
    with ThreadPoolExecutor(1) as pool:
        for _ in BlockingDriver(_recording(sent), lambda: pool).stream(stream):
            break
    # Nothing holds the iterator that the loop had, so it was finalized where the loop was left.
    assert (sent, closed) == (["a"], ["closed"])


async def test_an_async_stream_that_is_closed_early_closes_the_operation() -> None:
    sent: list[str] = []
    closed: list[str] = []
    values = AsyncDriver(_as_coroutine(_recording(sent))).stream(_emitting(closed, "a", "b"))
    assert await anext(values) == "answer to a"
    assert hasattr(values, "aclose")
    await values.aclose()
    assert (sent, closed) == (["a"], ["closed"])


def _as_coroutine(send: Send) -> Callable[[Call], Any]:
    async def asend(call: Call) -> Any:
        return send(call)

    return asend


def test_an_exception_in_a_stream_reaches_the_consumer_after_the_values_before_it() -> None:
    values = _blocking_stream(_emitting([], "a", "b"), _fail_on_b)
    assert next(values) == "answer to a"
    with pytest.raises(ConnectionError):
        next(values)


# Threads


@either_driver
def test_requests_and_work_see_the_caller_s_context(run: Run) -> None:
    large = Work(request_id.get, size_bytes=THREADED_WORK_BYTES + 1)
    token = request_id.set("from the caller")
    try:
        outcomes = run(
            _rounds(_calls("alone"), [*_calls("beside", "another"), large], [large]),
            lambda _: request_id.get(),
        )
    finally:
        request_id.reset(token)
    assert {each for round_ in outcomes for each in round_} == {"from the caller"}


def test_the_blocking_driver_asks_for_no_pool_as_long_as_a_round_has_one_step() -> None:
    def no_pool() -> ThreadPoolExecutor:
        msg = "a pool was asked for"
        raise AssertionError(msg)

    driver = BlockingDriver(_echo, no_pool)
    assert driver.run(_rounds(_calls("a"), [Work(lambda: 1)])) == [["answer to a"], [1]]
    with pytest.raises(AssertionError, match="a pool was asked for"):
        driver.run(_rounds(_calls("a", "b")))


def test_only_large_work_leaves_the_event_loop_for_a_thread() -> None:
    def thread() -> int:
        return threading.get_ident()

    steps: list[Step] = [Work(thread, THREADED_WORK_BYTES), Work(thread, THREADED_WORK_BYTES + 1)]
    ((small, large),) = _run_async(_rounds(steps), _echo)
    assert small == threading.get_ident()
    assert large != threading.get_ident()


# Delays


def test_the_blocking_driver_waits_before_a_delayed_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    monkeypatch.setattr(
        _drivers, "time", SimpleNamespace(sleep=lambda seconds: log.append(f"wait {seconds}"))
    )
    _run_blocking(
        _rounds([Call("now", {})], [Call("later", {}, delay_seconds=7.5)]),
        lambda call: log.append(call.method),
    )
    assert log == ["now", "wait 7.5", "later"]


def test_the_async_driver_waits_before_a_delayed_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    async def sleep(seconds: float) -> None:
        log.append(f"wait {seconds}")

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", sleep)
        _run_async(
            _rounds([Call("now", {})], [Call("later", {}, delay_seconds=7.5)]),
            lambda call: log.append(call.method),
        )
    assert log == ["now", "wait 7.5", "later"]


# gather


def test_gather_joins_rounds_and_keeps_results_in_order_whatever_their_lengths() -> None:
    rounds: list[list[str]] = []
    joined = gather([
        _rounds(_calls("a1"), _calls("a2"), _calls("a3")),
        _rounds(),
        _rounds(_calls("c1", "c2")),
        _rounds(_calls("d1"), _calls("d2")),
    ])  # fmt: skip

    def record() -> Op[list[Any]]:
        outcomes: Any = None
        while True:
            try:
                steps = joined.send(outcomes)
            except StopIteration as stop:
                results: list[Any] = stop.value
                return results
            rounds.append([each.method for each in steps if isinstance(each, Call)])
            outcomes = yield steps

    results = _run_blocking(record(), lambda call: call.method.upper())
    assert rounds == [["a1", "c1", "c2", "d1"], ["a2", "d2"], ["a3"]]
    assert results == [
        [["A1"], ["A2"], ["A3"]],
        [],
        [["C1", "C2"]],
        [["D1"], ["D2"]],
    ]


@either_driver
def test_gather_of_nothing_asks_for_nothing(run: Run) -> None:
    sent: list[str] = []
    assert run(gather([]), _recording(sent)) == []
    assert sent == []


@either_driver
def test_a_failure_in_one_operation_ends_what_was_gathered(run: Run) -> None:
    sent: list[str] = []

    def failing() -> Op[list[Any]]:
        outcomes = yield _calls("failing")
        raise LookupError(result(outcomes[0]))

    with pytest.raises(LookupError, match="answer to failing"):
        run(gather([_rounds(_calls("a1"), _calls("a2")), failing()]), _recording(sent))
    assert sorted(sent) == ["a1", "failing"]


@either_driver
def test_an_outcome_that_is_an_exception_reaches_only_the_operation_it_belongs_to(run: Run) -> None:
    first, second = run(gather([_rounds(_calls("a")), _rounds(_calls("b"))]), _fail_on_b)
    assert first == [["answer to a"]]
    assert isinstance(second[0][0], ConnectionError)


@either_driver
def test_gathered_operations_can_be_gathered_again(run: Run) -> None:
    inner = gather([_rounds(_calls("a"), _calls("b")), _rounds(_calls("c"))])
    results = run(gather([inner, _rounds(_calls("d"))]), lambda call: call.method)
    assert results == [[[["a"], ["b"]], [["c"]]], [["d"]]]
