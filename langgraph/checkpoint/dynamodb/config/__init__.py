"""The checkpointer, the store and the node cache of a configuration: a file, a dict or the environment.

All of it is read and checked before anything is opened. `create_...` returns a context manager, for `with` and `async
with`; `open_...` the object itself, for the life of the process.
"""

import asyncio
import atexit
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from typing import Any, TypeVar

from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from .model import CacheConfig, CheckpointerConfig, ComponentConfig, Source, StoreConfig

__all__ = [
    "CacheConfig",
    "CheckpointerConfig",
    "StoreConfig",
    "create_cache",
    "create_checkpointer",
    "create_store",
    "open_cache",
    "open_checkpointer",
    "open_store",
]

Opened = TypeVar("Opened")


class Opening(AbstractContextManager[Opened], AbstractAsyncContextManager[Opened]):
    """Opens a configured component when it is entered, and closes it at the end."""

    def __init__(self, kind: type[ComponentConfig], source: Source) -> None:
        """Read nothing yet."""
        self._kind = kind
        self._source = source
        self._open = ExitStack()
        self._open_async = AsyncExitStack()

    def __enter__(self) -> Opened:
        """Open it for `invoke`."""
        config = self._kind.load(self._source)
        with ExitStack() as stack:
            with config.saying_where():
                found = config.find_type(config.type)
                made: Any = stack.enter_context(found.make(config.config))
                if found.amake is not None or _is_to_create_table(config):
                    made.setup()
                if found.amake is not None and self._kind is StoreConfig:
                    made.start_ttl_sweeper()
                    stack.callback(made.stop_ttl_sweeper)
            self._open = stack.pop_all()
        opened: Opened = made
        return opened

    def __exit__(self, *raised: Any) -> bool | None:
        """Close it."""
        return self._open.__exit__(*raised)

    async def __aenter__(self) -> Opened:
        """Open it for `ainvoke`."""
        # In threads, since reading files, importing modules and checking databases would block the event loop.
        config = await asyncio.to_thread(self._kind.load, self._source)
        async with AsyncExitStack() as stack:
            with config.saying_where():
                found = await asyncio.to_thread(config.find_type, config.type)
                making: Any = await asyncio.to_thread(found.amake or found.make, config.config)
                made: Any = await stack.enter_async_context(making)
                if found.amake is not None:
                    await made.setup()
                elif _is_to_create_table(config):
                    await made.asetup()
                if found.amake is not None and self._kind is StoreConfig:
                    await made.start_ttl_sweeper()
                    stack.push_async_callback(made.stop_ttl_sweeper)
            self._open_async = stack.pop_all()
        opened: Opened = made
        return opened

    async def __aexit__(self, *raised: Any) -> bool | None:
        """Close it."""
        return await self._open_async.__aexit__(*raised)


def _is_to_create_table(config: ComponentConfig) -> bool:
    """Tell whether the options say so. Only types on a table have that option."""
    return getattr(config.config, "setup", False)


def create_checkpointer(source: Source = None) -> Opening[BaseCheckpointSaver[Any]]:
    """Return a context manager of the configured checkpointer: `with` for `invoke`, `async with` for `ainvoke`.

    The difference matters for SQLite and Postgres, for which LangGraph has two savers.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver, create_checkpointer

        with create_checkpointer("agent.yaml") as checkpointer:
            graph = builder.compile(checkpointer=checkpointer)
            graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})

        with create_checkpointer("agent.yaml") as saver:
            assert isinstance(saver, DynamoDBSaver)
            page = saver.threads(owner="ada")
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML file, or None for the environment.

    Returns:
        A context manager that yields the saver and closes it at the end. For SQLite and Postgres, it has called
        `setup()`. `open_checkpointer` returns the saver itself.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, or the type's package is not installed.
    """
    return Opening(CheckpointerConfig, source)


def open_checkpointer(source: Source = None) -> BaseCheckpointSaver[Any]:
    """Return the configured checkpointer for the life of the process: at module level, as on Lambda and Celery.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import open_checkpointer

        graph = builder.compile(checkpointer=open_checkpointer("agent.yaml"))
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML file, or None for the environment.

    Returns:
        The saver. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: Something in the configuration is unknown, missing or of the wrong type, an
            option cannot be used, or the type's package is not installed.
    """
    return _open(create_checkpointer(source))


def create_store(source: Source = None) -> Opening[BaseStore]:
    """Return a context manager of the configured store: `with` for `invoke`, `async with` for `ainvoke`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import create_checkpointer, create_store

        with create_checkpointer("agent.yaml") as checkpointer, create_store("agent.yaml") as store:
            graph = builder.compile(checkpointer=checkpointer, store=store)
        ```

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML file, or None for the environment.

    Returns:
        A context manager that yields the store and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return Opening(StoreConfig, source)


def open_store(source: Source = None) -> BaseStore:
    """Return the configured store for the life of the process: at module level, as on Lambda and Celery.

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML file, or None for the environment.

    Returns:
        The store. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: As for `open_checkpointer`.
    """
    return _open(create_store(source))


def create_cache(source: Source = None) -> Opening[BaseCache[Any]]:
    """Return a context manager of the configured cache: `with` for `invoke`, `async with` for `ainvoke`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import create_checkpointer, create_cache

        with create_checkpointer("agent.yaml") as checkpointer, create_cache("agent.yaml") as cache:
            graph = builder.compile(checkpointer=checkpointer, cache=cache)
        ```

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML file, or None for the environment.

    Returns:
        A context manager that yields the cache and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return Opening(CacheConfig, source)


def open_cache(source: Source = None) -> BaseCache[Any]:
    """Return the configured cache for the life of the process: at module level, as on Lambda and Celery.

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML file, or None for the environment.

    Returns:
        The cache. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: As for `open_checkpointer`.
    """
    return _open(create_cache(source))


def _open(opening: Opening[Opened]) -> Opened:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(opening)
