"""The type `postgres`: LangGraph's own savers and stores on a Postgres database."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr

from .stores import DistanceIndexOptions, StoreOptions
from .types import ComponentType, Made, OptionError, Options

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

# Errors of libpq may name these. Any other parameter may be a secret.
_SHOWN = ("host", "hostaddr", "port", "user", "dbname")


class PostgresOptions(Options):
    """The location of the database."""

    connection_string: SecretStr = Field(
        min_length=1,
        description="A connection string of Postgres, such as postgresql://user:password@host:5432/database. It is "
        "never shown; take it from the environment as ${DATABASE_URL}.",
    )


class PostgresStoreOptions(PostgresOptions, StoreOptions):
    """The location of the database, and the options of `PostgresStore`."""

    index: DistanceIndexOptions | None = Field(
        default=None,
        description="Lets the store embed texts and search by similarity. Takes `dims`, `embed`, `fields` and"
        " `distance_type` of LangGraph's `IndexConfig`.",
    )


# The packages below are an extra that not everybody installs. A saver or store uses one connection at a time. It comes
# from a pool, which replaces a broken one: otherwise a restart of the database would cut off the process for good.


def _saver(options: PostgresOptions) -> AbstractContextManager[PostgresSaver]:
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415

    return _on_pool(_checked(options), PostgresSaver)


def _async_saver(options: PostgresOptions) -> AbstractAsyncContextManager[AsyncPostgresSaver]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415

    return _on_async_pool(_checked(options), AsyncPostgresSaver)


def _store(options: PostgresStoreOptions) -> AbstractContextManager[PostgresStore]:
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415

    return _on_pool(_checked(options), partial(PostgresStore, **options.configs()))


def _async_store(options: PostgresStoreOptions) -> AbstractAsyncContextManager[AsyncPostgresStore]:
    from langgraph.store.postgres.aio import AsyncPostgresStore  # noqa: PLC0415

    return _on_async_pool(_checked(options), partial(AsyncPostgresStore, **options.configs()))


@contextmanager
def _on_pool(text: str, make: Callable[[Any], Made]) -> Iterator[Made]:
    from psycopg_pool import ConnectionPool  # noqa: PLC0415

    check = ConnectionPool.check_connection
    with ConnectionPool(text, kwargs=connection_options(), check=check, min_size=1, open=False) as pool:
        yield make(pool)


@asynccontextmanager
async def _on_async_pool(text: str, make: Callable[[Any], Made]) -> AsyncIterator[Made]:
    from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415

    check = AsyncConnectionPool.check_connection
    async with AsyncConnectionPool(
        text, kwargs=connection_options(), check=check, min_size=1, open=False
    ) as pool:
        yield make(pool)


def connection_options() -> dict[str, Any]:
    """Return the options of a connection that LangGraph's savers require."""
    from psycopg.rows import dict_row  # noqa: PLC0415

    return {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}


def _checked(options: PostgresOptions) -> str:
    text = options.connection_string.get_secret_value()
    problem = connection_problem(text)
    if problem is not None:
        raise OptionError("connection_string", problem)
    return text


def connection_problem(text: str, connect_seconds: int | None = None) -> str | None:
    """Connect once, and return why that fails, without values that may be secret.

    A pool would retry for half a minute, and not say what is wrong.
    """
    from psycopg import Connection, Error  # noqa: PLC0415

    if not is_connection_string(text):
        return (
            "is not a Postgres connection string; write postgresql://user:password@host:5432/database, and"
            " percent-encode special characters in the password"
        )
    try:
        Connection.connect(text, connect_timeout=connect_seconds).close()
    except Error as error:
        return f"names a database that cannot be reached: {without_values(text, error)}"
    return None


def is_connection_string(text: str) -> bool:
    """Tell whether libpq can use a text. If not, its own error would quote the text, with the password in it."""
    from psycopg import ProgrammingError  # noqa: PLC0415
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        found = conninfo_to_dict(text)
    except ProgrammingError:
        return False
    ports = str(found.get("port", "")).split(",")
    # A password with an "@" that is not percent-encoded ends at it, and its rest is read as a part of the host.
    return all(port.isdecimal() or not port for port in ports) and "@" not in str(found.get("host", ""))


def without_values(text: str, error: Exception) -> str:
    """Return the message of an error about a connection string without values that may be secret."""
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    says = str(error).strip()
    for name, value in conninfo_to_dict(text).items():
        # A password with a "/" that is not percent-encoded ends in the database's name, with an "@".
        if value and (name not in _SHOWN or "@" in str(value)):
            says = re.sub(rf"(?<!\w){re.escape(str(value))}(?!\w)", "...", says)
    return says


_INSTALL = 'langgraph-checkpoint-postgres "psycopg[binary]"'
CHECKPOINTER = ComponentType(PostgresOptions, _saver, _INSTALL, _async_saver)
STORE = ComponentType(PostgresStoreOptions, _store, _INSTALL, _async_store)
