"""Many conversations at once in one process, on DynamoDB Local: no error, and nobody and nothing is left behind."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from tests.conftest import MakeSaver
from tests.support.checkpoints import Conversation, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")

_DESCRIPTORS = Path("/proc/self/fd")
THREADS_VARIABLE = "LANGGRAPH_DYNAMODB_LOAD_THREADS"


def open_sockets() -> set[str] | None:
    """Return the names that the system has for the sockets of this process."""
    if not _DESCRIPTORS.exists():
        return None
    return {name for name in map(_target, _DESCRIPTORS.iterdir()) if name.startswith("socket:")}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        # That of the listing itself has gone by now.
        return ""


async def _converse(
    saver: BaseCheckpointSaver[Any], thread_id: str, began: Callable[[], None] = lambda: None
) -> bool:
    """Hold a conversation; tell whether it read what it had written, and nothing else."""
    config, conversation = thread_config(thread_id), Conversation(saver, thread_id)
    before = await saver.aget_tuple(config)
    began()
    parent = await conversation.aput(messages=[f"question of {thread_id}"])
    await saver.aput_writes(parent, [("messages", f"answer of {thread_id}")], "task")
    await conversation.aput(messages=[f"question of {thread_id}", f"answer of {thread_id}"])
    latest = await saver.aget_tuple(config)
    listed = [each async for each in saver.alist(config, limit=2)]
    return (before, latest) == (None, listed[0]) and [
        (each.checkpoint["channel_values"]["messages"], each.pending_writes) for each in listed
    ] == [
        ([f"question of {thread_id}", f"answer of {thread_id}"], []),
        ([f"question of {thread_id}"], [("task", "messages", f"answer of {thread_id}")]),
    ]


@pytest.mark.parametrize(
    "count", [pytest.param(50, marks=pytest.mark.share), pytest.param(500, marks=pytest.mark.search)]
)
async def test_many_conversations_on_one_event_loop(make_unclosed: MakeSaver, count: int) -> None:
    count = int(os.environ.get(THREADS_VARIABLE, count))
    sockets, tasks = open_sockets(), asyncio.all_tasks()
    begun: list[int] = []
    begun_at_ends: list[int] = []

    async def converse(number: int) -> bool:
        is_right = await _converse(saver, f"thread-{number}", lambda: begun.append(number))
        begun_at_ends.append(len(begun))
        return is_right

    async with make_unclosed() as saver:
        right = await asyncio.gather(*map(converse, range(count)))
    assert right == [True] * count
    # Sockets of earlier tests may be closed meanwhile.
    assert (open_sockets() or set()) - (sockets or set()) == set()
    # Nobody starves: once half have ended, all have begun. Of threads that is the operating system's to decide, and on
    # a busy machine one of 64 may.
    assert begun_at_ends[count // 2] == count
    assert asyncio.all_tasks() == tasks
