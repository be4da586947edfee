"""What reading costs: a conversation on one process, on several in turn, and on a new one for each turn.

A process remembers segments that it stored or read, so what a turn reads depends on who had the turns before.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.contestants import AWS, AWS_GZIP, OURS, Bench
from benchmarks.conversation import relay
from benchmarks.dollars import request_dollars
from benchmarks.figures import Figure, Section, at_least, at_most, under, within
from benchmarks.measurements import newest
from benchmarks.meter import READS, Tally, total
from benchmarks.report import table
from langgraph.checkpoint.dynamodb._format.items import SEGMENTS
from langgraph.checkpoint.dynamodb._format.pricing import read_units

if TYPE_CHECKING:
    from typing import Any

    from benchmarks.contestants import Contestant, MeteredSaver
    from tools.engine import Engine

TURNS = 60
_THREAD = "thread"
ONE, FOUR, NEW = "one process", "four in turn", "a new one for each turn"
_PROCESSES = {ONE: 1, FOUR: 4, NEW: TURNS}


@dataclass(frozen=True)
class Relay:
    """What a conversation cost on so many processes, and what reading its thread took at the end."""

    conversation: Tally
    # By the process that had the last turn, and by one that remembers nothing.
    warm: Tally
    cold: Tally
    # The read units of all segments that are stored, as one item.
    floor: float

    @property
    def dollars(self) -> float:
        """What the conversation cost, on demand in us-east-1."""
        return request_dollars(self.conversation.write_units, self.conversation.read_units)


def run(engine: Engine) -> Section:
    """Measure the savers and compare them."""
    ours = {name: measure(OURS, engine, processes) for name, processes in _PROCESSES.items()}
    # A peer remembers nothing, so it does not matter which of its processes has the turn.
    peers = {peer.name: measure(peer, engine, 1) for peer in (AWS, AWS_GZIP)}
    columns = {**{f"ours, {name}": relay for name, relay in ours.items()}, **peers}
    kinds = [
        kind for kind in sorted(READS) if any(kind in one.conversation.units for one in columns.values())
    ]
    rows: list[tuple[object, ...]] = [
        ("read units", *(one.conversation.read_units for one in columns.values())),
        *(
            (f"  of {kind}", *(one.conversation.units.get(kind, 0.0) for one in columns.values()))
            for kind in kinds
        ),
        ("write units", *(one.conversation.write_units for one in columns.values())),
        ("dollars of a thousand conversations", *(f"{1000 * one.dollars:.2f}" for one in columns.values())),
        ("requests of get_tuple at the end, warm", *(one.warm.requests for one in columns.values())),
        ("requests of get_tuple at the end, cold", *(one.cold.requests for one in columns.values())),
        ("read units of get_tuple at the end, warm", *(one.warm.read_units for one in columns.values())),
        ("read units of get_tuple at the end, cold", *(one.cold.read_units for one in columns.values())),
    ]
    return Section(
        f"Reads: an agent of {TURNS} turns",
        [table(["", *columns], rows)],
        figures(ours, peers[AWS.name], peers[AWS_GZIP.name]),
        {name: asdict(one) for name, one in columns.items()},
    )


def measure(contestant: Contestant, engine: Engine, processes: int) -> Relay:
    """Run the conversation on so many processes in turn, and read it once more."""
    with closing(Bench(contestant, engine)) as bench:
        savers = [bench.reopen() for _ in range(processes)]
        for _ in relay(savers, _THREAD, TURNS):
            pass
        conversation = total(tally for saver in savers for _, tally in saver.operations)
        last = savers[(TURNS - 1) % processes]
        warm, cold = (_read(saver) for saver in (last, bench.reopen()))
        floor = read_units(bench.stored(SEGMENTS).bytes)
    return Relay(conversation, warm, cold, floor)


def figures(ours: dict[str, Relay], aws: Relay, gzip: Relay) -> list[Figure]:
    """Compare what was measured with what the project set out to reach."""
    one = ours[ONE].conversation
    return [
        under("read units, one process", 501, one.read_units),
        under("the same, to those of the AWS saver", 1, one.read_units / aws.conversation.read_units),
        under("the same, to those of its gzip option", 1.3, one.read_units / gzip.conversation.read_units),
        under("read units, four processes in turn", 801, ours[FOUR].conversation.read_units),
        under(
            "the same, a new process for each turn",
            1001,
            ours[NEW].conversation.read_units,
            remark="420 are looks, 60 heads, and the rest the bytes of each turn's state, compressed, once; level 6 of"
            " zstd would save what is missing, for a third more CPU, and segments twice as large, for 7% more write"
            " units (docs/decisions/0001)",
        ),
        at_least(
            "fewer dollars, one process, than the AWS saver with gzip", 12, gzip.dollars / ours[ONE].dollars
        ),
        at_most("requests of a warm get_tuple of 360 KB", 1, ours[ONE].warm.requests),
        at_most("the same, cold", 2, ours[ONE].cold.requests),
        within(
            "read units of a cold one, to those of its bytes",
            1.5,
            ours[ONE].cold.read_units / ours[ONE].floor,
        ),
    ]


def _read(saver: MeteredSaver[Any]) -> Tally:
    newest(saver, _THREAD)
    return saver.tallies("get_tuple")[-1]
