"""What a conversation holds, from its names alone: any process can tell what any checkpoint has to be.

Threads are named `SHAPE-KIND-CONVERSATION-GENERATION`, by the agent's kind; the copy of one is named after it, with
`~` and a number.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COPY_MARK = "~"


@dataclass(frozen=True)
class Shape:
    """How large a conversation is, in bytes; none of its content can be compressed."""

    message: tuple[int, int]
    messages_max: int
    document: int
    writes: tuple[int, int]


# Inline in the head; in some segments; in more segments than one item names without an index, and writes in segments.
SHAPES: Mapping[str, Shape] = {
    "small": Shape((20, 200), 2_000, 100, (10, 100)),
    "medium": Shape((500, 4_000), 50_000, 9_000, (100, 4_000)),
    "large": Shape((4_000, 30_000), 290_000, 20_000, (1_000, 80_000)),
}


def original(thread: str) -> str:
    """The thread that this one is a copy of, or the thread itself."""
    return thread.partition(COPY_MARK)[0]


def _shape(thread: str) -> Shape:
    return SHAPES[thread.partition("-")[0]]


def next_values(thread: str, checkpoint_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The channel values of a checkpoint that follows one with these; what does not change stays the same object."""
    rng, shape = random.Random(f"{thread}/{checkpoint_id}"), _shape(thread)
    messages = [*values.get("messages", ()), rng.randbytes(rng.randint(*shape.message))]
    while sum(map(len, messages)) > shape.messages_max:
        # A long conversation forgets its first half.
        messages = messages[len(messages) // 2 :]
    following = {**values, "messages": messages, "last": checkpoint_id}
    if "document" not in values or rng.random() < 0.2:
        following["document"] = rng.randbytes(shape.document)
    return following


def writes_of(thread: str, checkpoint_id: str, task_id: str) -> Sequence[tuple[str, Any]]:
    """What a task of a checkpoint writes."""
    rng, shape = random.Random(f"{thread}/{checkpoint_id}/{task_id}"), _shape(thread)
    return [("messages", rng.randbytes(rng.randint(*shape.writes))), ("last", task_id)]
