"""A thread with a ttl that is in use keeps its state, whatever its graph waits for. LangGraph's own loop runs it."""

from __future__ import annotations

import operator
import queue
from collections.abc import Callable, Sequence
from itertools import count
from typing import Annotated, Any, TypeAlias
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import Event
from tests.conftest import MakeSaver
from tests.support.change import change_storage
from tests.support.examples import percent

TTL_SECONDS = 1000
PAUSE_SECONDS = 700

# Whatever is asked for has to be there by the saver's own rule, so one engine is enough.
pytestmark = pytest.mark.engines("dynamodb-local")


class State(TypedDict):
    """What the graphs keep."""

    answers: Annotated[list[str], operator.add]


class Clock:
    """The savers' time, which goes on between two actions."""

    def __init__(self) -> None:
        """Start at some time."""
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the time, in epoch seconds."""
        return self.now

    def wait(self) -> None:
        """Let more than half of the ttl pass."""
        self.now += PAUSE_SECONDS


@pytest.fixture
def clock() -> Clock:
    """Give the clock of the test."""
    return Clock()


@pytest.fixture
def events() -> queue.Queue[Event]:
    """Give the events of the saver's operations."""
    return queue.Queue()


@pytest.fixture
def saver(make_saver: MakeSaver, clock: Clock, events: queue.Queue[Event]) -> DynamoDBSaver:
    """Give a saver that goes by the clock."""
    saver = make_saver(ttl_seconds=TTL_SECONDS, owner_from="user_id", on_event=events.put)
    change_storage(saver, clock=clock)
    return saver


def _wait_for(events: queue.Queue[Event], *operations: str) -> None:
    """Wait until operations have ended."""
    for operation in operations:
        while events.get(timeout=60).operation != operation:
            pass


CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "ada"}}


def _asking(name: str, questions: int) -> Any:
    """Return a node that asks some questions, one after the other."""

    def node(_state: State) -> Any:
        return {"answers": [interrupt(f"{name} {number}") for number in range(questions)]}

    return node


def _graph(saver: DynamoDBSaver | None, *nodes: tuple[str, Any]) -> Any:
    """Return a graph whose nodes run side by side."""
    builder = StateGraph(State)
    for name, node in nodes:
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder.compile(checkpointer=saver)


def test_the_tasks_of_a_function_run_once(
    saver: DynamoDBSaver, clock: Clock, events: queue.Queue[Event]
) -> None:
    ran: list[int] = []

    @task
    def work(number: int) -> int:
        if ran:
            # The writes of the task before are stored in the background, and this clock goes on at once.
            _wait_for(events, "put_writes")
        ran.append(number)
        clock.wait()
        return number

    @entrypoint(checkpointer=saver)
    def function(_: Any) -> list[int]:
        results = [work(number).result() for number in range(5)]
        interrupt("go on?")
        return results

    function.invoke("begin", CONFIG)
    clock.wait()
    assert function.invoke(Command(resume="yes"), CONFIG) == list(range(5))
    assert ran == list(range(5))


def test_a_node_that_takes_longer_than_the_ttl(
    saver: DynamoDBSaver, clock: Clock, events: queue.Queue[Event]
) -> None:
    def slow(_state: State) -> Any:
        if not slept:
            slept.append(True)
            # Its checkpoint, and the one of the input, are stored in the background.
            _wait_for(events, "put", "put")
            clock.now += 1.5 * TTL_SECONDS
        return {"answers": [interrupt("done?")]}

    slept: list[bool] = []
    graph = _graph(saver, ("slow", slow))
    graph.invoke({"answers": ["first"]}, CONFIG)
    clock.wait()
    assert graph.invoke(Command(resume="yes"), CONFIG)["answers"] == ["first", "yes"]


@pytest.mark.parametrize("pauses", [1, 4])
def test_a_thread_that_is_not_used_expires(saver: DynamoDBSaver, clock: Clock, pauses: int) -> None:
    graph = _graph(saver, ("ask", _asking("ask", 2)))
    graph.invoke({"answers": []}, CONFIG)
    for _ in range(pauses):
        clock.now += TTL_SECONDS / pauses
        graph.get_state(CONFIG)
        assert saver.threads(owner="ada") is not None
    assert graph.get_state(CONFIG).values == {}
    assert saver.threads(owner="ada").threads == []


# A program: what runs side by side or one after the other, each part some questions or a subgraph.
programs = st.recursive(
    st.integers(1, 2),
    lambda parts: st.tuples(st.booleans(), st.lists(parts, min_size=1, max_size=3)),
    max_leaves=5,
)
Program: TypeAlias = Any


def _compiled(program: Program, saver: BaseCheckpointSaver[Any] | None, path: str = "") -> Any:
    side_by_side, parts = program if isinstance(program, tuple) else (False, [program])
    builder = StateGraph(State)
    before = START
    for number, part in enumerate(parts):
        # Each question is another one, so that the answers tell which was asked for.
        name = f"{path}{number}"
        node = _compiled(part, None, f"{name}-") if isinstance(part, tuple) else _asking(name, part)
        builder.add_node(name, node)
        builder.add_edge(START if side_by_side else before, name)
        before = name
    return builder.compile(checkpointer=saver)


def _run(graph: Any, orders: Sequence[int], wait: Callable[[], None]) -> list[str]:
    """Answer one open question after the other, in some order; return the answers."""
    config: Any = {"configurable": {"thread_id": uuid4().hex}}
    graph.invoke({"answers": []}, config)
    for number in count():
        wait()
        # The ids of interrupts come from those of tasks, which differ from thread to thread.
        asked = sorted(graph.get_state(config).interrupts, key=lambda each: str(each.value))
        if not asked:
            return list(graph.get_state(config).values["answers"])
        chosen = asked[orders[number % len(orders)] % len(asked)]
        graph.invoke(Command(resume={chosen.id: f"{number} for {chosen.value}"}), config)
    raise AssertionError


@pytest.mark.parametrize("share", [0.0, 0.3, 0.85])
def test_random_programs_end_as_in_memory(saver: DynamoDBSaver, clock: Clock, share: float) -> None:
    """However long they wait for each answer, up to nearly the ttl."""

    @settings(max_examples=percent(10), deadline=None)
    @given(programs, st.lists(st.integers(0, 5), min_size=1, max_size=4))
    def check(program: Program, orders: Sequence[int]) -> None:
        def wait() -> None:
            clock.now += share * TTL_SECONDS

        expected = _run(_compiled(program, InMemorySaver()), orders, lambda: None)
        assert _run(_compiled(program, saver), orders, wait) == expected

    check()
