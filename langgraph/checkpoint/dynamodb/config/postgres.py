"""The type `postgres`: LangGraph's own savers on a Postgres database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import Field, SecretStr

from langgraph.checkpoint.dynamodb.config.types import CheckpointerType, OptionError, Options


class PostgresOptions(Options):
    """Where the database is, and how it is talked to."""

    connection_string: SecretStr = Field(
        min_length=1,
        description="A connection string of Postgres, such as postgresql://user:password@host:5432/database. It is "
        "never shown; take it from the environment as ${DATABASE_URL}.",
    )
    pipeline: bool = Field(
        default=False,
        description="Whether requests are sent without waiting for each answer, in pipeline mode.",
    )


@contextmanager
def _open(options: PostgresOptions) -> Iterator[BaseCheckpointSaver[Any]]:
    # The package is an extra of who uses it.
    from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415

    with PostgresSaver.from_conn_string(_usable(options), pipeline=options.pipeline) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def _aopen(options: PostgresOptions) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415

    async with AsyncPostgresSaver.from_conn_string(_usable(options), pipeline=options.pipeline) as saver:
        await saver.setup()
        yield saver


def _usable(options: PostgresOptions) -> str:
    """The connection string, unless libpq would quote it, with the password in it, in its own error."""
    from psycopg import ProgrammingError  # noqa: PLC0415
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    text = options.connection_string.get_secret_value()
    try:
        ports = str(conninfo_to_dict(text).get("port", ""))
    except ProgrammingError:
        ports = "none"
    if not all(port.isdecimal() or not port for port in ports.split(",")):
        says = "is no connection string of Postgres; write postgresql://user:password@host:5432/database, with what is "
        raise OptionError("connection_string", says + "special in a password percent-encoded") from None
    return text


TYPE = CheckpointerType(
    PostgresOptions, _open, _aopen, install='langgraph-checkpoint-postgres "psycopg[binary]"'
)
