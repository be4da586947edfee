"""The type `sqlite`: LangGraph's own savers, stores and cache on a file, for one process."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from .stores import StoreOptions
from .types import ComponentType, OptionError, Options

if TYPE_CHECKING:
    from langgraph.cache.sqlite import SqliteCache
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

_IN_MEMORY = ":memory:"


class SqliteOptions(Options):
    """The location of the database."""

    db_file: str = Field(
        min_length=1,
        description='The path of the database\'s file, which is created if it is missing, or ":memory:".',
    )


class SqliteStoreOptions(SqliteOptions, StoreOptions):
    """The location of the database, and the options of `SqliteStore`."""


# The package is an extra that not everybody installs.


def _saver(options: SqliteOptions) -> AbstractContextManager[SqliteSaver]:
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    return SqliteSaver.from_conn_string(_usable(options.db_file))


def _async_saver(options: SqliteOptions) -> AbstractAsyncContextManager[AsyncSqliteSaver]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: PLC0415

    return AsyncSqliteSaver.from_conn_string(_usable(options.db_file))


def _store(options: SqliteStoreOptions) -> AbstractContextManager[SqliteStore]:
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415

    return SqliteStore.from_conn_string(_usable(options.db_file), **options.configs())


def _async_store(options: SqliteStoreOptions) -> AbstractAsyncContextManager[AsyncSqliteStore]:
    from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415

    return AsyncSqliteStore.from_conn_string(_usable(options.db_file), **options.configs())


def _cache(options: SqliteOptions) -> nullcontext[SqliteCache[Any]]:
    from langgraph.cache.sqlite import SqliteCache  # noqa: PLC0415

    return nullcontext(SqliteCache(path=_usable(options.db_file)))


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
CHECKPOINTER = ComponentType(SqliteOptions, _saver, _INSTALL, _async_saver)
STORE = ComponentType(SqliteStoreOptions, _store, _INSTALL, _async_store)
CACHE = ComponentType(SqliteOptions, _cache, _INSTALL)
