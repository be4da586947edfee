"""A component of each type, from a configuration: ready, for sync and async code, and closed at the end."""

import sqlite3
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    DynamoDBSaver,
    create_cache,
    create_checkpointer,
    create_store,
)
from langgraph.checkpoint.dynamodb.config.backends import without_values
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.programs import ran
from tools.engine import Engine

# What is configured is the same for every engine: an address.
pytestmark = pytest.mark.engines("dynamodb-local")

THREAD: Any = {"configurable": {"thread_id": "thread-1"}}
ADA = ("memories", "ada")
Section = Mapping[str, Any]
CREATE: Any = {"checkpointer": create_checkpointer, "store": create_store, "cache": create_cache}
# What each type makes for blocking and for async code.
MADE: Mapping[tuple[str, str], tuple[type[Any], type[Any]]] = {
    ("checkpointer", "memory"): (InMemorySaver, InMemorySaver),
    ("checkpointer", "sqlite"): (SqliteSaver, AsyncSqliteSaver),
    ("checkpointer", "postgres"): (PostgresSaver, AsyncPostgresSaver),
    ("checkpointer", "dynamodb"): (DynamoDBSaver, DynamoDBSaver),
    ("store", "memory"): (InMemoryStore, InMemoryStore),
    ("store", "sqlite"): (SqliteStore, AsyncSqliteStore),
    ("store", "postgres"): (PostgresStore, AsyncPostgresStore),
    ("store", "dynamodb"): (DynamoDBStore, DynamoDBStore),
    ("cache", "memory"): (InMemoryCache, InMemoryCache),
    ("cache", "sqlite"): (SqliteCache, SqliteCache),
    ("cache", "dynamodb"): (DynamoDBCache, DynamoDBCache),
}


@pytest.fixture
def section(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Section:
    """Give what a file would say for the type of the test."""
    if name == "memory":
        return {"type": name}
    if name == "sqlite":
        return {"type": name, "config": {"db_file": str(tmp_path / "threads.db")}}
    if name == "postgres":
        return {"type": name, "config": {"connection_string": request.getfixturevalue("postgres_url")}}
    engine: Engine = request.getfixturevalue("engine")
    config = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
    return {"type": name, "config": {"table_name": request.getfixturevalue("table_name"), **config}}


# What reads something that is not there, for which all tables have to be.
READS: Mapping[str, tuple[Any, ...]] = {
    "checkpointer": ("get_tuple", THREAD),
    "store": ("get", ADA, "food"),
    "cache": ("get", [(ADA, "key")]),
}


@pytest.mark.parametrize(("component", "name"), MADE)
async def test_each_type_is_ready_for_blocking_and_for_async_code(
    engine: Engine, component: str, name: str, section: Section
) -> None:
    """That an agent goes on with each is in tests/examples/test_configured_examples.py."""
    method, *arguments = READS[component]
    with CREATE[component](section) as made:
        assert type(made) is MADE[component, name][0]
        assert not getattr(made, method)(*arguments)
    async with CREATE[component](section) as made:
        assert type(made) is MADE[component, name][1]
        assert not await getattr(made, f"a{method}")(*arguments)


def test_the_saver_is_closed_though_its_user_fails(tmp_path: Path) -> None:
    savers = []

    def use_and_fail() -> None:
        with create_checkpointer({"type": "sqlite", "config": {"db_file": str(tmp_path / "x.db")}}) as saver:
            savers.append(saver)
            raise ImportError

    # What its user raises is passed on as it is, though it be of a kind that opening would explain.
    with pytest.raises(ImportError):
        use_and_fail()
    (saver,) = savers
    assert isinstance(saver, SqliteSaver)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        saver.conn.execute("SELECT 1")


# What only opening can find out


@pytest.mark.parametrize(
    ("path", "says"),
    [("none/x.db", "the folder of the file does not exist"), ("", "SQLite cannot use the file")],
)
def test_a_database_that_cannot_be_opened_says_which_option(tmp_path: Path, path: str, says: str) -> None:
    section = {"type": "sqlite", "config": {"db_file": str(tmp_path / path)}}
    with (
        pytest.raises(CheckpointerConfigurationError, match=f"config.db_file: {says}"),
        create_checkpointer(section),
    ):
        pass


def test_sqlite_takes_the_home_folder_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for db_file in ("~/threads.db", ":memory:"):
        with create_checkpointer({"type": "sqlite", "config": {"db_file": db_file}}) as saver:
            assert saver.get_tuple(THREAD) is None
    assert [each.name for each in tmp_path.iterdir()] == ["threads.db"]


async def _errors(section: Section) -> list[CheckpointerConfigurationError]:
    """Return what is said when a checkpointer is opened for blocking and for async code."""
    errors = []
    with pytest.raises(CheckpointerConfigurationError) as caught, create_checkpointer(section):
        pass
    errors.append(caught.value)
    with pytest.raises(CheckpointerConfigurationError) as caught:
        async with create_checkpointer(section):
            pass
    return [*errors, caught.value]


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ada:pass@word:5x@host/threads",
        "postgresql://ada:pass@hunter2@127.0.0.1:1/threads",
        "ada hunter2",
        "postgresql://[ada",
    ],
)
async def test_a_connection_string_that_is_none_is_not_shown(text: str) -> None:
    for error in await _errors({"type": "postgres", "config": {"connection_string": text}}):
        assert str(error).startswith("config.connection_string: is not a ")
        assert "hunter2" not in str(error)
        for each in (error, error.__cause__):
            assert "word" not in str(each).replace("password", "")


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("", "127.0.0.1"),
        ("?sslmode=hunter2", "sslmode"),
        ("?sslmode=verify-full&sslrootcert=/hunter2", "127.0.0.1"),
        ("?connect_timeout=hunter2", "connect_timeout"),
        ("?target_session_attrs=hunter2", "target_session_attrs"),
    ],
)
async def test_an_error_of_postgres_repeats_no_value(parameters: str, named: str) -> None:
    text = f"postgresql://ada:hunter2@127.0.0.1:1/threads{parameters}"
    for error in await _errors({"type": "postgres", "config": {"connection_string": text}}):
        assert str(error).startswith("config.connection_string: names a database that cannot be reached: ")
        assert named in str(error)
        assert "hunter2" not in "".join(traceback.format_exception(error))


def test_what_may_be_a_part_of_a_password_is_not_shown() -> None:
    text = "postgresql://ada:12/hunter2@127.0.0.1:1/threads"
    error = ValueError('connection to "ada", port 12 failed: no database "hunter2@127.0.0.1:1/threads"')
    assert without_values(text, error) == 'connection to "ada", port 12 failed: no database "..."'


async def test_a_connection_to_postgres_that_broke_is_replaced(postgres_url: str) -> None:
    section = {"type": "postgres", "config": {"connection_string": postgres_url}}
    with create_checkpointer(section) as saver:
        assert saver.get_tuple(THREAD) is None
        _break_connections(postgres_url)
        assert saver.get_tuple(THREAD) is None
    async with create_checkpointer(section) as saver:
        assert await saver.aget_tuple(THREAD) is None
        _break_connections(postgres_url)
        assert await saver.aget_tuple(THREAD) is None


def _break_connections(url: str) -> None:
    """End all connections to a database but the one that does it, as a restarted server would."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        assert connection.execute(f"SELECT pg_terminate_backend(pid) {others}").fetchall()
        while connection.execute(f"SELECT 1 {others}").fetchall():
            pass


@pytest.mark.parametrize(
    ("name", "config", "packages"),
    [
        ("sqlite", {"db_file": ":memory:"}, "langgraph-checkpoint-sqlite"),
        (
            "postgres",
            {"connection_string": "postgresql:///a"},
            'langgraph-checkpoint-postgres "psycopg[binary]"',
        ),
    ],
)
async def test_a_package_that_is_missing_says_what_to_install(
    name: str, config: Section, packages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (name, f"{name}.aio"):
        monkeypatch.setitem(sys.modules, f"langgraph.checkpoint.{module}", None)
    for error in await _errors({"type": name, "config": config}):
        assert str(error).startswith(f"type: {name} needs what is not installed here (")
        assert str(error).endswith(f"pip install {packages}")


def test_at_module_level_it_is_closed_with_the_process(tmp_path: Path) -> None:
    program = """
import atexit, sqlite3, sys

def look():
    try:
        saver.conn.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        print("closed")

atexit.register(look)
from langgraph.checkpoint.dynamodb import open_checkpointer
saver = open_checkpointer({"type": "sqlite", "config": {"db_file": sys.argv[1]}})
print(saver.conn.execute("SELECT 'open'").fetchone()[0])
"""
    assert ran(sys.executable, "-c", program, tmp_path / "db").stdout.split() == ["open", "closed"]
