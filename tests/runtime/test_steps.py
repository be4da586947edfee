"""`gather`, which joins operations round by round."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, gather, result
from tests.support.rounds import Run, calls, either_driver, fail_on_b, recording, rounds_of


def test_gather_joins_rounds_and_keeps_results_in_order_whatever_their_lengths() -> None:
    inner = gather([rounds_of(calls("d1"), calls("d2")), rounds_of()])
    joined = gather([rounds_of(calls("a1"), calls("a2"), calls("a3")), rounds_of(calls("c1", "c2")), inner])
    rounds: list[list[str]] = []
    outcomes: Any = None
    while True:
        try:
            steps = joined.send(outcomes)
        except StopIteration as ended:
            results = ended.value
            break
        rounds.append([each.method for each in steps if isinstance(each, Call)])
        outcomes = [method.upper() for method in rounds[-1]]
    assert rounds == [["a1", "c1", "c2", "d1"], ["a2", "d2"], ["a3"]]
    assert results == [[["A1"], ["A2"], ["A3"]], [["C1", "C2"]], [[["D1"], ["D2"]], []]]


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
