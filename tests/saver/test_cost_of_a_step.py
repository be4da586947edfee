"""A step costs what it adds, also with agents that nobody here wrote: the engine counts, late turns and early ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.prebuilt import create_react_agent

from benchmarks.contestants import OURS, run_workload
from benchmarks.conversation import answer, config_of, question, search
from benchmarks.edits import WINDOW, WINDOW_UNITS_MAX, write_units
from benchmarks.meter import total
from benchmarks.workloads import Workload
from tools.engine import Engine

# moto reports the same capacity for whatever it is sent.
pytestmark = pytest.mark.engines("dynamodb-local")

EARLY, LATE = 8, 24


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

    run = run_workload(OURS, engine, Workload("agent", turns))
    assert not run.failure
    early, late = (total(run.turns[last - 5 : last]) for last in (EARLY, LATE))
    # The state is three times as large. What varies is how many steps seal a segment.
    assert late.write_units <= 1.25 * early.write_units
    assert late.read_units <= early.read_units + 5


def test_a_window_over_many_messages_costs_what_it_adds(engine: Engine) -> None:
    units = write_units(engine, "short messages", WINDOW, 1_000)
    assert units is not None
    assert units <= WINDOW_UNITS_MAX
