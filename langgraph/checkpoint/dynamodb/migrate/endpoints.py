"""Endpoints of a migration as a person names them, and those of other savers, by their tables.

Thread ids and positions of writes come directly from the tables. The savers' packages are extras.
"""

from __future__ import annotations

import copy
import importlib
import sqlite3
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from ..config.backends import TYPES, connection_options, connection_problem
from ..errors import CheckpointerConfigurationError, CheckpointerInputError
from ..saver import DynamoDBSaver
from .record import Ref, WritePosition
from .saver_endpoint import SaverEndpoint, each_once
from .table import TableEndpoint

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver

_PAGE_THREADS = 1000
# In pages by primary key, since the ids of millions of threads do not fit into one answer.
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id > ? ORDER BY thread_id LIMIT ?"
_CHECKPOINTS = "SELECT checkpoint_id, checkpoint_ns FROM checkpoints WHERE thread_id = ?"
_OF_CHECKPOINT = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_CONNECT_SECONDS = 10
# The prefixes of the partition keys of langgraph-checkpoint-aws's saver.
_CHECKPOINTS_PK = "CHECKPOINT_"
_WRITES_PK = "WRITES_"
ENDPOINTS = """\
postgresql://user:password@host/database    a database of LangGraph's PostgresSaver or PostgresStore
sqlite:PATH                                 a file of LangGraph's SqliteSaver or SqliteStore
module:function                             what returns any other saver or store, such as langgraph-checkpoint-aws's,
                                            or a context manager that gives one\
"""
# By their schemes, the types of a configuration that have the same databases.
_TYPES = {"postgresql": "postgres", "postgres": "postgres", "sqlite": "sqlite"}


class SqlEndpoint(SaverEndpoint):
    """The tables of one of LangGraph's SQL savers."""

    knows_positions = True
    writes: str
    """The table of writes."""

    @abstractmethod
    def rows(self, statement: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a statement with a question mark for each argument."""

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, in order."""
        last = ""
        while page := self.rows(_THREADS, last, _PAGE_THREADS):
            yield from (thread_id for (thread_id,) in page)
            [last] = page[-1]

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        return sorted(Ref(*row) for row in self.rows(_CHECKPOINTS, thread_id))

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in order."""
        statement = f"SELECT task_path, task_id, idx, channel FROM {self.writes} {_OF_CHECKPOINT}"  # noqa: S608
        rows = self.rows(statement, thread_id, ref.namespace, ref.checkpoint_id)
        return sorted((WritePosition(*position), channel) for *position, channel in rows)


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
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    if not as_target:
        with existing_sqlite(path, "checkpoints", "writes"):
            pass
    elif not Path(path).resolve().parent.is_dir():
        msg = f"the folder of the SQLite database {path} does not exist; create it first"
        raise CheckpointerConfigurationError(msg)
    endpoint = SqliteEndpoint(SqliteSaver(sqlite3.connect(path, check_same_thread=False)))
    endpoint.saver.setup()
    return endpoint


@contextmanager
def existing_sqlite(path: str, *tables: str) -> Iterator[sqlite3.Connection]:
    """Open a database file that has some tables. SQLite itself would make a file that is not there.

    Raises:
        CheckpointerConfigurationError: There is no such file, or it is not a database with these tables.
    """
    if not Path(path).is_file():
        raise CheckpointerConfigurationError(f"there is no SQLite database {path}; check its path")
    with closing(sqlite3.connect(path)) as connection:
        try:
            found = [name for (name,) in connection.execute(_SQLITE_TABLES)]
        except sqlite3.DatabaseError as error:
            msg = f"{path} is not a SQLite database ({error}); name the file that LangGraph's saver or store uses"
            raise CheckpointerConfigurationError(msg) from None
        for each in tables:
            if each not in found:
                msg = f"the SQLite database {path} has no table {each!r}; name the file of a saver or store"
                raise CheckpointerConfigurationError(msg)
        yield connection


class PostgresEndpoint(SqlEndpoint):
    """The tables of LangGraph's Postgres saver."""

    saver: PostgresSaver
    writes = "checkpoint_writes"

    def rows(self, statement: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a statement."""
        from psycopg import errors  # noqa: PLC0415

        with_marks: Any = statement.replace("?", "%s")
        try:
            with self.saver._cursor() as cursor:  # noqa: SLF001 - the saver has no public way to its connection.
                return [tuple(row.values()) for row in cursor.execute(with_marks, arguments)]
        except (errors.UndefinedTable, errors.UndefinedColumn) as error:
            raise CheckpointerConfigurationError(
                "the Postgres database lacks the tables of this release of LangGraph's saver"
                f" ({error.diag.message_primary}); name the database of the threads, and call setup() of its"
                " PostgresSaver once"
            ) from None

    def close(self) -> None:
        """Close the connections that `open_postgres` opened."""
        from psycopg_pool import ConnectionPool  # noqa: PLC0415

        if isinstance(self.saver.conn, ConnectionPool):
            self.saver.conn.close()


def open_postgres(connection_string: str, *, connections: int, as_target: bool) -> PostgresEndpoint:
    """Connect to a database. For a target, make its tables if they are missing.

    Raises:
        CheckpointerConfigurationError: There is no connection, or the string is invalid. It is never shown.
    """
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415
    from psycopg_pool import ConnectionPool  # noqa: PLC0415

    problem = connection_problem(connection_string, _CONNECT_SECONDS)
    if problem is not None:
        raise CheckpointerConfigurationError(f"the connection string {problem}")
    pool: Any = ConnectionPool(
        connection_string, kwargs=connection_options(), min_size=1, max_size=connections, open=True
    )
    endpoint = PostgresEndpoint(PostgresSaver(pool))
    if as_target:
        endpoint.saver.setup()
    return endpoint


class AmazonEndpoint(SaverEndpoint):
    """The table of langgraph-checkpoint-aws's saver, and its bucket if it has one."""

    saver: Any
    mover: Any
    knows_positions = True

    def keep_values(self) -> None:
        """Return and accept values with the objects in them as they are stored, from now on."""
        super().keep_values()
        # The saver passed its serializer on when it was made.
        self.mover.repo = copy.copy(self.saver.repo)
        self.mover.repo.serializer = copy.copy(self.saver.serializer)
        self.mover.repo.serializer.serde = self.mover.serde

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, by a scan of the table."""
        pages = self.saver.client.get_paginator("scan").paginate(
            TableName=self.saver.table_name,
            FilterExpression="begins_with(#pk, :prefix)",
            ProjectionExpression="#pk",
            ExpressionAttributeNames={"#pk": "PK"},
            ExpressionAttributeValues={":prefix": {"S": _CHECKPOINTS_PK}},
        )
        found = (item["PK"]["S"] for page in pages for item in page["Items"])
        return each_once(each.removeprefix(_CHECKPOINTS_PK) for each in found)

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        found = self._query(_CHECKPOINTS_PK + thread_id, "id", "ns")
        return sorted(Ref(item["id"]["S"], item["ns"]["S"]) for item in found)

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in the order in which the saver returns them."""
        pk = f"{_WRITES_PK}{thread_id}#{ref.namespace}#{ref.checkpoint_id}"
        return [
            (
                WritePosition(
                    item.get("task_path", {"S": ""})["S"], item["task_id"]["S"], int(item["idx"]["N"])
                ),
                item["channel"]["S"],
            )
            for item in self._query(pk, "task_path", "task_id", "idx", "channel")
        ]

    def _query(self, pk: str, *attributes: str) -> list[dict[str, Any]]:
        names = {f"#a{position}": name for position, name in enumerate(attributes)}
        pages = self.saver.client.get_paginator("query").paginate(
            TableName=self.saver.table_name,
            KeyConditionExpression="PK = :pk",
            ProjectionExpression=", ".join(names),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":pk": {"S": pk}},
        )
        return [item for page in pages for item in page["Items"]]


@contextmanager
def open_endpoint(endpoint: str, *, parallel: int = 1, as_target: bool = False) -> Iterator[SaverEndpoint]:
    """Open an endpoint by its name.

    Args:
        endpoint: One of `ENDPOINTS`.
        parallel: How many threads will be moved at a time.
        as_target: Whether to move threads to it, and so create missing tables.

    Yields:
        The endpoint. It is closed at the end if it was opened here.

    Raises:
        CheckpointerInputError: The endpoint is not one of `ENDPOINTS`.
        CheckpointerConfigurationError: The endpoint cannot be reached, has no checkpoints, or its package is not
            installed.
    """
    kind, rest = parse_endpoint(endpoint)
    with ExitStack() as stack:
        if kind not in _TYPES:
            yield endpoint_of(stack.enter_context(made_by_function(kind, rest, BaseCheckpointSaver)))
            return
        found: SaverEndpoint
        with reading(kind):
            if kind == "sqlite":
                # Both a path, and the address form that others write for it.
                found = open_sqlite(rest.removeprefix("//"), as_target=as_target)
            else:
                found = open_postgres(endpoint, connections=parallel, as_target=as_target)
        stack.callback(found.close)
        yield found


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Say what to install if the package that reads a kind of endpoint is missing.

    Raises:
        CheckpointerConfigurationError: It is.
    """
    try:
        yield
    except ImportError as error:
        install = TYPES[_TYPES[kind], "checkpointer"].install
        msg = f"{error}; install what reads such an endpoint: pip install {install}"
        raise CheckpointerConfigurationError(msg) from error


def parse_endpoint(endpoint: str) -> tuple[str, str]:
    """Split an endpoint at its first colon.

    Raises:
        CheckpointerInputError: It has none; the message lists the endpoints that there are.
    """
    kind, _, rest = endpoint.partition(":")
    if not rest:
        # It may be a connection string with a password, so it is not shown.
        raise CheckpointerInputError(f"this names no place of threads or memories; give one of\n{ENDPOINTS}")
    return kind, rest


@contextmanager
def made_by_function(module: str, function: str, kind: type[Any]) -> Iterator[Any]:
    """Yield the saver or store that a function of the caller's returns, or a context manager from it yields.

    Raises:
        CheckpointerConfigurationError: The function cannot be imported, fails, or returns something else.
    """
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        msg = f"{module}:{function} cannot be imported ({error}); give one of\n{ENDPOINTS}"
        raise CheckpointerConfigurationError(msg) from error
    finally:
        sys.path.remove("")
    try:
        made = found()
    except Exception as error:
        msg = f"{module}:{function}() failed: {type(error).__name__}: {error}"
        raise CheckpointerConfigurationError(msg) from error
    with ExitStack() as stack:
        if not isinstance(made, kind) and isinstance(made, AbstractContextManager):
            made = stack.enter_context(made)
        if not isinstance(made, kind) or type(made).__name__.startswith("Async"):
            msg = f"{module}:{function} returned a {type(made).__name__}; let it return a blocking {kind.__name__}"
            raise CheckpointerConfigurationError(msg)
        yield made


def endpoint_of(saver: BaseCheckpointSaver[Any]) -> SaverEndpoint:
    """Return the endpoint of a saver. Known savers have one that reads them best.

    Raises:
        CheckpointerConfigurationError: The saver can only be called on an event loop.
    """
    if isinstance(saver, DynamoDBSaver):
        return TableEndpoint(saver)
    name = type(saver).__name__
    if name.startswith("Async"):
        raise CheckpointerConfigurationError(f"{name} is an async saver; give its blocking counterpart")
    home = type(saver).__module__
    if home.startswith("langgraph.checkpoint.postgres") and name == "PostgresSaver":
        return PostgresEndpoint(saver)
    if home.startswith("langgraph.checkpoint.sqlite") and name == "SqliteSaver":
        return SqliteEndpoint(saver)
    if home.startswith("langgraph_checkpoint_aws.checkpoint.dynamodb"):
        return AmazonEndpoint(saver)
    return SaverEndpoint(saver)
