"""The types `memory`, `sqlite` and `postgres`: LangGraph's own savers, stores and caches."""

import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pydantic import Field, SecretStr

from . import fields

_IN_MEMORY = ":memory:"
# Errors of libpq may name these. Any other parameter may be a secret.
_SHOWN = ("host", "hostaddr", "port", "user", "dbname")


class MemoryOptions(fields.Options):
    """No options. What is in memory ends with the process."""


class MemoryStoreOptions(fields.IndexedOptions):
    """The option of `InMemoryStore`."""


class SqliteOptions(fields.Options):
    """The location of the database, which is for one process."""

    db_file: str = Field(
        min_length=1,
        description='The path of the database\'s file, which is created if it is missing, or ":memory:".',
    )


class SqliteStoreOptions(SqliteOptions, fields.StoreOptions):
    """The location of the database, and the options of `SqliteStore`."""


class PostgresOptions(fields.Options):
    """The location of the database."""

    connection_string: SecretStr = Field(
        min_length=1,
        description="A connection string of Postgres, such as postgresql://user:password@host:5432/database. It is "
        "never shown; take it from the environment as ${DATABASE_URL}.",
    )


class PostgresStoreOptions(PostgresOptions, fields.StoreOptions):
    """The location of the database, and the options of `PostgresStore`."""

    index: fields.DistanceIndexOptions | None = Field(
        default=None,
        description="Lets the store embed texts and search by similarity. Takes `dims`, `embed`, `fields` and"
        " `distance_type` of LangGraph's `IndexConfig`.",
    )


# Each of these returns what makes an object of a class from its options. The class is named, and imported when one is
# made: its package may not be installed.


def _memory(name: str) -> Callable[[fields.Options], Any]:
    return lambda options: nullcontext(resolve_name(name)(**options.configs()))


def _sqlite(name: str) -> Callable[[SqliteOptions], Any]:
    def make(options: SqliteOptions) -> Any:
        made = resolve_name(name)
        if name.endswith("Cache"):
            return nullcontext(made(path=_usable(options.db_file)))
        return made.from_conn_string(_usable(options.db_file), **options.configs())

    return make


def _usable(db_file: str) -> str:
    """Return the path for SQLite, after a check: SQLite itself would not say what is wrong with it."""
    if db_file == _IN_MEMORY:
        return db_file
    path = Path(db_file).expanduser()
    if not path.parent.is_dir():
        raise fields.OptionError(
            "db_file", "the folder of the file does not exist; create it, or give another path"
        )
    try:
        sqlite3.connect(path).close()
    except sqlite3.OperationalError as error:
        raise fields.OptionError("db_file", f"SQLite cannot use the file: {error}") from None
    return str(path)


def _postgres(name: str) -> Callable[[PostgresOptions], Any]:
    # A saver or store uses one connection at a time. It comes from a pool, which replaces a broken one: otherwise a
    # restart of the database would cut off the process for good.
    def make(options: PostgresOptions) -> Any:
        made = partial(resolve_name(name), **options.configs())
        return (_on_async_pool if ":Async" in name else _on_pool)(_checked(options), made)

    return make


@contextmanager
def _on_pool(text: str, make: Callable[[Any], fields.Made]) -> Iterator[fields.Made]:
    from psycopg_pool import ConnectionPool  # noqa: PLC0415

    check = ConnectionPool.check_connection
    with ConnectionPool(text, kwargs=connection_options(), check=check, min_size=1, open=False) as pool:
        yield make(pool)


@asynccontextmanager
async def _on_async_pool(text: str, make: Callable[[Any], fields.Made]) -> AsyncIterator[fields.Made]:
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
        raise fields.OptionError("connection_string", problem)
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


_INSTALL: Mapping[Callable[[str], Any], str] = {
    _memory: "langgraph-checkpoint numpy",
    _sqlite: "langgraph-checkpoint-sqlite",
    _postgres: 'langgraph-checkpoint-postgres "psycopg[binary]"',
}


def _type(
    options: type[fields.Options], make: Callable[[str], Any], name: str, *, has_async: bool = False
) -> fields.ComponentType:
    module, _, kind = name.partition(":")
    amake = make(f"{module}.aio:Async{kind}") if has_async else None
    return fields.ComponentType(options, make(name), _INSTALL[make], amake)


_SAVERS, _STORES, _CACHES = "langgraph.checkpoint", "langgraph.store", "langgraph.cache"
TYPES = {
    ("memory", "checkpointer"): _type(MemoryOptions, _memory, f"{_SAVERS}.memory:InMemorySaver"),
    ("memory", "store"): _type(MemoryStoreOptions, _memory, f"{_STORES}.memory:InMemoryStore"),
    ("memory", "cache"): _type(MemoryOptions, _memory, f"{_CACHES}.memory:InMemoryCache"),
    ("sqlite", "checkpointer"): _type(
        SqliteOptions, _sqlite, f"{_SAVERS}.sqlite:SqliteSaver", has_async=True
    ),
    ("sqlite", "store"): _type(SqliteStoreOptions, _sqlite, f"{_STORES}.sqlite:SqliteStore", has_async=True),
    ("sqlite", "cache"): _type(SqliteOptions, _sqlite, f"{_CACHES}.sqlite:SqliteCache"),
    ("postgres", "checkpointer"): _type(
        PostgresOptions, _postgres, f"{_SAVERS}.postgres:PostgresSaver", has_async=True
    ),
    ("postgres", "store"): _type(
        PostgresStoreOptions, _postgres, f"{_STORES}.postgres:PostgresStore", has_async=True
    ),
}
