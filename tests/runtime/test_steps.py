"""`gather`, which joins operations round by round."""

from typing import Any

from langgraph.checkpoint.dynamodb._runtime.steps import Call, gather
from tests.support.rounds import calls, rounds_of


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
