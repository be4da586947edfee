"""What a chat costs when a run is stored as a whole, beside a checkpoint for each of its steps.

LangGraph does that with `durability="exit"`; AWS's `DeferredCheckpointSaver` does it around any saver, here with a
flush after each turn. A process that dies in the middle of a run loses the run in either case.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks.contestants import AWS, OURS, Bench, Contestant
from benchmarks.conversation import conversation
from benchmarks.dollars import request_dollars
from benchmarks.figures import Figure, Section
from benchmarks.measurements import newest
from benchmarks.meter import Tally
from benchmarks.price import CONVERSATIONS
from benchmarks.report import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.types import Durability

    from tools.engine import Engine

TURNS = (20, 60)
_THREAD = "thread"


@dataclass(frozen=True)
class Way:
    """A saver and how a run of a graph reaches it."""

    contestant: Contestant
    durability: Durability = "sync"
    # Whether AWS's wrapper flushes; no saver here has the method for which `batch_writes` asks.
    batch_writes: bool | None = None

    @property
    def name(self) -> str:
        """What the tables call it."""
        if self.batch_writes is None:
            return f"{self.contestant.name}, {self.durability}"
        return f"{self.contestant.name}, deferred" + (", batch_writes" if self.batch_writes else "")


STEP_BY_STEP = Way(OURS)
WAYS = (
    STEP_BY_STEP,
    Way(OURS, "exit"),
    Way(OURS, batch_writes=False),
    Way(AWS),
    Way(AWS, "exit"),
    Way(AWS, batch_writes=False),
)


@dataclass(frozen=True)
class Spent:
    """What a chat took up to some turn."""

    write_units: float
    read_units: float
    requests: int

    @classmethod
    def of(cls, tally: Tally) -> Spent:
        """Take what has been counted so far."""
        return cls(tally.write_units, tally.read_units, tally.requests)

    @property
    def dollars(self) -> float:
        """What a thousand such chats cost."""
        return CONVERSATIONS * request_dollars(self.write_units, self.read_units)


@dataclass(frozen=True)
class _Chat:
    """One chat by one way: what it took by the number of turns, and what a new process reads at the end."""

    spent: Mapping[int, Spent]
    state: list[tuple[object, ...]]
    bytes: int


def run(engine: Engine) -> Section:
    """Run the chat every way, and see that the same state is there at the end."""
    chats = {way.name: _chat(engine, way) for way in WAYS}
    reference = chats[STEP_BY_STEP.name]
    same = {name: chat.state == reference.state for name, chat in chats.items()}
    figures = [
        Figure(
            "the last state is the same, however it was flushed",
            f"all {len(chats)} ways",
            f"{sum(same.values())}",
            all(same.values()),
        ),
        *(
            Figure(
                f"{name}: dollars against durability='sync' with {OURS.name}",
                "under 1 times",
                f"{_ratio(chats[name], reference, TURNS[-1]):.2f} times",
                _ratio(chats[name], reference, TURNS[-1]) < 1,
            )
            for name in (way.name for way in WAYS if way.contestant is OURS and way is not STEP_BY_STEP)
        ),
    ]
    return Section(
        f"Flush: what {CONVERSATIONS:,} chats cost when a run is stored as a whole",
        [f"{turns} turns\n{_table(chats, turns)}" for turns in TURNS],
        figures,
        {
            name: {
                **{str(turns): asdict(spent) for turns, spent in chat.spent.items()},
                "bytes": chat.bytes,
                "same_state": same[name],
            }
            for name, chat in chats.items()
        },
    )


def _ratio(chat: _Chat, reference: _Chat, turns: int) -> float:
    return chat.spent[turns].dollars / reference.spent[turns].dollars


def _table(chats: Mapping[str, _Chat], turns: int) -> str:
    reference = chats[STEP_BY_STEP.name]
    rows = []
    for name, chat in chats.items():
        spent = chat.spent[turns]
        rows.append(
            (
                name,
                spent.write_units,
                spent.read_units,
                spent.requests,
                f"{spent.dollars:.3f}",
                f"{_ratio(chat, reference, turns):.2f}",
                *((round(chat.bytes / 1000),) if turns == TURNS[-1] else ("",)),
            )
        )
    header = (
        "", "write units", "read units", "requests", f"$ for {CONVERSATIONS:,}", "times ours, sync", "stored KB",
    )  # fmt: skip
    return table(header, rows)


def _chat(engine: Engine, way: Way) -> _Chat:
    """Run the chat to its end, on an empty table."""
    with closing(Bench(way.contestant, engine)) as bench:
        saver, flushed = _reached(way, bench.open())
        spent = dict[int, Spent]()
        turns = conversation(saver, _THREAD, TURNS[-1], way.durability)
        for turn in range(1, TURNS[-1] + 1):
            with flushed():
                next(turns)
            if turn in TURNS:
                spent[turn] = Spent.of(bench.meter.total)
        return _Chat(spent, _state(bench.open()), bench.stored().bytes)


def _reached(
    way: Way, saver: BaseCheckpointSaver[Any]
) -> tuple[BaseCheckpointSaver[Any], Callable[[], AbstractContextManager[object]]]:
    """Return what the graph is given for a saver, and the context that a turn runs in."""
    if way.batch_writes is None:
        return saver, nullcontext
    library: Any = import_module("langgraph_checkpoint_aws")
    deferred = library.DeferredCheckpointSaver(saver, batch_writes=way.batch_writes)
    return deferred, deferred.flush_on_exit


def _state(saver: BaseCheckpointSaver[Any]) -> list[tuple[object, ...]]:
    """Read the messages of the thread, without the ids that LangGraph draws for the tools' answers."""
    found = newest(saver, _THREAD)
    return [
        (each.type, each.content, getattr(each, "tool_calls", None))
        for each in found.checkpoint["channel_values"]["messages"]
    ]
