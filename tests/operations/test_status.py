"""The status of a thread is what LangGraph says of it, by the writes that LangGraph stores."""

import copy
import operator
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.items import partition_of
from langgraph.checkpoint.dynamodb._operations.overview import lines
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.support.moving_clock import Engine


class Log(TypedDict):
    """What the nodes below have said."""

    said: Annotated[list[str], operator.add]


class Failing:
    """A node that asks each of its questions in turn, and fails at some of its runs and at the answer `fail`."""

    def __init__(self, questions: Sequence[str], *fails_at: int) -> None:
        """Take the questions, and the runs at which it fails before it asks; the first run is 1."""
        self._questions, self._fails_at, self._runs = questions, fails_at, 0

    def __call__(self, state: Log) -> Log:
        """Run once."""
        del state
        self._runs += 1
        if self._runs in self._fails_at:
            raise ArithmeticError("too early")
        answers = [interrupt(each) for each in self._questions]
        if "fail" in answers:
            raise ArithmeticError("after the answer")
        return {"said": answers}


def runs(saver: DynamoDBSaver, nodes: Sequence[Failing], *inputs: Any) -> Any:
    """Run a graph of parallel nodes with each input, and return what LangGraph says of its state."""
    builder = StateGraph(Log)
    for number, node in enumerate(nodes):
        builder.add_node(f"node {number}", node)
        builder.add_edge(START, f"node {number}")
    graph = builder.compile(checkpointer=saver)
    # One after the other: the error of a node would cancel those that have not asked yet.
    config: RunnableConfig = {"configurable": {"thread_id": "one", "user_id": "ada"}, "max_concurrency": 1}
    for each in inputs:
        with suppress(ArithmeticError):
            graph.invoke(each, config)
    return graph.get_state(config)


BEGIN: Log = {"said": []}


@pytest.mark.parametrize(
    ("nodes", "inputs", "status"),
    [
        pytest.param([Failing(["?"])], [BEGIN], "waiting", id="asked"),
        pytest.param([Failing([], 1)], [BEGIN], "failed", id="failed"),
        pytest.param([Failing(["?"], 1)], [BEGIN, None], "waiting", id="failed, retried and asked"),
        pytest.param([Failing(["?"])], [BEGIN, Command(resume="fail")], "failed", id="answered and failed"),
        pytest.param(
            [Failing(["?"], 2)], [BEGIN, Command(resume="x")], "failed", id="failed before the answer"
        ),
        pytest.param([Failing(["?", "!"])], [BEGIN, Command(resume="x")], "waiting", id="asked again"),
        pytest.param([Failing(["?"]), Failing([], 1)], [BEGIN], "failed", id="one waits, one failed"),
        pytest.param([Failing(["?"]), Failing([], 1)], [BEGIN, None], "waiting", id="one waits, one retried"),
        pytest.param([Failing(["?"], 1)], [BEGIN, None, Command(resume="x")], "idle", id="done"),
    ],
)
def test_the_status_follows_langgraph(nodes: Sequence[Failing], inputs: Sequence[Any], status: str) -> None:
    saver = Engine().saver(owner_from="user_id")
    state = runs(saver, copy.deepcopy(nodes), *inputs)
    (found,) = saver.threads(owner="ada", with_status=True).threads
    newest, *_ = saver.runner.run(collected(lines(saver.storage, partition_of("one"))))
    assert found.status == newest.status == status
    assert [each.thread_id for each in saver.threads(owner="ada", status=status).threads] == ["one"]
    if status == "waiting":
        assert state.interrupts
    if status == "failed":
        assert any(each.error for each in state.tasks)
    assert bool(state.next) == (status != "idle")
