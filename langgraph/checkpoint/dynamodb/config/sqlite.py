"""The type `sqlite`: LangGraph's own savers, stores and cache on a file, for one process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from pydantic import Field

from langgraph.checkpoint.dynamodb.config.stores import StoreOptions, aset_up, set_up
from langgraph.checkpoint.dynamodb.config.types import (
    ComponentType,
    OptionError,
    Options,
)

_IN_MEMORY = ":memory:"


class SqliteOptions(Options):
    """The location of the database."""

    db_file: str = Field(
        min_length=1,
        description='The path of the database\'s file, which is created if it is missing, or ":memory:".',
    )


class SqliteStoreOptions(SqliteOptions, StoreOptions):
    """The location of the database, and the options of `SqliteStore`."""


@contextmanager
def _open(options: SqliteOptions) -> Iterator[BaseCheckpointSaver[Any]]:
    # The package is an extra that not everybody installs.
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    with SqliteSaver.from_conn_string(_usable(options.db_file)) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def _aopen(options: SqliteOptions) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: PLC0415

    db_file = await asyncio.to_thread(_usable, options.db_file)
    async with AsyncSqliteSaver.from_conn_string(db_file) as saver:
        await saver.setup()
        yield saver


@contextmanager
def _open_store(options: SqliteStoreOptions) -> Iterator[BaseStore]:
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415

    given: Any = {"index": options.index_config(), "ttl": options.ttl_config()}
    with SqliteStore.from_conn_string(_usable(options.db_file), **given) as store, set_up(store):
        yield store


@asynccontextmanager
async def _aopen_store(options: SqliteStoreOptions) -> AsyncIterator[BaseStore]:
    from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415

    db_file = await asyncio.to_thread(_usable, options.db_file)
    given: Any = {"index": options.index_config(), "ttl": options.ttl_config()}
    async with AsyncSqliteStore.from_conn_string(db_file, **given) as store, aset_up(store):
        yield store


def _open_cache(options: SqliteOptions) -> nullcontext[BaseCache[Any]]:
    from langgraph.cache.sqlite import SqliteCache  # noqa: PLC0415

    return nullcontext(SqliteCache(path=_usable(options.db_file)))


@asynccontextmanager
async def _aopen_cache(options: SqliteOptions) -> AsyncIterator[BaseCache[Any]]:
    with await asyncio.to_thread(_open_cache, options) as cache:
        yield cache


def _usable(db_file: str) -> str:
    """Return the path for SQLite, after a check: SQLite itself would not say what is wrong with it."""
    if db_file == _IN_MEMORY:
        return db_file
    path = Path(db_file).expanduser()
    if not path.parent.is_dir():
        raise OptionError("db_file", "the folder of the file does not exist; create it, or give another path")
    try:
        sqlite3.connect(path).close()
    except sqlite3.OperationalError as error:
        raise OptionError("db_file", f"SQLite cannot use the file: {error}") from None
    return str(path)


_INSTALL = "langgraph-checkpoint-sqlite"
CHECKPOINTER = ComponentType(SqliteOptions, _open, _aopen, install=_INSTALL)
STORE = ComponentType(SqliteStoreOptions, _open_store, _aopen_store, install=_INSTALL)
CACHE = ComponentType(SqliteOptions, _open_cache, _aopen_cache, install=_INSTALL)
