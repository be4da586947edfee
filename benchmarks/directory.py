"""What the directory of threads adds to an agent's cost, and what its lists take: `make bench`, section `directory`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from benchmarks.contestants import OURS, Bench, MeteredSaver
from benchmarks.conversation import conversation
from benchmarks.figures import Figure, Section, at_most
from benchmarks.meter import total
from benchmarks.report import table
from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.meter import Tally
    from tools.engine import Engine

TURNS = 60
TURN_SECONDS = 60
THREADS = 30
PAGE = 20
TURNS_OF_LISTED = 2
SHARE_MAX, READ_UNITS_MAX, STATUS_UNITS_MAX = 0.05, 5, 30
# A config that names a thread names its owner, so the agent needs no other one.
OWNER_FROM = "thread_id"
_OWNER = "ada"


@dataclass(frozen=True)
class DirectoryCost:
    """What an agent pays without and with a directory, and what a page of it takes."""

    without: Tally
    with_directory: Tally
    page: Tally
    page_with_status: Tally
    page_of_all: Tally

    @property
    def share(self) -> float:
        """How much more the agent writes, as a share."""
        return self.with_directory.write_units / self.without.write_units - 1


def measure_directory(engine: Engine, turns: int = TURNS, turn_seconds: int = TURN_SECONDS) -> DirectoryCost:
    """Run the agent without and with a directory, a turn a minute, and list other threads of one owner."""
    without = _run_agent(engine, turns, turn_seconds)
    with_directory = _run_agent(engine, turns, turn_seconds, owner_from=OWNER_FROM)
    with closing(Bench(OURS, engine)) as bench:
        saver: Any = bench.open()
        for number in range(THREADS):
            for _ in conversation(saver, f"thread {number}", TURNS_OF_LISTED):
                pass
            saver.set_thread(f"thread {number}", owner=_OWNER, title=f"Conversation number {number}")
        listed = [
            _tally(bench, partial(saver.threads, **asked))
            for asked in ({"owner": _OWNER}, {"owner": _OWNER, "with_status": True}, {})
        ]
    return DirectoryCost(without, with_directory, *listed)


def _run_agent(engine: Engine, turns: int, turn_seconds: int, **options: Any) -> Tally:
    seconds = [1_700_000_000.0]
    ours = replace(OURS, open=partial(_on_clock, seconds, **options))
    with closing(Bench(ours, engine)) as bench:
        metered: MeteredSaver[Any] = bench.saver
        for _ in conversation(metered, "thread", turns):
            seconds[0] += turn_seconds
        return total(tally for _, tally in metered.operations)


def _on_clock(seconds: list[float], table_name: str, /, **options: Any) -> DynamoDBSaver:
    saver = DynamoDBSaver(table_name, **options)
    saver._storage = replace(saver.storage, clock=lambda: seconds[0])  # noqa: SLF001 - agents have no such option.
    return saver


def _tally(bench: Bench, call: Callable[[], Any]) -> Tally:
    with bench.meter.operation() as tally:
        found = len(call().threads)
    if found != PAGE:
        msg = f"a page has {found} threads, not {PAGE}"
        raise RuntimeError(msg)
    return tally


def run(engine: Engine) -> Section:
    """Measure the directory."""
    cost = measure_directory(engine)
    rows = [
        (f"write units, {TURNS} turns, without", cost.without.write_units),
        ("  with a directory", cost.with_directory.write_units),
        ("  more", f"{cost.share:.1%}"),
        ("requests, without", cost.without.requests),
        ("  with a directory", cost.with_directory.requests),
        ("read units, without", cost.without.read_units),
        ("  with a directory", cost.with_directory.read_units),
        (f"read units of a page of {PAGE}", cost.page.read_units),
        ("  with status", cost.page_with_status.read_units),
        ("  of all threads", cost.page_of_all.read_units),
        (f"requests of a page of {PAGE}", cost.page.requests),
    ]
    return Section(
        f"Directory: an agent of {TURNS} turns, one every {TURN_SECONDS} seconds; {THREADS} threads of one owner",
        [table(["", "measured"], rows)],
        [
            Figure(
                "write units of the directory",
                f"at most {SHARE_MAX:.0%}",
                f"{cost.share:.1%}",
                cost.share <= SHARE_MAX,
            ),
            at_most(f"read units of a page of {PAGE}", READ_UNITS_MAX, ceil(cost.page.read_units)),
            at_most("the same with status", STATUS_UNITS_MAX, ceil(cost.page_with_status.read_units)),
            at_most(f"requests of a page of {PAGE}", 1, cost.page.requests),
        ],
        {name: asdict(tally) for name, tally in vars(cost).items()},
    )
