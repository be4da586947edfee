"""LangGraph's SQLite saver as an endpoint."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from ..errors import CheckpointerConfigurationError
from .sql import SqlEndpoint

_TABLES = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('checkpoints', 'writes')"


class SqliteEndpoint(SqlEndpoint):
    """The tables of LangGraph's SQLite saver."""

    saver: SqliteSaver
    writes = "writes"

    def rows(self, statement: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with self.saver.cursor(transaction=False) as cursor:
            return cursor.execute(statement, arguments).fetchall()

    def close(self) -> None:
        """Close the database."""
        self.saver.conn.close()


def open_sqlite(path: str, *, as_target: bool) -> SqliteEndpoint:
    """Open a database file. For a target, make it if it is missing.

    Raises:
        CheckpointerConfigurationError: There is no such file, or it is not a database with checkpoints.
    """
    if not as_target:
        _check_source(path)
    elif not Path(path).resolve().parent.is_dir():
        msg = f"the folder of the SQLite database {path} does not exist; create it first"
        raise CheckpointerConfigurationError(msg)
    store = SqliteEndpoint(SqliteSaver(sqlite3.connect(path, check_same_thread=False)))
    store.saver.setup()
    return store


def _check_source(path: str) -> None:
    """Raise if there are no checkpoints to move: merely opening a database would make one.

    Raises:
        CheckpointerConfigurationError: There is no such file, or it is not a database with checkpoints.
    """
    if not Path(path).is_file():
        msg = f"there is no SQLite database {path}; check its path"
        raise CheckpointerConfigurationError(msg)
    try:
        with closing(sqlite3.connect(path)) as connection:
            [(tables,)] = connection.execute(_TABLES).fetchall()
    except sqlite3.DatabaseError as error:
        msg = f"{path} is not a SQLite database ({error}); name the file that LangGraph's saver uses"
        raise CheckpointerConfigurationError(msg) from None
    if tables != 2:
        msg = f"the SQLite database {path} has no tables of LangGraph's saver; name the file that the saver uses"
        raise CheckpointerConfigurationError(msg)
