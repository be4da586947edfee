"""The cost of a turn that appends to a list, trims it in front, or changes it in the middle: by kind and size."""

from __future__ import annotations

from math import inf
from random import Random
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from benchmarks.contestants import AWS, AWS_GZIP, OURS, run_workload
from benchmarks.conversation import config_of
from benchmarks.prose import prose, uuid
from benchmarks.report import Bound, Section, table
from benchmarks.workloads import Workload
from langgraph.checkpoint.dynamodb._format.limits import (
    CUT_RANGE_BYTES,
    LARGE_SEGMENT_BYTES_MIN,
    PREAMBLE_BYTES,
)
from langgraph.checkpoint.dynamodb._format.segments import Chunk, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langgraph.checkpoint.base import BaseCheckpointSaver

    from benchmarks.contestants import Contestant
    from tools.engine import Engine

WINDOW_UNITS_MAX = 12
_SIZES = (40, 400, 1_000, 4_000)
# The units of a window go up and down with what is left of the first piece.
_TURNS = 16
# The kinds of lists are compared at one size. A change stores the piece again that it is in.
_BOUND_SIZE = 1_000
_NEW_SHARE_MAX = 0.05
_NEW_BYTES_MAX = LARGE_SEGMENT_BYTES_MIN + CUT_RANGE_BYTES


def _message(number: int) -> AnyMessage:
    """Return a question, or an answer as a chat model returns it."""
    random = Random(f"message/{number}")
    if number % 2 == 0:
        return HumanMessage(prose(random, 260), id=uuid(random))
    return AIMessage(
        prose(random, 900),
        id=f"lc_run--{uuid(random)}",
        response_metadata={
            "model_name": "gpt-5.2-2026-09-01",
            "finish_reason": "stop",
            "id": f"chatcmpl-{random.getrandbits(100):025x}",
        },
        usage_metadata={
            "input_tokens": random.randint(10, 90_000),
            "output_tokens": random.randint(10, 900),
            "total_tokens": random.randint(20, 90_900),
            "input_token_details": {"audio": 0, "cache_read": 0},
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


_New: TypeAlias = "Callable[[int], object]"
KINDS: dict[str, _New] = {
    "messages": _message,
    "short messages": _short_message,
    "tool results": _tool_result,
    "documents": _document,
    "rows": _row,
    "lines": _line,
    "vectors": _vector,
}


class _Change(TypedDict):
    """Records to remove from a place in a list, and records to put there."""

    place: int
    removed: int
    added: list[Any]


def _append(size: int, turn: int, new: _New) -> list[_Change]:
    added = [new(size + 2 * turn), new(size + 2 * turn + 1)]
    return [_Change(place=size + 2 * turn, removed=0, added=added)]


def _window(size: int, turn: int, new: _New) -> list[_Change]:
    added = [new(size + 2 * turn), new(size + 2 * turn + 1)]
    return [_Change(place=0, removed=2, added=[]), _Change(place=size - 2, removed=0, added=added)]


def _edit(size: int, turn: int, new: _New) -> list[_Change]:
    return [_Change(place=_middle(size, turn), removed=1, added=[new(size + turn)])]


def _removal(size: int, turn: int, _: _New) -> list[_Change]:
    return [_Change(place=_middle(size, turn), removed=1, added=[])]


def _middle(size: int, turn: int) -> int:
    return Random(f"middle/{size}/{turn}").randrange(size // 4, size // 2)


CHANGES = {
    "append two": _append,
    "append two, remove the first two": _window,
    "change one in the middle": _edit,
    "remove one in the middle": _removal,
}
WINDOW = "append two, remove the first two"


def _changed(records: list[Any], changes: list[_Change]) -> list[Any]:
    records = list(records)
    for each in changes:
        records[each["place"] : each["place"] + each["removed"]] = each["added"]
    return records


class _Desk(TypedDict):
    records: Annotated[list[Any], _changed]
    turn: int


def lists(kind: str, change: str, size: int, turns: int) -> Workload:
    """Return a graph that is given a list at first, and changes it in each turn."""
    new = KINDS[kind]
    first = _Change(place=0, removed=0, added=[new(number) for number in range(size)])

    def run(saver: BaseCheckpointSaver[Any], thread_id: str) -> Iterator[int]:
        graph = StateGraph(_Desk)
        graph.add_node("turn", lambda state: {"records": CHANGES[change](size, state["turn"], new)})
        graph.add_edge(START, "turn")
        agent = graph.compile(checkpointer=saver)
        for turn in range(1 + turns):
            given = _Desk(records=[] if turn else [first], turn=turn)
            agent.invoke(given, config_of(thread_id), durability="sync")
            yield turn

    return Workload(f"{change}: {size:,} {kind}", run)


def write_units(
    engine: Engine, kind: str, change: str, size: int, saver: Contestant = OURS, turns: int = _TURNS
) -> float | None:
    """Return the write units of a turn, or nothing where the saver failed."""
    found = run_workload(saver, engine, lists(kind, change, size, turns))
    return None if found.failure else found.mean_write_units(2, 1 + turns)


def _new_bytes(kind: str, change: str) -> Bound:
    """Bound the part of the serialized list that a turn stores, on average: what its last one did not have."""
    records: list[Any] = [KINDS[kind](number) for number in range(_BOUND_SIZE)]
    chunks, new, data = list[Chunk](), list[int](), b""
    for turn in range(1 + _TURNS):
        records = _changed(records, CHANGES[change](_BOUND_SIZE, turn, KINDS[kind]))
        _, data = JsonPlusSerializer().dumps_typed(records)
        pieces, tail = split(data, PREAMBLE_BYTES, chunks)
        known = {each.digest for each in chunks}
        new.append(sum(len(each.content) for each in pieces if each.digest not in known) + len(tail))
        chunks = [Chunk.of(each, None) for each in pieces]
    allowed = max(_NEW_BYTES_MAX, _NEW_SHARE_MAX * len(data))
    return Bound(f"bytes that a turn stores of {_BOUND_SIZE:,} {kind}: {change}", mean(new[1:]), allowed)


def _window_bound(engine: Engine, kind: str) -> Bound:
    units = write_units(engine, kind, WINDOW, _BOUND_SIZE)
    return Bound(f"write units of a turn of a window over {kind}", units or inf, WINDOW_UNITS_MAX)


def run(engine: Engine) -> Section:
    """Measure messages with every change and saver at every size, and bound every kind of list at one size."""
    ours = {change: [write_units(engine, "messages", change, size) for size in _SIZES] for change in CHANGES}
    rows = [(OURS.name, change, *found) for change, found in ours.items()]
    rows += [
        (saver.name, WINDOW, *(write_units(engine, "messages", WINDOW, size, saver, 4) for size in _SIZES))
        for saver in (AWS, AWS_GZIP)
    ]
    return Section(
        {"edits": table(["", "each turn", *(f"{size:,} messages" for size in _SIZES)], rows)},
        [
            Bound(
                "write units of a turn of a window, at any size",
                max(map(float, filter(None, ours[WINDOW]))),
                12,
            ),
            *(_window_bound(engine, kind) for kind in KINDS),
            *(_new_bytes(kind, change) for kind in KINDS for change in CHANGES),
        ],
    )
