"""Reading the history that a delta channel is rebuilt from, beside the walk that LangGraph's base class has.

The channel never has a snapshot, which is the longest way back there is: every checkpoint holds one write.
"""

from __future__ import annotations

from functools import partial
from math import ceil
from random import Random
from typing import TYPE_CHECKING

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint

from benchmarks.clock import Times
from benchmarks.contestants import OURS, session_of
from benchmarks.conversation import config_of
from benchmarks.figures import Figure, Section, at_least
from benchmarks.prose import prose
from benchmarks.raw import Recorder, new_table
from benchmarks.report import table
from benchmarks.stored import item_bytes
from langgraph.checkpoint.dynamodb import DynamoDBSaver

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointMetadata, DeltaChannelHistory

    from tools.engine import Engine

LENGTHS = (500, 5000)
_WRITE_CHARACTERS = 300
_PAGE_BYTES = 1_000_000


def run(engine: Engine) -> Section:
    """Store a long history, and read it back at two of its lengths in both ways."""
    rows, figures, data = [], [], {}
    with new_table(engine, OURS) as table_name:
        session = session_of(engine)
        recorder = Recorder(session)
        saver = DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url)
        config, stored = config_of("thread"), 0
        config["configurable"]["checkpoint_ns"] = ""
        for length in LENGTHS:
            for step in range(stored, length):
                config = _append(saver, config, step)
            stored = length
            recorder.take()
            own, own_requests, read_bytes = _read(recorder, partial(_history, saver, length))
            walk, walk_requests, _ = _read(recorder, partial(_walk, saver, length))
            # One finds the checkpoint; DynamoDB ends a page after a megabyte, so a part of one needs one more.
            allowed = 1 + ceil(read_bytes / _PAGE_BYTES)
            times_fewer = walk_requests / own_requests
            rows.append(
                (
                    f"{length:,} checkpoints",
                    f"{read_bytes / 1e6:.1f}",
                    own_requests,
                    walk_requests,
                    f"{times_fewer:.0f}",
                    f"{own.p50_ms:.0f}",
                    f"{walk.p50_ms:.0f}",
                )
            )
            figures += [
                Figure(
                    f"requests for {length:,} checkpoints",
                    f"at most 1, and 1 per MB: {allowed}",
                    str(own_requests),
                    own_requests <= allowed,
                ),
                at_least(f"fewer than the inherited walk, {length:,} checkpoints", 50, times_fewer),
            ]
            data[str(length)] = {
                "read_bytes": read_bytes,
                "requests": own_requests,
                "walk_requests": walk_requests,
                "seconds": own.seconds[0],
                "walk_seconds": walk.seconds[0],
            }
        saver.close()
    header = ("", "MB read", "requests", "walk", "times fewer", "ms", "walk, ms")
    return Section("History of a delta channel without a snapshot", (table(header, rows),), figures, data)


def _append(saver: DynamoDBSaver, config: RunnableConfig, step: int) -> RunnableConfig:
    """Store one more checkpoint, and the write that the next one counts."""
    checkpoint = empty_checkpoint()
    checkpoint["id"], checkpoint["channel_versions"] = f"{step:08}", {"log": step + 1}
    metadata: CheckpointMetadata = {
        "source": "loop",
        "step": step,
        "parents": {},
        "counters_since_delta_snapshot": {"log": (step, step)},
    }
    stored = saver.put(config, checkpoint, metadata, {"log": step + 1})
    saver.put_writes(stored, [("log", [prose(Random(step), _WRITE_CHARACTERS)])], f"task-{step}")
    return stored


def _history(saver: DynamoDBSaver, length: int) -> None:
    _check(saver.get_delta_channel_history(config=config_of("thread"), channels=["log"]), length)


def _walk(saver: DynamoDBSaver, length: int) -> None:
    config = config_of("thread")
    _check(BaseCheckpointSaver.get_delta_channel_history(saver, config=config, channels=["log"]), length)


def _check(history: Mapping[str, DeltaChannelHistory], length: int) -> None:
    # The newest checkpoint's own write belongs to the step after it.
    if len(history["log"]["writes"]) != length - 1:
        raise AssertionError(f"{len(history['log']['writes'])} writes were found of {length - 1}.")


def _read(recorder: Recorder, call: Callable[[], None]) -> tuple[Times, int, int]:
    """Return how long a call took, its requests, and the bytes of the items that it was answered with."""
    times = Times()
    times.measure(call)
    requests = [request for round_ in recorder.take() for request in round_]
    items = [item for request in requests for item in request.response.get("Items", ())]
    return times, len(requests), sum(map(item_bytes, items))
