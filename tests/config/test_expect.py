"""`expect`: a program gets the class that it needs, or an error that names the key to change."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    DynamoDBSaver,
    create_cache,
    create_checkpointer,
    create_store,
    open_cache,
    open_checkpointer,
    open_store,
)
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from langgraph.store.dynamodb import DynamoDBStore

MEMORY = {"type": "memory"}
TABLE = {"type": "dynamodb", "config": {"table_name": "threads", "region_name": "us-east-1"}}


def _entered(create: Callable[..., Any]) -> Callable[..., Any]:
    def enter(source: object, expect: type[Any]) -> Any:
        with create(source, expect=expect) as made:
            return made

    return enter


def _awaited(source: Any, expect: type[Any]) -> Any:
    async def enter() -> Any:
        async with create_checkpointer(source, expect=expect) as made:
            return made

    return asyncio.run(enter())


MAKERS: Mapping[str, tuple[Callable[..., Any], type[Any], type[Any]]] = {
    "create_checkpointer": (_entered(create_checkpointer), DynamoDBSaver, InMemorySaver),
    "async": (_awaited, DynamoDBSaver, InMemorySaver),
    "open_checkpointer": (open_checkpointer, DynamoDBSaver, InMemorySaver),
    "create_store": (_entered(create_store), DynamoDBStore, InMemoryStore),
    "open_store": (open_store, DynamoDBStore, InMemoryStore),
    "create_cache": (_entered(create_cache), DynamoDBCache, InMemoryCache),
    "open_cache": (open_cache, DynamoDBCache, InMemoryCache),
}


@pytest.mark.parametrize(("make", "ours", "of_memory"), MAKERS.values(), ids=MAKERS)
def test_a_program_gets_what_it_needs_or_an_error(
    make: Callable[..., Any], ours: type[Any], of_memory: type[Any]
) -> None:
    assert type(make(TABLE, expect=ours)) is ours
    assert type(make(MEMORY, expect=of_memory)) is of_memory
    with pytest.raises(CheckpointerConfigurationError) as caught:
        make(MEMORY, expect=ours)
    assert str(caught.value) == (
        f"type: memory makes {of_memory.__name__}, and this program needs {ours.__name__}; name another type"
    )


def test_the_error_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("checkpointer:\n  type: memory\n")
    with pytest.raises(
        CheckpointerConfigurationError, match=r"agent.yaml, line 2, checkpointer.type: memory makes In"
    ):
        open_checkpointer(file, expect=DynamoDBSaver)


def test_what_is_refused_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a file that the program does not use would stay open until the process ends."""
    made: list[SqliteSaver] = []

    def keep(saver: SqliteSaver) -> None:
        made.append(saver)

    monkeypatch.setattr(SqliteSaver, "setup", keep)
    section = {"type": "sqlite", "config": {"db_file": str(tmp_path / "threads.db")}}
    with pytest.raises(CheckpointerConfigurationError), create_checkpointer(section, expect=DynamoDBSaver):
        pass
    (saver,) = made
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        saver.conn.execute("SELECT 1")


def test_type_checkers_know_the_methods() -> None:
    """Without `expect`, mypy would refuse this test."""
    saver = open_checkpointer(TABLE, expect=DynamoDBSaver)
    remote = {"type": "http", "config": {"url": "http://127.0.0.1:1"}}
    with create_checkpointer(remote, expect=HttpCheckpointSaver) as client:
        assert callable(client.threads)
    assert callable(saver.thread_lock)
    assert callable(open_store(TABLE, expect=DynamoDBStore).put_if)
