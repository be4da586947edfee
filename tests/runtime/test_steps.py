"""`gather`, which joins operations round by round."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, gather, result
from tests.support.rounds import Run, calls, either_driver, fail_on_b, recording, rounds_of, run_blocking


def test_gather_joins_rounds_and_keeps_results_in_order_whatever_their_lengths() -> None:
    rounds: list[list[str]] = []
    joined = gather([
        rounds_of(calls("a1"), calls("a2"), calls("a3")),
        rounds_of(),
        rounds_of(calls("c1", "c2")),
        rounds_of(calls("d1"), calls("d2")),
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

    results = run_blocking(record(), lambda call: call.method.upper())
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
    assert run(gather([]), recording(sent)) == []
    assert sent == []


@either_driver
def test_a_failure_in_one_operation_ends_what_was_gathered(run: Run) -> None:
    sent: list[str] = []

    def failing() -> Op[list[Any]]:
        outcomes = yield calls("failing")
        raise LookupError(result(outcomes[0]))

    with pytest.raises(LookupError, match="answer to failing"):
        run(gather([rounds_of(calls("a1"), calls("a2")), failing()]), recording(sent))
    assert sorted(sent) == ["a1", "failing"]


@either_driver
def test_an_outcome_that_is_an_exception_reaches_only_the_operation_it_belongs_to(run: Run) -> None:
    first, second = run(gather([rounds_of(calls("a")), rounds_of(calls("b"))]), fail_on_b)
    assert first == [["answer to a"]]
    assert isinstance(second[0][0], ConnectionError)


@either_driver
def test_gathered_operations_can_be_gathered_again(run: Run) -> None:
    inner = gather([rounds_of(calls("a"), calls("b")), rounds_of(calls("c"))])
    results = run(gather([inner, rounds_of(calls("d"))]), lambda call: call.method)
    assert results == [[[["a"], ["b"]], [["c"]]], [["d"]]]
