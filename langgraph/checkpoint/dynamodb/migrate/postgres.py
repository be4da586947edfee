"""LangGraph's Postgres saver as an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import DictRow
from psycopg_pool import ConnectionPool

from ..config.backends import connection_options, connection_problem
from ..errors import CheckpointerConfigurationError
from .sql import SqlEndpoint

_CONNECT_SECONDS = 10


class PostgresEndpoint(SqlEndpoint):
    """The tables of LangGraph's Postgres saver."""

    saver: PostgresSaver
    writes = "checkpoint_writes"

    def rows(self, statement: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with_marks: Any = statement.replace("?", "%s")
        try:
            with self.saver._cursor() as cursor:  # noqa: SLF001 - the saver has no public way to its connection.
                return [tuple(row.values()) for row in cursor.execute(with_marks, arguments)]
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
