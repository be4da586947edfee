"""What `langgraph.json` names, without the server: the checkpointer of the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import langgraph.checkpoint.dynamodb as package
from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.server import checkpointer

PREFIX = "LANGGRAPH_CHECKPOINTER_"


async def test_it_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}TYPE", "memory")
    async with checkpointer() as saver:
        assert isinstance(saver, InMemorySaver)
    monkeypatch.setenv(f"{PREFIX}TYPE", "dynamodb")
    monkeypatch.setenv(f"{PREFIX}CONFIG__TABLE_NAME", "threads")
    async with checkpointer() as saver:
        assert isinstance(saver, DynamoDBSaver)


async def test_the_server_finds_it_by_the_last_dot_of_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = json.loads((Path(__file__).parent / "langgraph.json").read_text(encoding="utf-8"))
    module, _, name = configured["checkpointer"]["path"].rpartition(".")
    assert module == package.__name__
    monkeypatch.setenv(f"{PREFIX}TYPE", "memory")
    async with vars(package)[name]() as saver:
        assert isinstance(saver, InMemorySaver)


async def test_a_server_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}ENABLED", "false")
    with pytest.raises(
        CheckpointerConfigurationError, match="ENABLED is false, and the Agent Server needs a"
    ):
        async with checkpointer():
            pass
