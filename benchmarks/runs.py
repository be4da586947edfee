"""One run of a workload with one saver: what the engine charged turn by turn, and what is in the table then."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from benchmarks.contestants import Bench, Contestant
from benchmarks.meter import WRITES, total
from benchmarks.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.meter import Tally
    from benchmarks.workloads import Workload
    from tools.engine import Engine

_THREAD = "thread"


@dataclass(frozen=True)
class Turn:
    """What one turn cost, and how many checkpoints it stored."""

    steps: int
    write_units: float
    read_units: float
    requests: int


@dataclass(frozen=True)
class Run:
    """What a workload cost, as far as the saver got."""

    turns: tuple[Turn, ...]
    # Write units by operation and kind of request: "put PutItem".
    parts: Mapping[str, float]
    # What is in the table at the end; nothing where that was not counted.
    items: int
    bytes: int
    # Why the saver could not go on; empty where it came to the end.
    failure: str = ""

    @property
    def write_units(self) -> float:
        """Write units of all turns."""
        return sum(turn.write_units for turn in self.turns)

    @property
    def read_units(self) -> float:
        """Read units of all turns."""
        return sum(turn.read_units for turn in self.turns)

    @property
    def requests(self) -> int:
        """Requests of all turns."""
        return sum(turn.requests for turn in self.turns)

    def per_turn(self, last: int) -> Turn:
        """Return the mean of the five turns up to one, rounded."""
        turns = self.turns[max(0, last - 5) : last]
        columns = zip(*(astuple(turn) for turn in turns), strict=True)
        return Turn(*(round(sum(column) / len(turns)) for column in columns))

    def write_units_per_step(self, first: int, last: int) -> float:
        """Return the mean of some turns, the last one included, per checkpoint."""
        turns = self.turns[first - 1 : last]
        return sum(turn.write_units for turn in turns) / sum(turn.steps for turn in turns)

    def as_json(self) -> dict[str, Any]:
        """Return the run in a form that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """Undo `as_json`."""
        return cls(**{**data, "turns": tuple(Turn(**turn) for turn in data["turns"])})


def run_workload(contestant: Contestant, engine: Engine, workload: Workload) -> Run:
    """Run a workload on an empty table until it ends or DynamoDB refuses a request."""
    serde = workload.serde() if workload.serde else None
    with closing(Bench(contestant, engine, serde)) as bench:
        saver, turns, seen, failure = bench.saver, list[Turn](), 0, ""
        try:
            for _ in workload.run(saver, _THREAD):
                turns.append(_turn(saver.operations[seen:]))
                seen = len(saver.operations)
        except Exception as error:
            failure = _refusal(error)
            if not failure:
                raise
        size = bench.stored() if workload.weighed else Stored(0, 0)
        return Run(tuple(turns), _parts(saver.operations), size.items, size.bytes, failure)


def _turn(operations: Iterable[tuple[str, Tally]]) -> Turn:
    names, tallies = zip(*operations, strict=True)
    cost = total(tallies)
    return Turn(names.count("put"), cost.write_units, cost.read_units, cost.requests)


def _parts(operations: Iterable[tuple[str, Tally]]) -> dict[str, float]:
    parts = Counter[str]()
    for operation, tally in operations:
        parts.update({f"{operation} {call}": units for call, units in tally.units.items() if call in WRITES})
    return dict(parts)


def _refusal(error: BaseException | None) -> str:
    """Return what DynamoDB said when it refused a request, also where a saver raised something of its own."""
    while error is not None and not isinstance(error, ClientError):
        error = error.__cause__
    return "" if error is None else str(error.response["Error"]["Message"])
