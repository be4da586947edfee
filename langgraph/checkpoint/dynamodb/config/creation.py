"""From a configuration to a ready checkpointer, store or cache.

For each there are three functions: `create_...` returns a context manager, `acreate_...` an async one, and `open_...`
the object itself, for the life of the process. Which class a configuration makes is known only when it is read. So a
program that needs more than LangGraph's own methods passes the class as `expect`.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from typing_extensions import TypeVar

from langgraph.checkpoint.dynamodb.config.model import (
    CacheConfig,
    CheckpointerConfig,
    ComponentConfig,
    Source,
    StoreConfig,
)

Opened = TypeVar("Opened")
# Without `expect`, type checkers know LangGraph's own methods only.
Saver = TypeVar("Saver", bound=BaseCheckpointSaver[Any], default=BaseCheckpointSaver[Any])
Store = TypeVar("Store", bound=BaseStore, default=BaseStore)
Cache = TypeVar("Cache", bound=BaseCache[Any], default=BaseCache[Any])


def create_checkpointer(
    source: Source = None, *, expect: type[Saver] | None = None
) -> AbstractContextManager[Saver]:
    """Return a context manager of the configured checkpointer, ready for `invoke`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver, create_checkpointer

        with create_checkpointer("agent.yaml") as checkpointer:
            graph = builder.compile(checkpointer=checkpointer)
            graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})

        with create_checkpointer("agent.yaml", expect=DynamoDBSaver) as saver:
            page = saver.threads(owner="ada")
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBSaver`. Type checkers then know its methods.

    Returns:
        A context manager that yields the saver and closes it at the end. For SQLite and Postgres, it has called
        `setup()`. `open_checkpointer` returns the saver itself.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, the type's package is not installed, or it makes another class.
    """
    return _opened(CheckpointerConfig, source, expect)


def acreate_checkpointer(
    source: Source = None, *, expect: type[Saver] | None = None
) -> AbstractAsyncContextManager[Saver]:
    """Return an async context manager of the configured checkpointer, ready for `ainvoke`.

    For SQLite and Postgres it uses LangGraph's async savers.

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBSaver`. Type checkers then know its methods.

    Returns:
        An async context manager that yields the saver and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, the type's package is not installed, or it makes another class.
    """
    return _aopened(CheckpointerConfig, source, expect)


def open_checkpointer(source: Source = None, *, expect: type[Saver] | None = None) -> Saver:
    """Return the configured checkpointer for the life of the process: at module level, as on Lambda and Celery.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import open_checkpointer

        graph = builder.compile(checkpointer=open_checkpointer("agent.yaml"))
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBSaver`. Type checkers then know its methods.

    Returns:
        The saver. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: Something in the configuration is unknown, missing or of the wrong type, an
            option cannot be used, the type's package is not installed, or it makes another class.
    """
    return _open(CheckpointerConfig, source, expect)


def create_store(
    source: Source = None, *, expect: type[Store] | None = None
) -> AbstractContextManager[Store]:
    """Return a context manager of the configured store, ready for `invoke`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import create_checkpointer, create_store

        with create_checkpointer("agent.yaml") as checkpointer, create_store("agent.yaml") as store:
            graph = builder.compile(checkpointer=checkpointer, store=store)
        ```

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBStore`. Type checkers then know its methods.

    Returns:
        A context manager that yields the store and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _opened(StoreConfig, source, expect)


def acreate_store(
    source: Source = None, *, expect: type[Store] | None = None
) -> AbstractAsyncContextManager[Store]:
    """Return an async context manager of the configured store, ready for `ainvoke`.

    For SQLite and Postgres it uses LangGraph's async stores.

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBStore`. Type checkers then know its methods.

    Returns:
        An async context manager that yields the store and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _aopened(StoreConfig, source, expect)


def open_store(source: Source = None, *, expect: type[Store] | None = None) -> Store:
    """Return the configured store for the life of the process: at module level, as on Lambda and Celery.

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBStore`. Type checkers then know its methods.

    Returns:
        The store. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: As for `open_checkpointer`.
    """
    return _open(StoreConfig, source, expect)


def create_cache(
    source: Source = None, *, expect: type[Cache] | None = None
) -> AbstractContextManager[Cache]:
    """Return a context manager of the configured cache, ready for `invoke`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import create_checkpointer, create_cache

        with create_checkpointer("agent.yaml") as checkpointer, create_cache("agent.yaml") as cache:
            graph = builder.compile(checkpointer=checkpointer, cache=cache)
        ```

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBCache`. Type checkers then know its methods.

    Returns:
        A context manager that yields the cache and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _opened(CacheConfig, source, expect)


def acreate_cache(
    source: Source = None, *, expect: type[Cache] | None = None
) -> AbstractAsyncContextManager[Cache]:
    """Return an async context manager of the configured cache, ready for `ainvoke`.

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBCache`. Type checkers then know its methods.

    Returns:
        An async context manager that yields the cache and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _aopened(CacheConfig, source, expect)


def open_cache(source: Source = None, *, expect: type[Cache] | None = None) -> Cache:
    """Return the configured cache for the life of the process: at module level, as on Lambda and Celery.

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBCache`. Type checkers then know its methods.

    Returns:
        The cache. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: As for `open_checkpointer`.
    """
    return _open(CacheConfig, source, expect)


def _open(kind: type[ComponentConfig], source: Source, expect: type[Opened] | None) -> Opened:
    stack = ExitStack()
    atexit.register(stack.close)
    opened: Opened = stack.enter_context(_opened(kind, source, expect))
    return opened


@contextmanager
def _opened(kind: type[ComponentConfig], source: Source, expect: type[Any] | None) -> Iterator[Any]:
    config = kind.load(source)
    with ExitStack() as stack:
        with config.saying_where():
            made = stack.enter_context(config.types.find(config.type).open(config.config))
        config.check_made(made, expect)
        yield made


@asynccontextmanager
async def _aopened(
    kind: type[ComponentConfig], source: Source, expect: type[Any] | None
) -> AsyncIterator[Any]:
    # In a thread, since reading the file and importing modules would block the event loop.
    config = await asyncio.to_thread(kind.load, source)
    async with AsyncExitStack() as stack:
        with config.saying_where():
            found = await asyncio.to_thread(config.types.find, config.type)
            made = await stack.enter_async_context(found.aopen(config.config))
        config.check_made(made, expect)
        yield made
