"""What the saver itself does in the agent's process, beside serializing the whole state and nothing else.

Process time, without the client and the engine (see `benchmarks.tape`). A step adds a message to a chat of
360 KB, or changes something small beside it, or reads it all. Repetitions of everything take turns, and the
median counts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from benchmarks.clock import interleaved
from benchmarks.contestants import OURS, session_of
from benchmarks.figures import Section, under, within
from benchmarks.raw import new_table
from benchmarks.report import table
from benchmarks.states import Thread, chat
from benchmarks.tape import Tape
from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

STATE_BYTES = 360_000
_REPETITIONS = 150
_PUT = "put, a message more"
# The first of them seals what the message before has left open.
_UNCHANGED = ("put, messages unchanged", "put, unchanged again")
_GET = "get_tuple"
_COLD_GET = "get_tuple, cold"
_DUMPS, _LOADS = "dumps_typed", "loads_typed"


def run(engine: Engine) -> Section:
    """Record each operation once, then repeat it without the engine."""
    with new_table(engine, OURS) as table_name:
        client = session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url)
        calls = {name: _repeated(client, table_name, name) for name in (_PUT, *_UNCHANGED, _GET, _COLD_GET)}
        serde, values = JsonPlusSerializer(), {"messages": chat(JsonPlusSerializer(), STATE_BYTES)}
        serialized = serde.dumps_typed(values)
        calls[_DUMPS] = lambda: serde.dumps_typed(values)
        calls[_LOADS] = lambda: serde.loads_typed(serialized)
        measured = interleaved(list(calls.values()), _REPETITIONS, time.process_time)
    times = dict(zip(calls, measured, strict=True))
    dumps, loads = times[_DUMPS], times[_LOADS]
    rows = [
        (
            name,
            f"{each.p50_ms:.3f}",
            f"{min(each.seconds) * 1000:.3f}",
            f"{each.p50_ms / dumps.p50_ms:.2f}",
            f"{each.p50_ms / loads.p50_ms:.2f}",
        )
        for name, each in times.items()
    ]
    unchanged = max(times[name].p50_ms for name in _UNCHANGED)
    return Section(
        f"CPU of a step in milliseconds: a chat of {STATE_BYTES / 1000:.0f} KB",
        (table(("", "median", "best", "/ dumps_typed", "/ loads_typed"), rows),),
        (
            within(
                "CPU of a put, to dumps_typed of the whole state",
                1.4,
                times[_PUT].p50_ms / dumps.p50_ms,
                f"a put is dumps_typed ({dumps.p50_ms:.2f} ms), a digest of each of the parent's segments to see that"
                " it is there still, compression of what is new, and the requests' parameters (docs/decisions/0008)",
            ),
            under(
                "CPU of a put whose large channels did not change",
                0.3,
                unchanged,
                " ms",
                "the first such put compresses what the message before has left open, and seals it; the later ones"
                f" take {times[_UNCHANGED[1]].p50_ms:.2f} ms",
            ),
            within(
                "CPU of a cold get_tuple, to loads_typed of the whole state",
                1.4,
                times[_COLD_GET].p50_ms / loads.p50_ms,
                f"a get_tuple is loads_typed ({loads.p50_ms:.2f} ms), and for each segment a checksum, a digest for the"
                " next put and a decompressor of its own, which costs as much as what it decompresses"
                " (docs/decisions/0008)",
            ),
        ),
        {name: each.seconds for name, each in times.items()},
    )


def _repeated(client: DynamoDBClient, table_name: str, name: str) -> Callable[[], object]:
    """Return a call that repeats one operation, on a thread and with a saver of its own."""
    is_cold, tape = name == _COLD_GET, Tape(client)
    saver = DynamoDBSaver(table_name, client=tape.as_client)
    thread = Thread(saver, name)
    messages = chat(saver.serde, STATE_BYTES)
    thread.put(messages=messages[:-1], steps=0)
    if name == _PUT:
        change = thread.change(messages=messages, steps=1)
    else:
        thread.put(messages=messages, steps=1)
        if name != _UNCHANGED[0]:
            thread.put(steps=2)
        change = thread.change(steps=3)

    # Made beforehand: what a saver takes to make is not a part of its first call.
    cold = (
        [DynamoDBSaver(table_name, client=tape.as_client) for _ in range(_REPETITIONS + 1)] if is_cold else []
    )

    def operation() -> object:
        reader = cold.pop() if is_cold else saver
        return reader.get_tuple(thread.config) if name in (_GET, _COLD_GET) else saver.put(*change)

    def repeat() -> object:
        tape.rewind()
        return operation()

    tape.record()
    operation()
    return repeat
