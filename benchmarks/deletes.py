"""How many requests it takes to delete, prune and copy a thread of 1,000 checkpoints, and to prune one with deltas."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks.clock import Times
from benchmarks.contestants import OURS, session_of
from benchmarks.figures import Section, at_most, within
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
# Of the thread with a delta channel: its length, how often it has a snapshot, and how many are kept.
DELTA_CHECKPOINTS, SNAPSHOT_STEPS = 300, 50
KEPT = (1, 10, 100, 250)
_READS = ("query", "get_item", "batch_get_item")
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
        pruned = _prune_deltas(saver, recorder)
    header = ("", "items", "items / 25", "batches", "ratio", "all requests", "at once", "ms")
    reads = {kept: sum(methods.get(name, 0) for name in _READS) for kept, methods in pruned.items()}
    deltas = [(kept, reads[kept], sum(methods.values())) for kept, methods in pruned.items()]
    figures.append(
        at_most(f"reads of a prune, to keep {KEPT[-1]} instead of 1", reads[KEPT[0]], reads[KEPT[-1]])
    )
    return Section(
        f"Deleting and copying a thread of {CHECKPOINTS:,} checkpoints, and pruning one with a delta channel",
        (table(header, rows), table(("keep_last", "reads", "all requests"), deltas)),
        figures,
        {**data, "prune of a delta channel": pruned},
    )


def _prune_deltas(saver: DynamoDBSaver, recorder: Recorder) -> dict[int, dict[str, int]]:
    """The requests of pruning copies of a thread whose checkpoints are rebuilt from their ancestors."""
    thread = Thread(saver, "deltas")
    since = 0
    for step in range(DELTA_CHECKPOINTS):
        since = 0 if step % SNAPSHOT_STEPS == 0 else since + 1
        config, checkpoint, metadata, new = thread.change(log=step)
        if since:
            del checkpoint["channel_values"]["log"]
            metadata["counters_since_delta_snapshot"] = {"log": (since, since)}
        thread.config = saver.put(config, checkpoint, metadata, new)
    requests: dict[int, dict[str, int]] = {}
    for kept in KEPT:
        saver.copy_thread("deltas", f"deltas-{kept}")
        recorder.take()
        saver.prune([f"deltas-{kept}"], strategy="keep_last", keep_last=kept)
        requests[kept] = _by_method([request for round_ in recorder.take() for request in round_])
    return requests


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
