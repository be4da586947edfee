"""The objects that `langgraph.json` names, without the server: checkpointer and store of the environment."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

import langgraph.checkpoint.dynamodb as package
from langgraph.checkpoint.dynamodb import server
from langgraph.checkpoint.dynamodb.server import checkpointer

PREFIX = "LANGGRAPH_CHECKPOINTER_"
IN_MEMORY: dict[str, type] = {"checkpointer": InMemorySaver, "store": InMemoryStore}

every_component = pytest.mark.parametrize("name", IN_MEMORY)


@every_component
async def test_the_server_finds_it_by_the_last_dot_of_its_path(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = json.loads((Path(__file__).parent / "langgraph.json").read_text(encoding="utf-8"))
    module, _, name_there = configured[name]["path"].rpartition(".")
    assert module == package.__name__
    monkeypatch.setenv(f"LANGGRAPH_{name.upper()}_TYPE", "memory")
    # One for each event loop of the server.
    for _ in range(2):
        async with vars(package)[name_there]() as opened:
            assert isinstance(opened, IN_MEMORY[name])


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
