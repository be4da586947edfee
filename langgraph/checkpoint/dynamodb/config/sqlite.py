"""The type `sqlite`: LangGraph's own savers on a file, for one process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import Field

from langgraph.checkpoint.dynamodb.config.types import CheckpointerType, OptionError, Options

_IN_MEMORY = ":memory:"


class SqliteOptions(Options):
    """The location of the database."""

    db_file: str = Field(
        min_length=1,
        description='The path of the database\'s file, which is created if it is missing, or ":memory:".',
    )


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


def _usable(db_file: str) -> str:
    """Return the path for SQLite, after a check: SQLite itself would not say what is wrong with it."""
    if db_file == _IN_MEMORY:
        return db_file
    path = Path(db_file).expanduser()
    if not path.parent.is_dir():
        raise OptionError("db_file", "the folder of the file does not exist; make it, or give another path")
    try:
        sqlite3.connect(path).close()
    except sqlite3.OperationalError as error:
        raise OptionError("db_file", f"SQLite cannot use the file: {error}") from None
    return str(path)


TYPE = CheckpointerType(SqliteOptions, _open, _aopen, install="langgraph-checkpoint-sqlite")
