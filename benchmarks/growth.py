"""How the price of a step grows with the conversation."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.contestants import AWS, AWS_GZIP, OURS, Run, run_workload
from benchmarks.conversation import STEPS_PER_TURN
from benchmarks.report import Bound, Section
from benchmarks.workloads import chat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.engine import Engine

# The first ten turns in which a conversation is under way, and ten of each length.
_SPANS = ((6, 15), (51, 60), (111, 120), (471, 480))
# Each turn costs the others more than the last, and all of it is serialized in each step.
_TURNS = ((OURS, 480), (AWS, 120), (AWS_GZIP, 120))
_GROWTH_MAX = 0.15
# Suits light and dark pages.
_GREY = "#808891"
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "langgraph-dynamodb",
    "font.family": "sans-serif",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "xtick.color", "ytick.color", "legend.labelcolor"), _GREY
    ),
}


def run(engine: Engine) -> Section:
    """Run the chat with each saver as far as it gets."""
    runs = {saver.name: run_workload(saver, engine, chat(turns)) for saver, turns in _TURNS}
    early, *later = (_per_step(runs[OURS.name], *span) for span in _SPANS)
    return Section(
        {},
        [
            Bound(
                f"write units per step, turns {first} to {last} beside {_SPANS[0]}",
                units / early,
                1 + _GROWTH_MAX,
            )
            for (first, last), units in zip(_SPANS[1:], later, strict=True)
        ],
        {
            "growth.svg": _lines(
                "Write units per step of a chat with tools, by turn",
                {saver: _points(each) for saver, each in runs.items()},
            )
        },
    )


def _per_step(run: Run, first: int, last: int) -> float:
    return run.mean_write_units(first, last) / STEPS_PER_TURN


def _points(run: Run) -> list[tuple[int, float]]:
    """Return the mean of each ten turns, by the last of them."""
    return [(last, _per_step(run, last - 9, last)) for last in range(10, len(run.turns) + 1, 10)]


def _lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Draw a line for each series, on logarithmic axes."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.subplots()
        for name, points in series.items():
            axes.loglog(*zip(*points, strict=True), label=name)
        axes.set_title(title)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        svg = StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    return svg.getvalue()
