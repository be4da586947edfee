"""Every operation of a saver by its name, to be called on either side: the blocking one or the async one."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config

Side: TypeAlias = Literal["sync", "async"]

both_sides = pytest.mark.parametrize("side", ["sync", "async"])


def _put_arguments(config: RunnableConfig, checkpoint_id: str) -> dict[str, Any]:
    checkpoint = checkpoint_of(checkpoint_id, {"big": "x" * 100_000})
    return {"config": config, "checkpoint": checkpoint, "metadata": METADATA, "new_versions": {"big": 1}}


# Each operation that takes a config, with all of its arguments.
WITH_CONFIG: dict[str, Callable[[RunnableConfig], dict[str, Any]]] = {
    "get_tuple": lambda config: {"config": config},
    "list": lambda config: {"config": config},
    "get_delta_channel_history": lambda config: {"config": config, "channels": ["log"]},
    "put": lambda config: _put_arguments(config, "1"),
    "put_writes": lambda config: {"config": config, "writes": [("channel", 1)], "task_id": "task"},
}


def operations_on(thread_id: str, copy: str) -> dict[str, dict[str, Any]]:
    """Return every operation that makes a request, with all of its arguments, in an order that each can be made in."""
    config = thread_config(thread_id, checkpoint_id="0")
    return {
        **{name: arguments(config) for name, arguments in WITH_CONFIG.items()},
        "copy_thread": {"source_thread_id": thread_id, "target_thread_id": copy},
        "prune": {"thread_ids": [thread_id]},
        "delete_for_runs": {"run_ids": ["run-1"]},
        "delete_thread": {"thread_id": thread_id},
    }


OPERATIONS = operations_on("thread-1", "copy")


def ask(side: Side, saver: BaseCheckpointSaver[Any], method: str, *args: Any, **options: Any) -> Any:
    """Call a method of the saver, or its async one on an event loop of its own, and read a list to its end."""
    if side == "async":
        return asyncio.run(_aask(saver, method, *args, **options))
    answer = getattr(saver, method)(*args, **options)
    return list(answer) if method == "list" else answer


async def _aask(saver: BaseCheckpointSaver[Any], method: str, *args: Any, **options: Any) -> Any:
    answer = getattr(saver, f"a{method}")(*args, **options)
    return [each async for each in answer] if method == "list" else await answer


def ask_all(side: Side, saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
    """Make every operation on a thread, in turn, under its lock where the saver has locks."""
    if side == "async":
        asyncio.run(aask_all(saver, thread_id))
        return
    lock = saver.thread_lock(thread_id) if isinstance(saver, DynamoDBSaver) else contextlib.nullcontext()
    with lock:
        for method, arguments in operations_on(thread_id, f"{thread_id}-copy").items():
            ask(side, saver, method, **arguments)


async def aask_all(saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
    """Make every operation on a thread by its async method, as `ask_all` does."""
    lock = saver.athread_lock(thread_id) if isinstance(saver, DynamoDBSaver) else contextlib.nullcontext()
    async with lock:
        for method, arguments in operations_on(thread_id, f"{thread_id}-copy").items():
            await _aask(saver, method, **arguments)
