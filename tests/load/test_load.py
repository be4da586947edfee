"""Many conversations at once in one process, on DynamoDB Local: no error, and nobody and nothing is left behind.

The figures are printed and no test depends on a time: the machine may be busy.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.load.gauges import MemoryGrowth, open_sockets
from tests.support.checkpoints import Conversation, thread_config
from tests.support.sync_adapter import SyncAsAsync

if TYPE_CHECKING:
    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

THREADS_VARIABLE = "LANGGRAPH_DYNAMODB_LOAD_THREADS"
BLOCKING_THREADS = 64
BLOCKING_TURNS = 4
# Measured: 56 MiB for 2,000 conversations on an event loop and 10 MiB for 64 threads, most of it for clients and for
# what asyncio, aiohttp and botocore keep of a request. The bounds leave room for other versions of them.
BYTES_PER_CONVERSATION_MAX = 128 * 1024
BYTES_MAX = 64 * 1024 * 1024


@pytest.fixture
def saver(engine: Engine, table_name: str, sessions: dict[str, Any]) -> DynamoDBSaver:
    """Give a saver with its own settings of clients, which the test closes."""
    return DynamoDBSaver(
        table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name, **sessions
    )


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


def _judge(
    kind: str, right: list[bool], memory: MemoryGrowth, before: set[str] | None, tell: Callable[[str], None]
) -> None:
    """Tell what was measured and check it."""
    callers = len(right)
    grown = "unknown here" if memory.bytes_max is None else f"{memory.bytes_max / 2**20:.0f} MiB"
    # Sockets of earlier tests may be closed meanwhile.
    left = (open_sockets() or set()) - (before or set())
    tell(
        f"{callers} conversations at once, {kind}: memory grew by {grown} at most;"
        f" sockets left open: {'not counted here' if before is None else len(left)}"
    )
    assert right == [True] * callers
    assert (memory.bytes_max or 0) <= BYTES_MAX + callers * BYTES_PER_CONVERSATION_MAX
    assert left == set()


@pytest.mark.parametrize(
    "count", [pytest.param(50, marks=pytest.mark.share), pytest.param(500, marks=pytest.mark.search)]
)
async def test_many_conversations_on_one_event_loop(
    saver: DynamoDBSaver, tell: Callable[[str], None], count: int
) -> None:
    count = int(os.environ.get(THREADS_VARIABLE, count))
    sockets, tasks = open_sockets(), asyncio.all_tasks()
    begun: list[int] = []
    begun_at_ends: list[int] = []

    async def converse(number: int) -> bool:
        is_right = await _converse(saver, f"thread-{number}", lambda: begun.append(number))
        begun_at_ends.append(len(begun))
        return is_right

    with MemoryGrowth() as memory:
        async with saver:
            right = await asyncio.gather(*map(converse, range(count)))
    _judge("async", right, memory, sockets, tell)
    # Nobody starves: once half have ended, all have begun. Of threads that is the operating system's to decide, and on
    # a busy machine one of 64 may.
    assert begun_at_ends[count // 2] == count
    assert asyncio.all_tasks() == tasks


@pytest.mark.parametrize(
    "count",
    [pytest.param(8, marks=pytest.mark.share), pytest.param(BLOCKING_THREADS, marks=pytest.mark.search)],
)
def test_conversations_in_as_many_threads(
    saver: DynamoDBSaver, tell: Callable[[str], None], count: int
) -> None:
    sockets, threads = open_sockets(), set(threading.enumerate())

    def converse_for_long(number: int) -> bool:
        return all(
            asyncio.run(_converse(SyncAsAsync(saver), f"thread-{number}-{turn}"))
            for turn in range(BLOCKING_TURNS)
        )

    with MemoryGrowth() as memory, saver, ThreadPoolExecutor(count) as pool:
        right = list(pool.map(converse_for_long, range(count)))
    _judge("in threads", right, memory, sockets, tell)
    assert set(threading.enumerate()) == threads
