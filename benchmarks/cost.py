"""What an agent's checkpoints cost in capacity and requests, beside AWS's own saver: `make bench-cost`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.contestants import AWS, AWS_GZIP, OURS
from benchmarks.figures import Figure, Section, at_least, at_most, under
from benchmarks.measurements import (
    ConversationCost,
    SmallCost,
    measure_conversation,
    measure_list,
    measure_sends,
    measure_small,
)
from benchmarks.report import table

if TYPE_CHECKING:
    from benchmarks.contestants import Contestant
    from benchmarks.meter import Tally
    from tools.engine import Engine

CONTESTANTS = (OURS, AWS, AWS_GZIP)
TURNS = 60
EARLY_TURNS = (6, 15)
LATE_TURNS = (51, 60)


@dataclass(frozen=True)
class Measured:
    """Everything that was measured of one saver."""

    conversation: ConversationCost
    small: SmallCost
    sends: Tally
    list_write_units_per_step: float | None

    @property
    def early(self) -> float:
        """Write units per step around turn 10."""
        return self.conversation.write_units_per_step(*EARLY_TURNS)

    @property
    def late(self) -> float:
        """Write units per step at the end."""
        return self.conversation.write_units_per_step(*LATE_TURNS)


def run(engine: Engine) -> Section:
    """Measure the savers and compare them."""
    measured = {contestant.name: measure(contestant, engine) for contestant in CONTESTANTS}
    counts = measured[OURS.name].conversation.counts
    state_bytes = measured[OURS.name].conversation.state_bytes
    return Section(
        f"Cost: an agent of {TURNS} turns: {counts['put']} checkpoints, {counts['put_writes']} put_writes, "
        f"final state {state_bytes / 1000:.0f} KB",
        tables(measured),
        figures(*measured.values()),
        {name: asdict(one) for name, one in measured.items()},
    )


def measure(contestant: Contestant, engine: Engine) -> Measured:
    """Run every workload with one saver."""
    return Measured(
        measure_conversation(contestant, engine, TURNS),
        measure_small(contestant, engine),
        measure_sends(contestant, engine),
        measure_list(contestant, engine),
    )


def figures(ours: Measured, aws: Measured, gzip: Measured) -> list[Figure]:
    """Compare what was measured with what the project set out to reach."""
    units = ours.conversation.write_units(TURNS)
    growth = ours.late / ours.early - 1
    small = ours.small
    conversation = ours.conversation
    grown = ours.list_write_units_per_step
    return [
        at_least(
            "fewer write units, 60 turns, than the AWS saver", 40, aws.conversation.write_units(TURNS) / units
        ),
        at_least("the same than its gzip option", 8, gzip.conversation.write_units(TURNS) / units),
        Figure(
            "growth of write units per step, turn 10 to 60", "within 15%", f"{growth:+.1%}", growth <= 0.15
        ),
        at_most("requests of a put with nothing sealed", 2, small.put),
        at_most("requests of a put_writes", 1, small.put_writes),
        at_most("requests of a get_tuple under 8 KiB", 1, small.get_tuple),
        under("write units of one put_writes of 1,000 Sends", 20, ours.sends.write_units),
        at_most("requests of a get_tuple of 360 KB, idle", 3, conversation.get_idle.requests),
        at_most("the same, interrupted", 3, conversation.get_interrupted.requests),
        at_most("requests of a delete_thread, 60 turns", 45, conversation.delete.requests),
        at_most("items left after it", 0, conversation.left_after_delete),
        under("write units per step of a growing 1 MB list", 12, float("inf") if grown is None else grown),
    ]


def tables(measured: dict[str, Measured]) -> list[str]:
    """Return one table of what the conversation cost, and one of single operations."""
    columns = list(measured.values())
    header = list(measured)
    ours = columns[0].conversation

    def against(turns: int) -> list[float]:
        return [one.conversation.write_units(turns) / ours.write_units(turns) for one in columns]

    conversation = [
        ("write units, 20 turns", *(one.conversation.write_units(20) for one in columns)),
        ("  times as many as ours", *against(20)),
        (f"write units, {TURNS} turns", *(one.conversation.write_units(TURNS) for one in columns)),
        ("  times as many as ours", *against(TURNS)),
        ("  of them by put", *(one.conversation.operations["put"].write_units for one in columns)),
        (
            "  of them by put_writes",
            *(one.conversation.operations["put_writes"].write_units for one in columns),
        ),
        ("write units per step, turns 6 to 15", *(one.early for one in columns)),
        ("write units per step, turns 51 to 60", *(one.late for one in columns)),
        ("read units of put, put_writes, get_tuple", *(_read_units(one.conversation) for one in columns)),
        ("requests per put", *(_mean_requests(one.conversation, "put") for one in columns)),
        ("requests per put_writes", *(_mean_requests(one.conversation, "put_writes") for one in columns)),
        ("items stored", *(one.conversation.stored.items for one in columns)),
        ("bytes stored", *(one.conversation.stored.bytes for one in columns)),
    ]
    operations = [
        ("requests: put, nothing large", *(one.small.put for one in columns)),
        ("requests: put_writes, one task", *(one.small.put_writes for one in columns)),
        ("requests: get_tuple, state under 8 KiB", *(one.small.get_tuple for one in columns)),
        ("requests: get_tuple, 60 turns, idle", *(one.conversation.get_idle.requests for one in columns)),
        (
            "requests: get_tuple, 60 turns, interrupted",
            *(one.conversation.get_interrupted.requests for one in columns),
        ),
        ("requests: delete_thread, 60 turns", *(one.conversation.delete.requests for one in columns)),
        ("requests: put_writes of 1,000 Sends", *(one.sends.requests for one in columns)),
        ("write units: put_writes of 1,000 Sends", *(one.sends.write_units for one in columns)),
        (
            "write units per step: 1 MB list grows",
            *(_or_fails(one.list_write_units_per_step) for one in columns),
        ),
    ]
    return [table(["", *header], conversation), table(["single operations", *header], operations)]


def _read_units(cost: ConversationCost) -> float:
    return sum(tally.read_units for tally in cost.operations.values())


def _mean_requests(cost: ConversationCost, operation: str) -> str:
    return f"{cost.operations[operation].requests / cost.counts[operation]:.2f}"


def _or_fails(units: float | None) -> object:
    return "fails" if units is None else units
