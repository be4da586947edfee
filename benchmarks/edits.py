"""The cost of a turn that trims a list in front or changes it in the middle: by kind of list, and size."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from benchmarks.contestants import OURS, Bench
from benchmarks.conversation import config_of
from benchmarks.figures import Figure, Section
from benchmarks.meter import total
from benchmarks.prose import prose, uuid
from benchmarks.report import table
from langgraph.checkpoint.dynamodb._format.limits import (
    CUT_RANGE_BYTES,
    LARGE_SEGMENT_BYTES_MIN,
    PREAMBLE_BYTES,
)
from langgraph.checkpoint.dynamodb._format.segments import Chunk, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.engine import Engine

SIZES = (40, 400, 1_000, 4_000)
# What a window costs goes up and down with what is left of the first piece.
_TURNS = {"window": 16, "edit": 6, "removal": 6}
WINDOW_UNITS_MAX = 12
# Of the list, or as many bytes where that is more: a change stores the piece again that it is in.
_NEW_SHARE_MAX = 0.05
_NEW_BYTES_MAX = LARGE_SEGMENT_BYTES_MIN + CUT_RANGE_BYTES


def _message(number: int) -> AnyMessage:
    """Return a question, or an answer as a chat model returns it."""
    random = Random(f"message/{number}")
    if number % 2 == 0:
        return HumanMessage(prose(random, 260), id=uuid(random))
    usage = {"input_tokens": random.randint(100, 90_000), "output_tokens": random.randint(10, 900)}
    return AIMessage(
        prose(random, 900),
        id=f"lc_run--{uuid(random)}",
        response_metadata={
            "model_name": "gpt-5.2-2026-09-01",
            "model_provider": "openai",
            "finish_reason": "stop",
            "system_fingerprint": "fp_44709d6fcb",
            "id": f"chatcmpl-{random.getrandbits(100):025x}",
        },
        usage_metadata={
            "input_tokens": usage["input_tokens"],
            "output_tokens": usage["output_tokens"],
            "total_tokens": sum(usage.values()),
            "input_token_details": {"audio": 0, "cache_read": 0},
            "output_token_details": {"audio": 0, "reasoning": 0},
        },
    )


def _short_message(number: int) -> AnyMessage:
    random = Random(f"short/{number}")
    return AIMessage("ok", id=uuid(random)) if number % 2 else HumanMessage(str(number), id=uuid(random))


def _tool_result(number: int) -> AnyMessage:
    random = Random(f"tool/{number}")
    return ToolMessage(
        f'{{"status": "success", "results": [{{"city": "Berlin", "temperature": {random.randint(-5, 35)}, '
        '"unit": "celsius", "condition": "partly cloudy", "source": "weather.example"}]}',
        name="get_weather",
        id=uuid(random),
        tool_call_id=f"call_{random.getrandbits(96):024x}",
    )


def _document(number: int) -> Document:
    random = Random(f"document/{number}")
    metadata = {"source": "handbook/employees.md", "title": "The employee handbook", "page": number}
    return Document(id=uuid(random), page_content=prose(random, 700), metadata=metadata)


def _row(number: int) -> dict[str, object]:
    random = Random(f"row/{number}")
    return {
        "order_id": f"ORD-{number:06}",
        "customer": f"customer-{random.randint(1, 500)}",
        "status": random.choice(["open", "shipped", "closed"]),
        "currency": "EUR",
        "amount": random.randint(100, 99_999) / 100,
        "warehouse": "Frankfurt am Main",
        "tags": ["standard", "insured", "tracked"],
    }


def _line(number: int) -> str:
    random = Random(f"line/{number}")
    at = f"2026-11-20T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return f"{at} INFO agent.worker request handled path=/orders status=200 ms={random.randint(1, 900)}"


def _vector(number: int) -> list[float]:
    random = Random(f"vector/{number}")
    return [random.random() for _ in range(32)]


KINDS: dict[str, Callable[[int], object]] = {
    "messages": _message,
    "short messages": _short_message,
    "tool results": _tool_result,
    "documents": _document,
    "rows": _row,
    "lines": _line,
    "vectors": _vector,
}


class Change(TypedDict):
    """Records to remove from a place, and records to put there; a place of -1 is the end."""

    place: int
    removed: int
    added: list[Any]


def _changed(records: list[Any], changes: list[Change]) -> list[Any]:
    records = list(records)
    for each in changes:
        start = len(records) if each["place"] < 0 else each["place"]
        records[start : start + each["removed"]] = each["added"]
    return records


class _Desk(TypedDict):
    records: Annotated[list[Any], _changed]
    turn: int


def _window(size: int, turn: int, new: Callable[[int], object]) -> list[Change]:
    added = [new(size + 2 * turn), new(size + 2 * turn + 1)]
    return [Change(place=0, removed=2, added=[]), Change(place=-1, removed=0, added=added)]


def _edit(size: int, turn: int, new: Callable[[int], object]) -> list[Change]:
    return [Change(place=_middle(size, turn), removed=1, added=[new(size + turn)])]


def _removal(size: int, turn: int, _: Callable[[int], object]) -> list[Change]:
    return [Change(place=_middle(size, turn), removed=1, added=[])]


def _middle(size: int, turn: int) -> int:
    return Random(f"middle/{size}/{turn}").randrange(size // 4, size * 3 // 4)


CHANGES = {"window": _window, "edit": _edit, "removal": _removal}


@dataclass(frozen=True)
class Cost:
    """The cost of a turn: write units, and how much of the serialized list was new, in bytes and as a share."""

    kind: str
    change: str
    size: int
    write_units: float
    new_bytes: float
    list_bytes: int

    @property
    def new_share(self) -> float:
        """The share of the list that a turn stored again or anew."""
        return self.new_bytes / self.list_bytes


def run(engine: Engine) -> Section:
    """Measure every kind of list with every change at every size."""
    costs = [measure(engine, kind, change, size) for kind in KINDS for change in CHANGES for size in SIZES]
    return Section(
        "Edits: a turn that trims a list in front, or changes it in the middle",
        [edits_table(costs)],
        list(_figures(costs)),
        {f"{each.kind}, {each.change}, {each.size}": vars(each) for each in costs},
    )


def measure(engine: Engine, kind: str, change: str, size: int) -> Cost:
    """Run some turns on a list of so many records, with a real graph and on an empty table."""
    new, states = KINDS[kind], list[list[Any]]()

    def turn(state: _Desk) -> dict[str, list[Change]]:
        return {"records": CHANGES[change](size, state["turn"], new)}

    graph = StateGraph(_Desk)
    graph.add_node("turn", turn)
    graph.add_edge(START, "turn")
    with closing(Bench(OURS, engine)) as bench:
        agent = graph.compile(checkpointer=bench.saver)
        first = Change(place=0, removed=0, added=[new(number) for number in range(size)])
        states.append(
            agent.invoke(_Desk(records=[first], turn=0), config_of("thread"), durability="sync")["records"]
        )
        seen = len(bench.saver.operations)
        for number in range(1, _TURNS[change] + 1):
            states.append(
                agent.invoke(_Desk(records=[], turn=number), config_of("thread"), durability="sync")[
                    "records"
                ]
            )
        units = total(tally for _, tally in bench.saver.operations[seen:]).write_units / _TURNS[change]
    list_bytes, new_bytes = _new_bytes(states)
    return Cost(kind, change, size, units, new_bytes, list_bytes)


def _new_bytes(states: list[list[Any]]) -> tuple[int, float]:
    """Return the size of the last state, serialized, and how many bytes of each one were not in the one before."""
    chunks, new, data = list[Chunk](), list[int](), b""
    for state in states:
        _, data = JsonPlusSerializer().dumps_typed(state)
        pieces, tail = split(data, PREAMBLE_BYTES, chunks)
        known = {each.digest for each in chunks}
        new.append(sum(len(each.content) for each in pieces if each.digest not in known) + len(tail))
        chunks = [Chunk.of(each, None) for each in pieces]
    return len(data), sum(new[1:]) / len(new[1:])


def edits_table(costs: list[Cost]) -> str:
    """Return write units a turn, and the share that is new, by kind and change."""
    rows = [
        (
            kind,
            change,
            *(
                f"{each.write_units:.1f} ({each.new_share:.0%})"
                for each in costs
                if (each.kind, each.change) == (kind, change)
            ),
        )
        for kind in KINDS
        for change in CHANGES
    ]
    return table(["list", "a turn's change", *(f"{size:,} records" for size in SIZES)], rows)


def _figures(costs: list[Cost]) -> Iterator[Figure]:
    for kind in KINDS:
        units = max(each.write_units for each in costs if (each.kind, each.change) == (kind, "window"))
        yield Figure(
            f"window over {kind}: write units of a turn, at any size",
            f"at most {WINDOW_UNITS_MAX}",
            f"{units:.1f}",
            units <= WINDOW_UNITS_MAX,
        )
    for change in CHANGES:
        over = [
            f"{each.kind}, {each.size}: {each.new_bytes:,.0f} bytes, {each.new_share:.0%}"
            for each in costs
            if each.change == change
            and each.new_bytes > max(_NEW_BYTES_MAX, _NEW_SHARE_MAX * each.list_bytes)
        ]
        yield Figure(
            f"{change}: what a turn stores of the list",
            f"at most {_NEW_SHARE_MAX:.0%}, or {_NEW_BYTES_MAX // 1024} KiB",
            "; ".join(over) or "so in every list",
            not over,
        )
