"""What agents cost: one conversation in units, its bill, and kinds of agents in dollars."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.contestants import AWS, AWS_GZIP, OURS, Run, new_bench, run_workload
from benchmarks.conversation import STEPS_PER_TURN, conversation, relay
from benchmarks.dollars import CONVERSATIONS, ITEM_OVERHEAD_BYTES, request_dollars, stored_dollars
from benchmarks.report import Bound, Section, table
from benchmarks.workloads import CHAT, PRICED, SENDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.meter import Tally
    from benchmarks.stored import Stored
    from benchmarks.workloads import Workload
    from tools.engine import Engine

SAVERS = (OURS, AWS, AWS_GZIP)
_TURNS, _FEW_TURNS = 60, 10
_KEPT = 20
_THREAD = "thread"


def run(engine: Engine) -> Section:
    """Run every workload with every saver and compare."""
    chat = {saver.name: run_workload(saver, engine, replace(CHAT, weighed=True)) for saver in SAVERS}
    prices = [
        _price(CHAT, chat[OURS.name], chat[AWS_GZIP.name]),
        *(
            _price(workload, *(run_workload(each, engine, workload) for each in (OURS, AWS_GZIP)))
            for workload in PRICED
        ),
    ]
    sends = run_workload(OURS, engine, SENDS).cost
    ours, aws, gzip = (each.cost for each in chat.values())
    conversation_table = table(
        ["", *chat],
        [
            ("write units", *(each.write_units for each in (ours, aws, gzip))),
            *(
                (f"write units per step, turns {first} to {last}", *_per_step(chat, first, last))
                for first, last in ((6, 15), (51, 60))
            ),
            ("read units", *(each.read_units for each in (ours, aws, gzip))),
            (
                "read units, if each turn has a new process",
                _relayed(engine),
                *(each.read_units for each in (aws, gzip)),
            ),
            ("MB stored at the end", *(each.stored.bytes / 1e6 for each in chat.values())),
        ],
    )
    return Section(
        {
            "conversation": conversation_table,
            "bill": _bill(engine, sends),
            "prices": table(["agent", OURS.name, AWS_GZIP.name, "ratio"], prices),
        },
        [
            # What the first release took, and what the look before each commit reads.
            Bound(f"write units of {CHAT.name}", ours.write_units, most=1_060),
            Bound(f"read units of {CHAT.name}", ours.read_units, most=500),
            Bound(
                f"times the write units of {CHAT.name}: {AWS.name}",
                aws.write_units / ours.write_units,
                least=40,
            ),
            Bound(f"the same: {AWS_GZIP.name}", gzip.write_units / ours.write_units, least=8),
            Bound(f"write units per task of {SENDS.name}", sends.write_units / 1_000, most=1.1),
        ],
    )


def _per_step(chat: Mapping[str, Run], first: int, last: int) -> list[float]:
    return [each.mean_write_units(first, last) / STEPS_PER_TURN for each in chat.values()]


def _relayed(engine: Engine) -> float:
    """Return the read units of the conversation if a saver that remembers nothing has each turn."""
    with new_bench(OURS, engine) as bench:
        for _ in relay([bench.open() for _ in range(_TURNS)], _THREAD, _TURNS):
            pass
        return bench.meter.total.read_units


def _bill(engine: Engine, sends: Tally) -> str:
    """Return what ours costs from the first turn to the last deletion."""
    rows: list[Sequence[object]] = [_requests(SENDS.name, sends)]
    with new_bench(OURS, engine) as bench:
        saver = bench.open()
        for turn in conversation(saver, _THREAD, _TURNS):
            if turn in {_FEW_TURNS, _TURNS}:
                rows += _running(f"{turn} turns", bench.meter.total, bench.stored())
        stored = bench.stored()
        bench.meter.lap()
        saver.prune([_THREAD], strategy="keep_last", keep_last=_KEPT)
        freed = _billed(stored - bench.stored())
        title = f"pruning {_TURNS} turns to {_KEPT} checkpoints, which frees {freed:,} bytes"
        rows.append(_requests(title, bench.meter.lap()))
    with new_bench(OURS, engine) as bench:
        saver = bench.open()
        for _ in conversation(saver, _THREAD, _TURNS):
            pass
        bench.meter.lap()
        saver.delete_thread(_THREAD)
        rows.append(_requests(f"deleting {_TURNS} turns with `delete_thread`", bench.meter.lap()))
    return table(["", "units or bytes", "dollars"], rows)


def _running(turns: str, spent: Tally, stored: Stored) -> list[Sequence[object]]:
    title = f"keeping {turns} for a month: {stored.items:,} items"
    dollars = stored_dollars(stored.bytes, stored.items)
    return [_requests(f"running {turns}", spent), (title, f"{_billed(stored):,} bytes", f"${dollars:.5f}")]


def _billed(stored: Stored) -> int:
    return stored.bytes + stored.items * ITEM_OVERHEAD_BYTES


def _requests(title: str, spent: Tally) -> Sequence[object]:
    units = f"{spent.write_units:,.0f} write, {spent.read_units:,.0f} read units"
    return title, units, f"${request_dollars(spent.write_units, spent.read_units):.5f}"


def _price(workload: Workload, *runs: Run) -> Sequence[str]:
    """Return what a thousand conversations cost with two savers."""
    ours, other = (
        CONVERSATIONS * request_dollars(each.cost.write_units, each.cost.read_units) for each in runs
    )
    return workload.name, f"${ours:.2f}", f"${other:.2f}", f"{other / ours:.0f}"
