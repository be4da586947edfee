"""Every operation of a saver by its name, to be called on either side: the blocking one or the async one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from tests.support.checkpoints import METADATA, checkpoint_of, thread_config

Side: TypeAlias = Literal["sync", "async"]

both_sides = pytest.mark.parametrize("side", ["sync", "async"])


def _put_arguments(config: RunnableConfig) -> tuple[Any, ...]:
    return config, checkpoint_of("1", {"big": "x" * 100_000}), METADATA, {"big": 1}


# Each operation that takes a config, with the rest of its arguments.
WITH_CONFIG: dict[str, Callable[[RunnableConfig], tuple[Any, ...]]] = {
    "get_tuple": lambda config: (config,),
    "list": lambda config: (config,),
    "put": _put_arguments,
    "put_writes": lambda config: (config, [("channel", 1)], "task"),
}


def operations_on(thread_id: str, copy: str) -> dict[str, tuple[Any, ...]]:
    """Return every operation that makes a request, with all of its arguments, in an order that each can be made in."""
    config = thread_config(thread_id, checkpoint_id="0")
    return {
        **{name: arguments(config) for name, arguments in WITH_CONFIG.items()},
        "copy_thread": (thread_id, copy),
        "prune": ([thread_id],),
        "delete_for_runs": (["run-1"],),
        "delete_thread": (thread_id,),
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
    """Make every operation on a thread, in turn; the async ones on one event loop of its own."""
    if side == "async":
        asyncio.run(aask_all(saver, thread_id))
        return
    for method, args in operations_on(thread_id, f"{thread_id}-copy").items():
        ask(side, saver, method, *args)


async def aask_all(saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
    """Make every operation on a thread by its async method, in turn."""
    for method, args in operations_on(thread_id, f"{thread_id}-copy").items():
        await _aask(saver, method, *args)
