"""What `langgraph.json` names, without the server: the checkpointer of the environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

import langgraph.checkpoint.dynamodb as package
from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver, server
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


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give an empty module in the place of the server's, whose own tests are beside this file."""
    monkeypatch.setenv(f"{PREFIX}TYPE", "memory")
    module = ModuleType("adapters")
    monkeypatch.setitem(sys.modules, server._ADAPTER_MODULE, module)  # noqa: SLF001
    return module


async def test_an_adapter_with_methods_of_its_own_keeps_them(adapters: ModuleType) -> None:
    class Adapter(BaseCheckpointSaver[Any]):
        async def aget_delta_channel_history(self, *, config: Any, channels: Any) -> Any:
            del config, channels

    setattr(adapters, server._ADAPTER, Adapter)  # noqa: SLF001
    own = Adapter.aget_delta_channel_history
    async with checkpointer():
        assert Adapter.aget_delta_channel_history is own
        assert Adapter.get_delta_channel_history is not BaseCheckpointSaver.get_delta_channel_history


@pytest.mark.usefixtures("adapters")
async def test_a_server_whose_adapter_is_not_known_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async with checkpointer():
        assert "may read delta channels slowly, and give no error" in caplog.text
