"""What agents cost in dollars, beside the peers and the floor, and what their threads hold at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.amazon import run_amazon
from benchmarks.chart import Bar, bars
from benchmarks.contestants import AMAZON, AWS, AWS_GZIP, FLOOR, OURS
from benchmarks.dollars import stored_dollars
from benchmarks.figures import Figure, Section, at_least, within
from benchmarks.report import table
from benchmarks.runs import Run, run_workload
from benchmarks.workloads import PRICED
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tools.engine import Engine

CONVERSATIONS = 1_000

_FLOOR_TARGET = 1.6
_PEERS_TARGET = 8
_STORED_TARGET = 15
# Why a workload costs more than its floor, beyond what every thread needs.
_REASONS = {
    "retrieval": "the documents are stored twice, as a task's pending writes and in the checkpoint after it, while"
    " the floor counts them once; and the open end of the messages is in every head until it is sealed",
    "deep agent": "an edit costs what it falls into, one or two segments of some 3 KB, though the whole file is in the"
    " task's pending writes already, where the floor leaves it; and the open ends are in every head",
    "map-reduce": "nearly all of it are the 200 tasks' pending writes of one unit each, which the floor pays as well",
    "sliding window": "the open end of the messages, up to 4 KiB and more, is in every head until it is sealed",
}
PEERS = (AWS.name, AWS_GZIP.name, AMAZON.name)


@dataclass(frozen=True)
class Price:
    """Dollars for a thousand conversations."""

    writes: float
    reads: float
    month: float

    @property
    def requests(self) -> float:
        """What the conversations cost while they went on."""
        return self.writes + self.reads


def price_of(run: Run) -> Price:
    """Put a price on what was measured."""
    return Price(
        CONVERSATIONS * run.write_units * WRITE_UNIT_DOLLARS,
        CONVERSATIONS * run.read_units * READ_UNIT_DOLLARS,
        CONVERSATIONS * stored_dollars(run.bytes, run.items),
    )


@dataclass(frozen=True)
class Comparison:
    """One workload with every saver."""

    name: str
    runs: Mapping[str, Run]

    @property
    def ours(self) -> Run:
        """Our run."""
        return self.runs[OURS.name]

    @property
    def floor(self) -> Run:
        """The floor's run."""
        return self.runs[FLOOR.name]

    @property
    def cheapest(self) -> str:
        """The name of the cheapest of the peers that came to the end."""
        ended = [peer for peer in PEERS if not self.runs[peer].failure]
        return min(ended, key=lambda peer: price_of(self.runs[peer]).requests)


def run(engine: Engine) -> Section:
    """Run every workload with every saver and compare."""
    compared = [
        Comparison(
            workload.name,
            {
                **{each.name: run_workload(each, engine, workload) for each in (OURS, FLOOR, AWS, AWS_GZIP)},
                AMAZON.name: run_amazon(engine, workload),
            },
        )
        for workload in PRICED
    ]
    return Section(
        f"Price: dollars for {CONVERSATIONS:,} conversations, on demand in us-east-1",
        [prices_table(compared), parts_table(compared)],
        list(figures(compared)),
        {one.name: {saver: each.as_json() for saver, each in one.runs.items()} for one in compared},
        {"price.svg": chart(compared)},
    )


def prices_table(compared: Sequence[Comparison]) -> str:
    """Return what each saver costs on each workload; ratios are to ours."""
    rows = [_row(one, saver) for one in compared for saver in one.runs]
    header = [
        "workload", "saver", "writes $", "reads $", "together $", "times ours",
        "stored KB", "times ours", "a month $", "",
    ]  # fmt: skip
    return table(header, rows)


def _row(one: Comparison, saver: str) -> Sequence[object]:
    run = one.runs[saver]
    label = one.name if saver == OURS.name else ""
    if run.failure:
        return (label, saver, *("fails",) * 7, f"after turn {len(run.turns)}: {run.failure}")
    price, ours = price_of(run), price_of(one.ours)
    return (
        label,
        saver,
        f"{price.writes:.3f}",
        f"{price.reads:.3f}",
        f"{price.requests:.3f}",
        f"{price.requests / ours.requests:.2f}",
        f"{run.bytes / 1000:,.0f}",
        f"{run.bytes / one.ours.bytes:.2f}",
        f"{price.month:.3f}",
        "",
    )


_PARTS = {
    "heads": "put PutItem",
    "segments": "put BatchWriteItem",
    "thread item": "put UpdateItem",
    "pending writes": "put_writes UpdateItem",
    "their segments": "put_writes BatchWriteItem",
}


def parts_table(compared: Sequence[Comparison]) -> str:
    """Return what our write units went into, beside the floor's."""
    rows = [
        (
            one.name,
            one.ours.write_units,
            *(one.ours.parts.get(part, 0.0) for part in _PARTS.values()),
            one.floor.parts["put PutItem"],
            one.floor.parts["put_writes PutItem"],
            f"{one.ours.write_units / one.floor.write_units:.2f}",
        )
        for one in compared
    ]
    header = ["write units", "ours", *_PARTS, "floor: put", "floor: put_writes", "ours / floor"]
    return table(header, rows)


def figures(compared: Sequence[Comparison]) -> Iterator[Figure]:
    """Compare with what the project set out to reach, workload by workload."""
    for one in compared:
        yield within(
            f"{one.name}: writes against the floor's",
            _FLOOR_TARGET,
            one.ours.write_units / one.floor.write_units,
            _extra(one),
        )
    for one in compared:
        peer = price_of(one.runs[one.cheapest])
        ratio = peer.requests / price_of(one.ours).requests
        of_floor = peer.requests / price_of(one.floor).requests
        remark = _with_reason(
            one,
            f"the cheapest peer is {one.cheapest}; the floor, which nobody can read, is {of_floor:.1f} times below it",
        )
        yield replace(at_least(f"{one.name}: below the cheapest peer", _PEERS_TARGET, ratio), remark=remark)
    for one in compared:
        ratio = one.runs[AWS.name].bytes / one.ours.bytes
        of_floor = one.runs[AWS.name].bytes / one.floor.bytes
        remark = _with_reason(
            one, f"what the floor stores, which nobody can read, is {of_floor:.1f} times less than the peer's"
        )
        yield replace(
            at_least(f"{one.name}: bytes stored, below the default peer", _STORED_TARGET, ratio),
            remark=remark,
        )


def _extra(one: Comparison) -> str:
    """Say what the units above the floor went into."""
    parts = one.ours.parts
    puts = one.floor.parts["put PutItem"]
    writes = one.floor.parts["put_writes PutItem"]
    heads, segments = parts["put PutItem"], parts.get("put BatchWriteItem", 0)
    pending = parts["put_writes UpdateItem"] + parts.get("put_writes BatchWriteItem", 0)
    return _with_reason(
        one,
        f"heads {heads:,.0f} and segments {segments:,.0f} for the floor's {puts:,.0f} units of put, "
        f"pending writes {pending:,.0f} for its {writes:,.0f}",
    )


def _with_reason(one: Comparison, measured: str) -> str:
    return "; ".join(filter(None, (measured, _REASONS.get(one.name))))


def chart(compared: Sequence[Comparison]) -> str:
    """Draw what a thousand conversations cost with each saver."""
    groups = [(one.name, [Bar(saver, *_bar(each)) for saver, each in one.runs.items()]) for one in compared]
    return bars(f"Requests of {CONVERSATIONS:,} conversations, in dollars", groups)


def _bar(run: Run) -> tuple[float | None, str]:
    if run.failure:
        return None, f"fails after {len(run.turns)} turns"
    dollars = price_of(run).requests
    return dollars, f"${dollars:,.2f}"
