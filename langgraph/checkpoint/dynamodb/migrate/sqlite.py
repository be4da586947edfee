"""LangGraph's SQLite saver as an endpoint: thread ids, checkpoints and positions of writes by SQL on its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.migrate.record import Ref, WritePosition
from langgraph.checkpoint.dynamodb.migrate.saver_endpoint import SaverEndpoint

_TABLES = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('checkpoints', 'writes')"
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_CHECKPOINTS = "SELECT checkpoint_id, checkpoint_ns FROM checkpoints WHERE thread_id = ?"
_PLACES = """
SELECT task_path, task_id, idx, channel FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""


class SqliteEndpoint(SaverEndpoint):
    """The tables of LangGraph's SQLite saver."""

    saver: SqliteSaver
    knows_positions = True

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, in order."""
        return (thread_id for (thread_id,) in self._rows(_THREADS))

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        return sorted(Ref(*row) for row in self._rows(_CHECKPOINTS, thread_id))

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in order."""
        rows = self._rows(_PLACES, thread_id, ref.namespace, ref.checkpoint_id)
        return sorted((WritePosition(*position), channel) for *position, channel in rows)

    def _rows(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
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
