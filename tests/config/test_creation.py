"""A checkpointer of each type, from a configuration: ready, for sync and async, and closed at the end."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import MessagesState

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    DynamoDBSaver,
    acreate_checkpointer,
    create_checkpointer,
    open_checkpointer,
)
from langgraph.checkpoint.dynamodb.config.postgres import without_values
from tools.engine import Engine

# What is configured is the same for every engine: an address.
pytestmark = pytest.mark.engines("dynamodb-local")

THREAD: Any = {"configurable": {"thread_id": "thread-1"}}
Section = Mapping[str, Any]


@pytest.fixture(params=["memory", "sqlite", "postgres", "dynamodb"])
def name(request: pytest.FixtureRequest) -> str:
    """Give the name of each type, for a section to be made of."""
    return str(request.param)


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


def _answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", f"message {len(state['messages']) + 1}")]}


def _builder() -> Any:
    return StateGraph(MessagesState).add_node("answer", _answer).add_edge(START, "answer")


def test_a_graph_remembers_with_each_type(engine: Engine, name: str, section: Section) -> None:
    kinds = {"memory": InMemorySaver, "sqlite": SqliteSaver, "postgres": PostgresSaver}
    with create_checkpointer(section) as saver:
        assert type(saver) is kinds.get(name, DynamoDBSaver)
        graph = _builder().compile(checkpointer=saver)
        for _ in range(2):
            state = graph.invoke({"messages": [("user", "Hello")]}, THREAD)
    assert state["messages"][-1].content == "message 4"


async def test_a_graph_remembers_with_each_type_async(engine: Engine, name: str, section: Section) -> None:
    kinds = {"memory": InMemorySaver, "sqlite": AsyncSqliteSaver, "postgres": AsyncPostgresSaver}
    async with acreate_checkpointer(section) as saver:
        assert type(saver) is kinds.get(name, DynamoDBSaver)
        graph = _builder().compile(checkpointer=saver)
        for _ in range(2):
            state = await graph.ainvoke({"messages": [("user", "Hello")]}, THREAD)
    assert state["messages"][-1].content == "message 4"


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


def test_a_database_without_a_folder_says_which_option(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(
        f'[tool.langgraph-dynamodb]\ntype = "sqlite"\nconfig = {{ db_file = "{tmp_path}/none/x.db" }}\n'
    )
    with (
        pytest.raises(
            CheckpointerConfigurationError,
            match=r"pyproject.toml, tool.langgraph-dynamodb.config.db_file: the folder .* does not exist",
        ),
        create_checkpointer(file),
    ):
        pass


def test_a_database_that_sqlite_cannot_open_says_which_option(tmp_path: Path) -> None:
    section = {"type": "sqlite", "config": {"db_file": str(tmp_path)}}
    with (
        pytest.raises(CheckpointerConfigurationError, match=r"config.db_file: SQLite cannot use the file"),
        create_checkpointer(section),
    ):
        pass


def test_sqlite_takes_the_home_folder_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for db_file in ("~/threads.db", ":memory:"):
        with create_checkpointer({"type": "sqlite", "config": {"db_file": db_file}}) as saver:
            assert saver.get_tuple(THREAD) is None
    assert [each.name for each in tmp_path.iterdir()] == ["threads.db"]


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
    section = {"type": "postgres", "config": {"connection_string": text}}
    for opened in (_enter(create_checkpointer(section)), _aenter(acreate_checkpointer(section))):
        with pytest.raises(
            CheckpointerConfigurationError, match=r"config.connection_string: is not a "
        ) as caught:
            await opened
        assert "hunter2" not in str(caught.value)
        assert "word" not in str(caught.value).replace("password", "")
        assert caught.value.__cause__ is not None
        assert "word" not in str(caught.value.__cause__).replace("password", "")


async def _enter(opened: Any) -> None:
    with opened:
        pass


async def _aenter(opened: Any) -> None:
    async with opened:
        pass


async def test_a_postgres_that_does_not_answer_says_so_without_the_password() -> None:
    text = "postgresql://ada:hunter2@127.0.0.1:1/threads"
    section = {"type": "postgres", "config": {"connection_string": text}}
    for opened in (_enter(create_checkpointer(section)), _aenter(acreate_checkpointer(section))):
        with pytest.raises(CheckpointerConfigurationError) as caught:
            await opened
        assert str(caught.value).startswith(
            "config.connection_string: names a database that cannot be reached: "
        )
        assert "127.0.0.1" in str(caught.value)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("?sslmode=hunter2", "sslmode"),
        ("?sslmode=verify-full&sslrootcert=/hunter2", "127.0.0.1"),
        ("?connect_timeout=hunter2", "connect_timeout"),
        ("?target_session_attrs=hunter2", "target_session_attrs"),
        ("?connect_timeout=2", "127.0.0.1"),
    ],
)
async def test_an_error_of_postgres_repeats_no_other_value(parameters: str, named: str) -> None:
    text = f"postgresql://ada:secret@127.0.0.1:1/threads{parameters}"
    section = {"type": "postgres", "config": {"connection_string": text}}
    for opened in (_enter(create_checkpointer(section)), _aenter(acreate_checkpointer(section))):
        with pytest.raises(CheckpointerConfigurationError) as caught:
            await opened
        assert named in str(caught.value)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))


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
    async with acreate_checkpointer(section) as saver:
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
    ("section", "module", "install"),
    [
        (
            {"type": "sqlite", "config": {"db_file": ":memory:"}},
            "langgraph.checkpoint.sqlite",
            "pip install langgraph-checkpoint-sqlite",
        ),
        (
            {"type": "postgres", "config": {"connection_string": "postgresql://localhost/threads"}},
            "langgraph.checkpoint.postgres",
            'pip install langgraph-checkpoint-postgres "psycopg[binary]"',
        ),
    ],
    ids=["sqlite", "postgres"],
)
async def test_a_package_that_is_missing_says_what_to_install(
    section: Section, module: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (module, f"{module}.aio"):
        monkeypatch.setitem(sys.modules, name, None)
    for opened in (_enter(create_checkpointer(section)), _aenter(acreate_checkpointer(section))):
        with pytest.raises(CheckpointerConfigurationError) as caught:
            await opened
        assert str(caught.value).startswith(f"type: {section['type']} needs what is not installed here (")
        assert str(caught.value).endswith(install)


# Without `with`


def test_one_line_is_enough_at_module_level() -> None:
    graph = _builder().compile(checkpointer=open_checkpointer({"type": "memory"}))
    graph.invoke({"messages": []}, THREAD)
    assert graph.get_state(THREAD).values["messages"]


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
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program, str(tmp_path / "db")], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["open", "closed"]
