"""LangGraph's Postgres saver as an endpoint: thread ids, checkpoints and positions of writes by SQL on its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import DictRow
from psycopg_pool import ConnectionPool

from langgraph.checkpoint.dynamodb.config.postgres import connection_options, connection_problem
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.migrate.record import Ref, WritePosition
from langgraph.checkpoint.dynamodb.migrate.saver_endpoint import SaverEndpoint

_PAGE_THREADS = 1000
_CONNECT_SECONDS = 10

# In pages by primary key, since the ids of millions of threads do not fit into one answer.
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id > %s ORDER BY thread_id LIMIT %s"
_CHECKPOINTS = "SELECT checkpoint_id, checkpoint_ns FROM checkpoints WHERE thread_id = %s"
_PLACES = """
SELECT task_path, task_id, idx, channel FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""


class PostgresEndpoint(SaverEndpoint):
    """The tables of LangGraph's Postgres saver."""

    saver: PostgresSaver
    knows_positions = True

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, in order."""
        last = ""
        while page := self._rows(_THREADS, last, _PAGE_THREADS):
            yield from (row["thread_id"] for row in page)
            last = page[-1]["thread_id"]

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        rows = self._rows(_CHECKPOINTS, thread_id)
        return sorted(Ref(row["checkpoint_id"], row["checkpoint_ns"]) for row in rows)

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in order."""
        rows = self._rows(_PLACES, thread_id, ref.namespace, ref.checkpoint_id)
        return sorted(
            (WritePosition(row["task_path"], row["task_id"], row["idx"]), row["channel"]) for row in rows
        )

    def _rows(self, statement: Any, *arguments: Any) -> list[dict[str, Any]]:
        try:
            with self.saver._cursor() as cursor:  # noqa: SLF001 - the saver has no public way to its connection.
                return cursor.execute(statement, arguments).fetchall()
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            msg = (
                "the Postgres database lacks the tables of this release of LangGraph's saver"
                f" ({error.diag.message_primary}); name the database of the threads, and call setup() of its"
                " PostgresSaver once"
            )
            raise CheckpointerConfigurationError(msg) from None

    def close(self) -> None:
        """Close the connections that `open_postgres` opened."""
        if isinstance(self.saver.conn, ConnectionPool):
            self.saver.conn.close()


def open_postgres(connection_string: str, *, connections: int, as_target: bool) -> PostgresEndpoint:
    """Connect to a database. For a target, make its tables if they are missing.

    Raises:
        CheckpointerConfigurationError: There is no connection, or the string is invalid. It is never shown.
    """
    problem = connection_problem(connection_string, _CONNECT_SECONDS)
    if problem is not None:
        msg = f"the connection string {problem}"
        raise CheckpointerConfigurationError(msg)
    pool: ConnectionPool[psycopg.Connection[DictRow]] = ConnectionPool(
        connection_string, kwargs=connection_options(), min_size=1, max_size=connections, open=True
    )
    store = PostgresEndpoint(PostgresSaver(pool))
    if as_target:
        store.saver.setup()
    return store
