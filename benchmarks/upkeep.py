"""What deletions cost: a deletion has to cost what it deletes, in a long thread as in a short one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contestants import OURS, new_bench
from benchmarks.meter import Tally
from benchmarks.report import Bound, Section, table
from benchmarks.states import Thread, message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.engine import Engine

_FEW, _SOME, _MANY = 10, 100, 1_000
_NAMESPACES = 20
_WINDOW = 20
_THREAD = "thread"


def run(engine: Engine) -> Section:
    """Prune threads of a chat to their newest checkpoints."""
    first_of_few, few = _prunes(engine, _FEW, [_FEW - 1, _FEW - 2])
    nothing, first, one, some = _prunes(engine, _MANY, [_MANY, _MANY - 1, _MANY - 2, _MANY - 2 - _SOME])
    [nested] = _prunes(engine, _FEW, [_FEW], namespaces=_NAMESPACES)
    rows = {
        f"one checkpoint of {_FEW}, the first time": first_of_few,
        f"one checkpoint of {_MANY:,}, the first time": first,
        f"one checkpoint of {_FEW}, later": few,
        f"one checkpoint of {_MANY:,}, later": one,
        f"{_SOME} checkpoints of {_MANY:,}, later": some,
        f"nothing of {_MANY:,}": nothing,
        f"nothing of {_FEW} in each of {_NAMESPACES} namespaces": nested,
    }
    costs = [(title, each.write_units, each.read_units, each.requests) for title, each in rows.items()]
    return Section(
        {"upkeep": table(["`prune` deletes", "write units", "read units", "requests"], costs)},
        [
            Bound(
                f"write units of one checkpoint deleted of {_MANY:,}, beside one of {_FEW}",
                one.write_units / few.write_units,
                most=1.2,
            ),
            Bound(f"write units per checkpoint, {_SOME} deleted", some.write_units / _SOME, most=3),
            Bound("requests with nothing to delete", nothing.requests, most=5),
            Bound("write units with nothing to delete", nothing.write_units, most=3),
            Bound(
                "queries with nothing to delete, beside the namespaces",
                nested.calls["Query"] / _NAMESPACES,
                most=1.2,
            ),
        ],
    )


def _prunes(engine: Engine, checkpoints: int, kept: Sequence[int], *, namespaces: int = 1) -> list[Tally]:
    """Return what it costs to prune a thread step by step. Each of its checkpoints adds a message to a window."""
    said, costs = [message(number) for number in range(checkpoints)], list[Tally]()
    with new_bench(OURS, engine) as bench:
        saver = bench.open()
        for namespace in range(namespaces):
            thread = Thread(saver, _THREAD, f"call|{namespace}" if namespace else "")
            for number in range(checkpoints):
                thread.put(messages=said[max(0, number - _WINDOW) : number + 1])
        for each in kept:
            bench.meter.lap()
            bench.open().prune([_THREAD], strategy="keep_last", keep_last=each)
            costs.append(bench.meter.lap())
    return costs
