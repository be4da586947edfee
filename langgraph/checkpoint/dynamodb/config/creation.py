"""From a configuration to a ready saver: `create_checkpointer`, `acreate_checkpointer` and `open_checkpointer`."""

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
from types import TracebackType
from typing import Any, NoReturn, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver

from langgraph.checkpoint.dynamodb.config.model import CheckpointerConfig, Source
from langgraph.checkpoint.dynamodb.config.types import find_type

Opened: TypeAlias = "BaseCheckpointSaver[Any] | None"


def create_checkpointer(source: Source = None) -> AbstractContextManager[Opened]:
    """Return a context manager of the configured checkpointer, ready for `invoke`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import create_checkpointer

        with create_checkpointer("agent.yaml") as checkpointer:
            graph = builder.compile(checkpointer=checkpointer)
            graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.

    Returns:
        A context manager that yields the saver and closes it at the end. For SQLite and Postgres, `setup()` has been
        called. It yields None if `enabled` is false. `open_checkpointer` returns the saver itself.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, or the type's package is not installed.
    """
    return _Checkpointer(source)


def acreate_checkpointer(source: Source = None) -> AbstractAsyncContextManager[Opened]:
    """Return an async context manager of the configured checkpointer, ready for `ainvoke`.

    For SQLite and Postgres it uses LangGraph's async savers.

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.

    Returns:
        An async context manager that yields the saver, or None if `enabled` is false, and closes it at the end.

    Raises:
        CheckpointerConfigurationError: On entering: something in the configuration is unknown, missing or of the wrong
            type, an option cannot be used, or the type's package is not installed.
    """
    return _AsyncCheckpointer(source)


def open_checkpointer(source: Source = None) -> Opened:
    """Return the configured checkpointer for the life of the process: at module level, as on Lambda and Celery.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import open_checkpointer

        graph = builder.compile(checkpointer=open_checkpointer("agent.yaml"))
        ```

    Args:
        source: A `CheckpointerConfig`, a dict, the path of a YAML or TOML file, or None for the environment.

    Returns:
        The saver, or None if `enabled` is false. It is closed when the process ends.

    Raises:
        CheckpointerConfigurationError: Something in the configuration is unknown, missing or of the wrong type, an
            option cannot be used, or the type's package is not installed.
    """
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(create_checkpointer(source))


class _Unopened:
    """A context manager that is not a saver yet, and raises a clear error if it is used as one."""

    _says: str

    def _refuse(self) -> str:
        return f"this is the context manager of a checkpointer, and not a checkpointer: {self._says}"

    def __eq__(self, other: object) -> NoReturn:
        # `compile` compares its argument with None, True and False before it checks the type.
        raise TypeError(self._refuse())

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: {self._refuse()}")


class _Checkpointer(_Unopened, AbstractContextManager[Opened]):
    _says = (
        "use `with create_checkpointer(...) as checkpointer:`, or at module level"
        " `checkpointer = open_checkpointer(...)`"
    )

    def __init__(self, source: Source) -> None:
        self._opening = _opened(source)

    def __enter__(self) -> Opened:
        return self._opening.__enter__()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._opening.__exit__(exc_type, exc_value, traceback)


class _AsyncCheckpointer(_Unopened, AbstractAsyncContextManager[Opened]):
    _says = (
        "use `async with acreate_checkpointer(...) as checkpointer:`, or at module level"
        " `checkpointer = open_checkpointer(...)`"
    )

    def __init__(self, source: Source) -> None:
        self._opening = _aopened(source)

    async def __aenter__(self) -> Opened:
        return await self._opening.__aenter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._opening.__aexit__(exc_type, exc_value, traceback)


@contextmanager
def _opened(source: Source) -> Iterator[Opened]:
    config = CheckpointerConfig.load(source)
    if not config.enabled:
        yield None
        return
    with ExitStack() as stack:
        with config.saying_where():
            saver = stack.enter_context(find_type(config.type).open(config.config))
        yield saver


@asynccontextmanager
async def _aopened(source: Source) -> AsyncIterator[Opened]:
    # In a thread, since reading the file and importing modules would block the event loop.
    config = await asyncio.to_thread(CheckpointerConfig.load, source)
    if not config.enabled:
        yield None
        return
    async with AsyncExitStack() as stack:
        with config.saying_where():
            kind = await asyncio.to_thread(find_type, config.type)
            saver = await stack.enter_async_context(kind.aopen(config.config))
        yield saver
