"""Streams on both drivers: nothing is asked for before it is needed, and what is left early is closed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Stream, result
from tests.support.rounds import Send, as_coroutine, calls, fail_on_b, recording


def _emitting(closed: list[str], *methods: str) -> Stream[str]:
    """Hand on the answer of each request; note when the stream is closed."""
    try:
        for method in methods:
            outcomes = yield calls(method)
            yield Emit(result(outcomes[0]))
    finally:
        closed.append("closed")


def _blocking_stream(stream: Stream[str], send: Send) -> Iterator[str]:
    with ThreadPoolExecutor(1) as pool:
        yield from BlockingDriver(send, lambda: pool).stream(stream)


def test_a_stream_asks_for_nothing_before_its_first_value_and_only_for_what_is_taken() -> None:
    sent: list[str] = []
    values = _blocking_stream(_emitting([], "a", "b", "c"), recording(sent))
    assert sent == []
    assert next(values) == "answer to a"
    assert sent == ["a"]
    assert list(values) == ["answer to b", "answer to c"]


async def test_an_async_stream_asks_for_nothing_before_its_first_value_and_only_for_what_is_taken() -> None:
    sent: list[str] = []
    values = AsyncDriver(as_coroutine(recording(sent))).stream(_emitting([], "a", "b", "c"))
    assert sent == []
    assert await anext(values) == "answer to a"
    assert sent == ["a"]
    assert [each async for each in values] == ["answer to b", "answer to c"]


def test_a_stream_that_is_left_early_is_closed_and_asks_for_nothing_more() -> None:
    sent: list[str] = []
    closed: list[str] = []
    stream = _emitting(closed, "a", "b")
    with ThreadPoolExecutor(1) as pool:
        for _ in BlockingDriver(recording(sent), lambda: pool).stream(stream):
            break
    # Nothing holds the iterator that the loop had, so it was finalized where the loop was left.
    assert (sent, closed) == (["a"], ["closed"])


async def test_an_async_stream_that_is_closed_early_closes_the_operation() -> None:
    sent: list[str] = []
    closed: list[str] = []
    values = AsyncDriver(as_coroutine(recording(sent))).stream(_emitting(closed, "a", "b"))
    assert await anext(values) == "answer to a"
    assert hasattr(values, "aclose")
    await values.aclose()
    assert (sent, closed) == (["a"], ["closed"])


def test_an_exception_in_a_stream_reaches_the_consumer_after_the_values_before_it() -> None:
    values = _blocking_stream(_emitting([], "a", "b"), fail_on_b)
    assert next(values) == "answer to a"
    with pytest.raises(ConnectionError):
        next(values)
