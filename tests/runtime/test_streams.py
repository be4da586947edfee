"""Streams on both drivers: nothing is asked for before it is needed, and what is left early is closed."""

from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest

from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Stream, result
from tests.support.rounds import Send, as_coroutine, calls, fail_on_b, recording

Values: TypeAlias = AsyncGenerator[str, None]


async def _blocking(stream: Stream[str], send: Send) -> Values:
    with ThreadPoolExecutor(1) as pool:
        for value in BlockingDriver(send, lambda: pool).stream(stream):
            yield value


def _async(stream: Stream[str], send: Send) -> Values:
    return AsyncDriver(as_coroutine(send)).stream(stream)


either_driver = pytest.mark.parametrize("run", [_blocking, _async])
Run: TypeAlias = Callable[[Stream[str], Send], Values]


def _emitting(closed: list[str], *methods: str) -> Stream[str]:
    """Hand on the answer of each request; note when the stream is closed."""
    try:
        for method in methods:
            outcomes = yield calls(method)
            yield Emit(result(outcomes[0]))
    finally:
        closed.append("closed")


@either_driver
async def test_a_stream_asks_for_nothing_before_its_first_value_and_only_for_what_is_taken(run: Run) -> None:
    sent: list[str] = []
    values = run(_emitting([], "a", "b", "c"), recording(sent))
    assert sent == []
    assert await anext(values) == "answer to a"
    assert sent == ["a"]
    assert [each async for each in values] == ["answer to b", "answer to c"]


@either_driver
async def test_a_stream_that_is_left_early_is_closed_and_asks_for_nothing_more(run: Run) -> None:
    sent: list[str] = []
    closed: list[str] = []
    values = run(_emitting(closed, "a", "b"), recording(sent))
    assert await anext(values) == "answer to a"
    await values.aclose()
    assert (sent, closed) == (["a"], ["closed"])


@either_driver
async def test_an_exception_in_a_stream_reaches_the_consumer_after_the_values_before_it(run: Run) -> None:
    values = run(_emitting([], "a", "b"), fail_on_b)
    assert await anext(values) == "answer to a"
    with pytest.raises(ConnectionError):
        await anext(values)
