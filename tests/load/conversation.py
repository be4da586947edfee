"""One conversation as a load, and how far all of them have come."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple

from tests.support.checkpoints import METADATA, checkpoint_of, thread_config

OPERATIONS = 6


class Progress:
    """How many operations each caller has behind it, and how long each conversation took."""

    def __init__(self, callers: int, turns: int = 1) -> None:
        """Start with nothing done, of so many conversations that each caller will hold one after the other."""
        self.operations = [0] * callers
        self.least_at_half_time: int | None = None
        """What the slowest had behind it when half of the conversations had ended."""
        self._conversations = callers * turns
        self._seconds: list[float] = []
        self._started_at = time.monotonic()

    def step(self, number: int) -> None:
        """Note that an operation of a caller has ended."""
        self.operations[number] += 1

    def end(self, started_at: float) -> None:
        """Note that a conversation has ended."""
        self._seconds.append(time.monotonic() - started_at)
        if self.least_at_half_time is None and 2 * len(self._seconds) >= self._conversations:
            self.least_at_half_time = min(self.operations)

    def figures(self) -> str:
        """Say how fast it went."""
        elapsed, done = time.monotonic() - self._started_at, sum(self.operations)
        return (
            f"{done} operations in {elapsed:.1f} s, {done / elapsed:.0f}/s; a conversation took"
            f" {statistics.median(self._seconds):.2f} s at the median and {max(self._seconds):.2f} s at most;"
            f" when half had ended, the slowest had {self.least_at_half_time} of"
            f" {max(self.operations)} operations behind it"
        )


def first(number: int) -> Checkpoint:
    """The first checkpoint of a conversation."""
    return checkpoint_of("1", {"messages": [f"question {number}"]})


def second(number: int) -> Checkpoint:
    """The second one."""
    return checkpoint_of("2", {"messages": [f"question {number}", f"answer {number}"]})


def is_right(
    number: int, before: object, latest: CheckpointTuple | None, listed: Sequence[CheckpointTuple]
) -> bool:
    """Tell whether a conversation read what it had written, and nothing else."""
    return (
        before is None
        and latest is not None
        and latest.checkpoint == second(number)
        and [each.checkpoint for each in listed] == [second(number), first(number)]
        and [each.pending_writes for each in listed] == [[], [("task", "messages", f"answer {number}")]]
    )


async def converse(saver: BaseCheckpointSaver[Any], thread_id: str, number: int, progress: Progress) -> bool:
    """Hold a conversation; tell whether its results were right."""
    started_at, config = time.monotonic(), thread_config(thread_id)
    before = await saver.aget_tuple(config)
    progress.step(number)
    parent = await saver.aput(config, first(number), METADATA, {"messages": 1})
    progress.step(number)
    await saver.aput_writes(parent, [("messages", f"answer {number}")], "task")
    progress.step(number)
    await saver.aput(parent, second(number), METADATA, {"messages": 1})
    progress.step(number)
    latest = await saver.aget_tuple(config)
    progress.step(number)
    listed = [each async for each in saver.alist(config, limit=2)]
    progress.step(number)
    progress.end(started_at)
    return is_right(number, before, latest, listed)
