"""`create_checkpointer` and `acreate_checkpointer`: from a configuration to a saver that is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb.config.model import CheckpointerConfig, Source
from langgraph.checkpoint.dynamodb.config.types import find_type


@contextmanager
def create_checkpointer(source: Source = None) -> Iterator[BaseCheckpointSaver[Any] | None]:
    """Give the checkpointer that is configured, ready for `invoke`; it is closed at the end.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import create_checkpointer

        with create_checkpointer("agent.yaml") as checkpointer:
            graph = builder.compile(checkpointer=checkpointer)
            graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.

    Yields:
        The saver, with its `setup()` called for SQLite and Postgres; None where `enabled` is false.

    Raises:
        CheckpointerConfigurationError: Something in the configuration is unknown, missing or of the wrong type, an
            option cannot be used, or the type's package is not installed.
    """
    config = CheckpointerConfig.load(source)
    if not config.enabled:
        yield None
        return
    with ExitStack() as stack:
        with config.saying_where():
            saver = stack.enter_context(find_type(config.type).open(config.config))
        yield saver


@asynccontextmanager
async def acreate_checkpointer(source: Source = None) -> AsyncIterator[BaseCheckpointSaver[Any] | None]:
    """Do as `create_checkpointer` does, for `ainvoke`: with LangGraph's async savers for SQLite and Postgres."""
    # A file is read, and modules are imported, without keeping the event loop waiting.
    config = await asyncio.to_thread(CheckpointerConfig.load, source)
    if not config.enabled:
        yield None
        return
    async with AsyncExitStack() as stack:
        with config.saying_where():
            kind = await asyncio.to_thread(find_type, config.type)
            saver = await stack.enter_async_context(kind.aopen(config.config))
        yield saver
