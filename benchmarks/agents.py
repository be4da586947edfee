"""What agents cost that nobody here wrote, run by LangGraph's defaults: a step has to cost what it adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.amazon import run_amazon
from benchmarks.contestants import AMAZON, AWS, AWS_GZIP, OURS
from benchmarks.figures import Figure, Section
from benchmarks.prebuilt import (
    CREATE_AGENT,
    FAN_OUT,
    REACT,
    REACT_QUICK,
    REACT_SHORT,
    REACT_SLOW,
    REACT_SYNC,
    REPEATING,
)
from benchmarks.report import table
from benchmarks.runs import Run, run_workload
from benchmarks.workloads import CHAT, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.engine import Engine

_TURNS = (20, 40, 60, 80)


@dataclass(frozen=True)
class Case:
    """An agent, and what it may cost at most."""

    workload: Workload
    write_units: int
    read_units: int | None = None
    requests: int | None = None
    # Whether the targets are for each turn, at the turns of the tables, and not for all of it.
    per_turn: bool = True
    # What the peers run in its place; nothing where another case says it already.
    peers_run: Workload | None = None


CASES = (
    Case(REACT, 28, peers_run=REACT_SHORT),
    Case(REACT_SYNC, 24),
    Case(REACT_SLOW, 24),
    Case(REACT_QUICK, 28),
    Case(REPEATING, 800, per_turn=False, peers_run=REPEATING),
    Case(FAN_OUT, 4_300, 400, 3_600, per_turn=False, peers_run=FAN_OUT),
    Case(CREATE_AGENT, 16, 6, peers_run=CREATE_AGENT),
    Case(CHAT, 1_050, 450, per_turn=False, peers_run=CHAT),
)


def run(engine: Engine) -> Section:
    """Run each agent with every saver."""
    compared: dict[str, dict[str, Run]] = {}
    for case in CASES:
        runs = compared[case.workload.name] = {OURS.name: run_workload(OURS, engine, case.workload)}
        if case.peers_run is not None:
            runs |= {each.name: run_workload(each, engine, case.peers_run) for each in (AWS, AWS_GZIP)}
            runs[AMAZON.name] = run_amazon(engine, case.peers_run)
    return Section(
        "Agents: LangGraph's prebuilt ones, a state that compresses well, and a fan-out",
        [_turns_table(compared), _totals_table(compared)],
        [figure for case in CASES for figure in _figures(case, compared[case.workload.name][OURS.name])],
        {name: {saver: each.as_json() for saver, each in runs.items()} for name, runs in compared.items()},
    )


def _turns_table(compared: Mapping[str, Mapping[str, Run]]) -> str:
    rows = [
        (
            name if saver == OURS.name else "",
            saver,
            *(each.per_turn(turn).write_units if turn <= len(each.turns) else "" for turn in _TURNS),
            each.failure,
        )
        for name, runs in compared.items()
        for saver, each in runs.items()
        if len(each.turns) >= _TURNS[0]
    ]
    return table(["write units a turn", "saver", *(f"at {turn}" for turn in _TURNS), ""], rows)


def _totals_table(compared: Mapping[str, Mapping[str, Run]]) -> str:
    rows = [
        (
            name if saver == OURS.name else "",
            saver,
            len(each.turns),
            each.write_units,
            each.read_units,
            each.requests,
            each.failure,
        )
        for name, runs in compared.items()
        for saver, each in runs.items()
    ]
    return table(["all of it", "saver", "turns", "write units", "read units", "requests", ""], rows)


def _figures(case: Case, ours: Run) -> Iterator[Figure]:
    places = [turn for turn in _TURNS if turn <= len(ours.turns)] if case.per_turn else [len(ours.turns)]
    for unit in ("write_units", "read_units", "requests"):
        target = getattr(case, unit)
        if target is None:
            continue
        measured = (
            [getattr(ours.per_turn(turn), unit) for turn in places]
            if case.per_turn
            else [getattr(ours, unit)]
        )
        name = f"{case.workload.name}: {unit.replace('_', ' ')}"
        if case.per_turn:
            name += f" a turn, at {', '.join(map(str, places))}"
        counts = ", ".join(f"{each:,.0f}" for each in measured)
        yield Figure(name, f"at most {target:,}", counts, max(measured) <= target)
