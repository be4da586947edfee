"""From a configuration to a ready checkpointer, store or cache.

For each there are three functions: `create_...` returns a context manager, `acreate_...` an async one, and `open_...`
the object itself, for the life of the process. Which class a configuration makes is known only when it is read. So a
program that needs more than LangGraph's own methods passes the class as `expect`.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, NoReturn, TypeVar, overload

from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from langgraph.checkpoint.dynamodb.config.model import (
    CacheConfig,
    CheckpointerConfig,
    ComponentConfig,
    Source,
    StoreConfig,
)

Opened = TypeVar("Opened")
Saver = TypeVar("Saver", bound=BaseCheckpointSaver[Any])
Store = TypeVar("Store", bound=BaseStore)
Cache = TypeVar("Cache", bound=BaseCache[Any])


@overload
def create_checkpointer(source: Source = None) -> AbstractContextManager[BaseCheckpointSaver[Any] | None]: ...
@overload
def create_checkpointer(source: Source = None, *, expect: type[Saver]) -> AbstractContextManager[Saver]: ...
def create_checkpointer(
    source: Source = None, *, expect: type[BaseCheckpointSaver[Any]] | None = None
) -> AbstractContextManager[BaseCheckpointSaver[Any] | None]:
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
        `setup()`. It yields None if `enabled` is false and nothing is expected. `open_checkpointer` returns the
        saver itself.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, the type's package is not installed, or it makes another class.
    """
    return _Unentered(CheckpointerConfig, source, expect)


@overload
def acreate_checkpointer(
    source: Source = None,
) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any] | None]: ...
@overload
def acreate_checkpointer(
    source: Source = None, *, expect: type[Saver]
) -> AbstractAsyncContextManager[Saver]: ...
def acreate_checkpointer(
    source: Source = None, *, expect: type[BaseCheckpointSaver[Any]] | None = None
) -> AbstractAsyncContextManager[BaseCheckpointSaver[Any] | None]:
    """Return an async context manager of the configured checkpointer, ready for `ainvoke`.

    For SQLite and Postgres it uses LangGraph's async savers.

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBSaver`. Type checkers then know its methods.

    Returns:
        An async context manager that yields the saver and closes it at the end, or yields None as for
        `create_checkpointer`.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, the type's package is not installed, or it makes another class.
    """
    return _AsyncUnentered(CheckpointerConfig, source, expect)


@overload
def open_checkpointer(source: Source = None) -> BaseCheckpointSaver[Any] | None: ...
@overload
def open_checkpointer(source: Source = None, *, expect: type[Saver]) -> Saver: ...
def open_checkpointer(
    source: Source = None, *, expect: type[BaseCheckpointSaver[Any]] | None = None
) -> BaseCheckpointSaver[Any] | None:
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
        The saver, or None as for `create_checkpointer`. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: Something in the configuration is unknown, missing or of the wrong type, an
            option cannot be used, the type's package is not installed, or it makes another class.
    """
    return _open(CheckpointerConfig, source, expect)


@overload
def create_store(source: Source = None) -> AbstractContextManager[BaseStore | None]: ...
@overload
def create_store(source: Source = None, *, expect: type[Store]) -> AbstractContextManager[Store]: ...
def create_store(
    source: Source = None, *, expect: type[BaseStore] | None = None
) -> AbstractContextManager[BaseStore | None]:
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
        A context manager that yields the store and closes it at the end, or yields None as for `create_checkpointer`.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _Unentered(StoreConfig, source, expect)


@overload
def acreate_store(source: Source = None) -> AbstractAsyncContextManager[BaseStore | None]: ...
@overload
def acreate_store(source: Source = None, *, expect: type[Store]) -> AbstractAsyncContextManager[Store]: ...
def acreate_store(
    source: Source = None, *, expect: type[BaseStore] | None = None
) -> AbstractAsyncContextManager[BaseStore | None]:
    """Return an async context manager of the configured store, ready for `ainvoke`.

    For SQLite and Postgres it uses LangGraph's async stores.

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBStore`. Type checkers then know its methods.

    Returns:
        An async context manager that yields the store and closes it at the end, or yields None as for
        `create_checkpointer`.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _AsyncUnentered(StoreConfig, source, expect)


@overload
def open_store(source: Source = None) -> BaseStore | None: ...
@overload
def open_store(source: Source = None, *, expect: type[Store]) -> Store: ...
def open_store(source: Source = None, *, expect: type[BaseStore] | None = None) -> BaseStore | None:
    """Return the configured store for the life of the process: at module level, as on Lambda and Celery.

    Args:
        source: A `StoreConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBStore`. Type checkers then know its methods.

    Returns:
        The store, or None as for `create_checkpointer`. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: As for `open_checkpointer`.
    """
    return _open(StoreConfig, source, expect)


@overload
def create_cache(source: Source = None) -> AbstractContextManager[BaseCache[Any] | None]: ...
@overload
def create_cache(source: Source = None, *, expect: type[Cache]) -> AbstractContextManager[Cache]: ...
def create_cache(
    source: Source = None, *, expect: type[BaseCache[Any]] | None = None
) -> AbstractContextManager[BaseCache[Any] | None]:
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
        A context manager that yields the cache and closes it at the end, or yields None as for `create_checkpointer`.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _Unentered(CacheConfig, source, expect)


@overload
def acreate_cache(source: Source = None) -> AbstractAsyncContextManager[BaseCache[Any] | None]: ...
@overload
def acreate_cache(source: Source = None, *, expect: type[Cache]) -> AbstractAsyncContextManager[Cache]: ...
def acreate_cache(
    source: Source = None, *, expect: type[BaseCache[Any]] | None = None
) -> AbstractAsyncContextManager[BaseCache[Any] | None]:
    """Return an async context manager of the configured cache, ready for `ainvoke`.

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBCache`. Type checkers then know its methods.

    Returns:
        An async context manager that yields the cache and closes it at the end, or yields None as for
        `create_checkpointer`.

    Raises:
        CheckpointerConfigurationError: On entering, as for `create_checkpointer`.
    """
    return _AsyncUnentered(CacheConfig, source, expect)


@overload
def open_cache(source: Source = None) -> BaseCache[Any] | None: ...
@overload
def open_cache(source: Source = None, *, expect: type[Cache]) -> Cache: ...
def open_cache(source: Source = None, *, expect: type[BaseCache[Any]] | None = None) -> BaseCache[Any] | None:
    """Return the configured cache for the life of the process: at module level, as on Lambda and Celery.

    Args:
        source: A `CacheConfig`, a dict, the path of a YAML or TOML file, or None for the environment.
        expect: The class that this program needs, such as `DynamoDBCache`. Type checkers then know its methods.

    Returns:
        The cache, or None as for `create_checkpointer`. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: As for `open_checkpointer`.
    """
    return _open(CacheConfig, source, expect)


def _open(kind: type[ComponentConfig], source: Source, expect: type[Opened] | None) -> Opened | None:
    stack = ExitStack()
    atexit.register(stack.close)
    opened: Opened | None = stack.enter_context(_Unentered(kind, source, expect))
    return opened


@contextmanager
def _opened(kind: type[ComponentConfig], source: Source, expect: type[Any] | None) -> Iterator[Any]:
    config = kind.load(source)
    if not config.enabled:
        config.check_made(None, expect)
        yield None
        return
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
    if not config.enabled:
        config.check_made(None, expect)
        yield None
        return
    async with AsyncExitStack() as stack:
        with config.saying_where():
            found = await asyncio.to_thread(config.types.find, config.type)
            made = await stack.enter_async_context(found.aopen(config.config))
        config.check_made(made, expect)
        yield made


class _Unopened:
    """A context manager that is not the object yet, and raises a clear error if it is used as one."""

    _with: str
    _open: Callable[[type[ComponentConfig], Source, type[Any] | None], Any]

    def __init__(self, config: type[ComponentConfig], source: Source, expect: type[Any] | None) -> None:
        self._component = config.subject.in_yaml
        self._opening = self._open(config, source, expect)

    def _refuse(self) -> str:
        name = self._component
        return (
            f"this is the context manager of a {name}, and not a {name}: use"
            f" `{self._with}create_{name}(...) as {name}:`, or at module level `{name} = open_{name}(...)`"
        )

    def __eq__(self, other: object) -> NoReturn:
        # `compile` compares its argument with None, True and False before it checks the type.
        raise TypeError(self._refuse())

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: {self._refuse()}")


class _Unentered(_Unopened, AbstractContextManager[Any]):
    _with = "with "
    _open = staticmethod(_opened)

    def __enter__(self) -> Any:
        return self._opening.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self._opening.__exit__(*error)


class _AsyncUnentered(_Unopened, AbstractAsyncContextManager[Any]):
    _with = "async with a"
    _open = staticmethod(_aopened)

    async def __aenter__(self) -> Any:
        return await self._opening.__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        return await self._opening.__aexit__(*error)
