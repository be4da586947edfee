"""How many requests it takes to delete, prune and copy a thread of 1,000 checkpoints."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.clock import Times
from benchmarks.contestants import OURS, session_of
from benchmarks.figures import Section, within
from benchmarks.raw import Recorder, in_flight_max, new_table
from benchmarks.report import table
from benchmarks.states import Thread, message
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.limits import BATCH_WRITE_ITEMS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.raw import Request
    from tools.engine import Engine

CHECKPOINTS = 1000
# Why batches may have fewer items than fit.
_REASONS = {
    "copy_thread": "heads and writes are stored after the segments that they name, page by page",
    "prune": "heads go before their writes, and these before the segments",
    "delete_thread": "heads go before their writes, and these before the segments",
}


def run(engine: Engine) -> Section:
    """Store a thread, copy it, prune the copy to its newest checkpoint, and delete the thread."""
    with ExitStack() as stack:
        table_name = stack.enter_context(new_table(engine, OURS))
        session = session_of(engine)
        recorder = Recorder(session)
        saver = DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url)
        stack.callback(saver.close)
        _fill(saver)
        recorder.take()
        calls: dict[str, Callable[[], object]] = {
            "copy_thread": lambda: saver.copy_thread("thread", "copy"),
            "prune": lambda: saver.prune(["copy"]),
            "delete_thread": lambda: saver.delete_thread("thread"),
        }
        rows, figures, data = [], [], {}
        for name, call in calls.items():
            times = Times()
            times.measure(call)
            requests = [request for round_ in recorder.take() for request in round_]
            batches = [each for each in requests if each.method == "batch_write_item"]
            items = sum(len(each.params["RequestItems"][table_name]) for each in batches)
            least = math.ceil(items / BATCH_WRITE_ITEMS_MAX)
            rows.append(
                (
                    name,
                    items,
                    least,
                    len(batches),
                    f"{len(batches) / least:.2f}",
                    len(requests),
                    in_flight_max(batches),
                    f"{times.p50_ms:.0f}",
                )
            )
            remark = (
                f"{len(batches)} batches of {items / len(batches):.1f} items on average: {_REASONS[name]}"
            )
            figures.append(within(f"batches of {name}, to its items / 25", 1.1, len(batches) / least, remark))
            data[name] = {"items": items, "requests": _by_method(requests), "seconds": times.seconds[0]}
    header = ("", "items", "items / 25", "batches", "ratio", "all requests", "at once", "ms")
    return Section(
        f"Deleting and copying a thread of {CHECKPOINTS:,} checkpoints", (table(header, rows),), figures, data
    )


def _fill(saver: DynamoDBSaver) -> None:
    """Store a chat whose messages are trimmed to the last 40, with the writes of every step."""
    thread = Thread(saver, "thread")
    messages = [message(number) for number in range(40)]
    for step in range(CHECKPOINTS):
        new = message(1000 + step)
        messages = [*messages[1:], new]
        thread.put(messages=messages)
        saver.put_writes(thread.config, [("messages", [new])], f"task-{step}")


def _by_method(requests: Sequence[Request]) -> dict[str, int]:
    methods = [each.method for each in requests]
    return {method: methods.count(method) for method in sorted(set(methods))}
