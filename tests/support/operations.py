"""Every operation of a saver by its name, to be called on either side: the blocking one or the async one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pytest
from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb import DynamoDBSaver
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
# Every operation that makes a request, with all of its arguments.
OPERATIONS: dict[str, tuple[Any, ...]] = {
    **{name: arguments(thread_config(checkpoint_id="0")) for name, arguments in WITH_CONFIG.items()},
    "delete_thread": ("thread-1",),
    "delete_for_runs": (["run-1"],),
    "prune": (["thread-1"],),
    "copy_thread": ("thread-1", "copy"),
}


def ask(side: Side, saver: DynamoDBSaver, method: str, *args: Any, **options: Any) -> Any:
    """Call a method of the saver, or its async one on an event loop of its own, and read a list to its end."""
    if side == "sync":
        answer = getattr(saver, method)(*args, **options)
        return list(answer) if method == "list" else answer

    async def ask() -> Any:
        answer = getattr(saver, f"a{method}")(*args, **options)
        return [each async for each in answer] if method == "list" else await answer

    return asyncio.run(ask())
