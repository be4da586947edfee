"""A step costs what it adds, also with agents that nobody here wrote: the engine counts, late turns and early ones."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Send
from typing_extensions import TypedDict

from benchmarks.contestants import OURS, Run, run_workload
from benchmarks.conversation import answer, config_of, question, search
from benchmarks.edits import WINDOW, WINDOW_UNITS_MAX, write_units
from benchmarks.meter import total
from benchmarks.workloads import Workload
from tools.engine import Engine

# moto reports the same capacity for whatever it is sent.
pytestmark = pytest.mark.engines("dynamodb-local")

EARLY, LATE = 8, 24
SUBJECTS = (4, 16)
_BUMPS = 10


def _run(engine: Engine, workload: Workload) -> Run:
    run = run_workload(OURS, engine, workload)
    assert not run.failure
    return run


class _ScriptedModel(BaseChatModel):
    """A model that answers as the script of the benchmarks' conversation says."""

    latency_seconds: float

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: object, **_: Any) -> _ScriptedModel:
        del tools
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        time.sleep(self.latency_seconds)
        return ChatResult(generations=[ChatGeneration(message=answer(messages))])


@pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")
@pytest.mark.parametrize(
    "make_agent", [pytest.param(create_agent, marks=pytest.mark.search), create_react_agent]
)
@pytest.mark.parametrize("latency_seconds", [0.0, pytest.param(0.02, marks=pytest.mark.search)])
def test_a_turn_of_a_prebuilt_agent_costs_the_same_late_and_early(
    engine: Engine, make_agent: Callable[..., Any], latency_seconds: float
) -> None:
    def turns(saver: Any, thread_id: str) -> Iterator[int]:
        agent = make_agent(_ScriptedModel(latency_seconds=latency_seconds), [search], checkpointer=saver)
        for turn in range(1, LATE + 1):
            agent.invoke({"messages": [question(turn)]}, config_of(thread_id))
            yield turn

    run = _run(engine, Workload("agent", turns))
    early, late = (total(run.turns[last - 5 : last]) for last in (EARLY, LATE))
    # The state is three times as large. What varies is how many steps seal a segment.
    assert late.write_units <= 1.25 * early.write_units
    assert late.read_units <= early.read_units + 5


class _Subject(TypedDict):
    subject: str


class _Verse(TypedDict):
    subject: str
    verses: list[str]


class _Poem(TypedDict):
    subjects: list[str]
    verses: Annotated[list[str], operator.add]


def _verse() -> CompiledStateGraph[_Verse, None, _Subject, _Verse]:
    """Return a subgraph that writes a line and goes over it ten times."""
    graph = StateGraph(_Verse, input_schema=_Subject)
    graph.add_node("title", lambda state: {"subject": f"On {state['subject']}"})
    graph.add_node("write", lambda state: {"verses": [f"{state['subject']}:"]})
    graph.add_node("go_over", lambda state: {"verses": [f"{state['verses'][0]} o"]})
    graph.add_edge(START, "title")
    graph.add_edge("title", "write")
    graph.add_edge("write", "go_over")
    graph.add_conditional_edges(
        "go_over", lambda state: END if state["verses"][0].endswith(" o" * _BUMPS) else "go_over"
    )
    return graph.compile()


def _fan_out(saver: BaseCheckpointSaver[Any], thread_id: str, subjects: int) -> Iterator[int]:
    """Send each subject to a subgraph of 14 checkpoints, all at once."""
    graph = StateGraph(_Poem)
    graph.add_node("verse", _verse())
    graph.add_conditional_edges(
        START, lambda state: [Send("verse", {"subject": each}) for each in state["subjects"]], ["verse"]
    )
    graph.add_edge("verse", END)
    random = Random("fan-out")
    given = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=1000)) for _ in range(subjects)]
    graph.compile(checkpointer=saver).invoke({"subjects": given, "verses": []}, config_of(thread_id))
    yield 1


@pytest.mark.search
def test_a_subject_of_a_fan_out_to_subgraphs_costs_the_same_among_many_and_few(engine: Engine) -> None:
    few, many = (
        _run(engine, Workload("fan-out", partial(_fan_out, subjects=count))).cost for count in SUBJECTS
    )
    assert many.write_units / SUBJECTS[1] <= 1.1 * few.write_units / SUBJECTS[0]
    # Confirmations that wait at the same time share a request, more of them among many.
    assert many.read_units / SUBJECTS[1] <= 1.1 * few.read_units / SUBJECTS[0]
    # A marker, 14 heads, the writes of 14 tasks, and the subject once: its 14 checkpoints share it.
    assert many.write_units / SUBJECTS[1] <= 36


def test_a_window_over_many_messages_costs_what_it_adds(engine: Engine) -> None:
    units = write_units(engine, "short messages", WINDOW, 1_000)
    assert units is not None
    assert units <= WINDOW_UNITS_MAX
