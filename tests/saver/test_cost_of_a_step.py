"""A step costs what it adds, also with agents that nobody here wrote: the engine counts, late turns and early ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.prebuilt import create_react_agent

from benchmarks.contestants import OURS
from benchmarks.edits import WINDOW_UNITS_MAX, measure
from benchmarks.prebuilt import fan_out, turns_of
from benchmarks.runs import Run, run_workload
from benchmarks.workloads import Workload
from tools.engine import Engine

# moto reports the same capacity for whatever it is sent.
pytestmark = pytest.mark.engines("dynamodb-local")

EARLY, LATE = 8, 24
SUBJECTS = (4, 16)


def _run(engine: Engine, workload: Workload) -> Run:
    run = run_workload(OURS, engine, workload)
    assert not run.failure
    return run


@pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")
@pytest.mark.parametrize(
    "make_agent", [pytest.param(create_agent, marks=pytest.mark.search), create_react_agent]
)
@pytest.mark.parametrize("latency_seconds", [0.0, pytest.param(0.02, marks=pytest.mark.search)])
def test_a_turn_of_a_prebuilt_agent_costs_the_same_late_and_early(
    engine: Engine, make_agent: Callable[..., Any], latency_seconds: float
) -> None:
    def turns(saver: Any, thread_id: str) -> Any:
        return turns_of(make_agent, saver, thread_id, turns=LATE, latency_seconds=latency_seconds)

    run = _run(engine, Workload("agent", turns))
    early, late = run.per_turn(EARLY), run.per_turn(LATE)
    # The state is three times as large. What varies is how many steps seal a segment.
    assert late.write_units <= 1.25 * early.write_units
    assert late.read_units <= early.read_units + 1


@pytest.mark.search
def test_a_subject_of_a_fan_out_to_subgraphs_costs_the_same_among_many_and_few(engine: Engine) -> None:
    few, many = (_run(engine, Workload("fan-out", partial(fan_out, subjects=count))) for count in SUBJECTS)
    assert many.write_units / SUBJECTS[1] <= 1.1 * few.write_units / SUBJECTS[0]
    # Confirmations that wait at the same time share a request, more of them among many.
    assert many.read_units / SUBJECTS[1] <= 1.1 * few.read_units / SUBJECTS[0]
    # A marker, 14 heads, the writes of 14 tasks, and the subject once: its 14 checkpoints share it.
    assert many.write_units / SUBJECTS[1] <= 36


def test_a_window_over_many_messages_costs_what_it_adds(engine: Engine) -> None:
    assert measure(engine, "short messages", "window", 1_000).write_units <= WINDOW_UNITS_MAX
