"""How the price of a step grows with the conversation: at 60, 240 and 960 turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.amazon import run_amazon
from benchmarks.chart import Line, lines
from benchmarks.contestants import AMAZON, AWS, AWS_GZIP, FLOOR, OURS
from benchmarks.figures import Figure, Section
from benchmarks.report import table
from benchmarks.runs import Run, run_workload
from benchmarks.workloads import LONG_CHAT, chat
from langgraph.checkpoint.dynamodb._format.limits import INDEX_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.engine import Engine

TURNS = (60, 240, 960)
# What the later turns are compared with: the first ten in which a conversation is under way.
_EARLY = (6, 15)
_WINDOW = 10
_GROWTH_MAX = 0.15


def run(engine: Engine) -> Section:
    """Run the chat with ours to the end and with the others to 240 turns, or as far as they get."""
    runs = {
        OURS.name: run_workload(OURS, engine, replace(chat(TURNS[-1]), weighed=False)),
        **{each.name: run_workload(each, engine, LONG_CHAT) for each in (FLOOR, AWS, AWS_GZIP)},
        AMAZON.name: run_amazon(engine, LONG_CHAT),
    }
    return Section(
        "Growth: write units per step as a chat goes on",
        [growth_table(runs)],
        [_figure(runs[OURS.name], turns) for turns in TURNS],
        {saver: each.as_json() for saver, each in runs.items()},
        {"growth.svg": chart(runs)},
    )


def growth_table(runs: Mapping[str, Run]) -> str:
    """Return write units per step, early and in the last ten turns of each length."""
    spans = [_EARLY, *((turns - _WINDOW + 1, turns) for turns in TURNS)]
    rows = [(saver, *(_cell(each, *span) for span in spans), _end(each)) for saver, each in runs.items()]
    return table(["saver", *(f"turns {first} to {last}" for first, last in spans), ""], rows)


def _cell(run: Run, first: int, last: int) -> object:
    if last <= len(run.turns):
        return run.write_units_per_step(first, last)
    return "fails" if run.failure else "not run"


def _end(run: Run) -> str:
    return f"after turn {len(run.turns)}: {run.failure}" if run.failure else ""


def _figure(run: Run, turns: int) -> Figure:
    growth = run.write_units_per_step(turns - _WINDOW + 1, turns) / run.write_units_per_step(*_EARLY) - 1
    return Figure(
        f"growth of write units per step, turn 10 to {turns}",
        f"within {_GROWTH_MAX:.0%}",
        f"{growth:+.1%}",
        abs(growth) <= _GROWTH_MAX,
        _swing(run),
    )


def _swing(run: Run) -> str:
    """Say that it goes up and down with the ids in a head, and whether it rises."""
    units = [units for _, units in _points(run)[1:]]
    half = len(run.turns) // 2
    early = run.write_units_per_step(_EARLY[0], half)
    late = run.write_units_per_step(half + 1, len(run.turns))
    return (
        f"a head names up to {INDEX_GROUP} segments before their ids move to an index segment, so units per step "
        f"swing between {min(units):.2f} and {max(units):.2f}; the mean is {early:.2f} up to turn {half} and "
        f"{late:.2f} from there on"
    )


def chart(runs: Mapping[str, Run]) -> str:
    """Draw write units per step over turns."""
    drawn = [Line(saver, _points(each), "fails" if each.failure else "") for saver, each in runs.items()]
    return lines("Write units per step of a chat with tools", "turns", drawn)


def _points(run: Run) -> list[tuple[int, float]]:
    """Return the mean of each ten turns, by the last of them."""
    lasts = range(_WINDOW, len(run.turns) + 1, _WINDOW)
    return [(last, run.write_units_per_step(last - _WINDOW + 1, last)) for last in lasts]
