"""The example of a service for many tenants, on an engine, for several of them at once."""

import asyncio
import importlib
import sys
from typing import Any

import httpx
import pytest

from tests.support.checkpoints import all_items
from tools.engine import Engine


@pytest.mark.engines("dynamodb-local")
async def test_tenants_are_served_at_once_and_apart(
    engine: Engine, client: Any, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**engine.environment(), "CHECKPOINT_TABLE": table_name}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "examples.tenants_service", raising=False)
    service: Any = importlib.import_module("examples.tenants_service")
    transport = httpx.ASGITransport(app=service.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as asking:

        async def say(tenant: str) -> str:
            answer = await asking.post("/threads/1", params={"text": "hello"}, headers={"tenant": tenant})
            assert answer.status_code == 200
            return str(answer.json())

        tenants = [f"tenant{number}" for number in range(5)]
        for count in (1, 2):
            answers = await asyncio.gather(*map(say, tenants))
            assert answers == [f"You have said {count} things."] * len(tenants)
    await service.saver.aclose()
    found = {each["PK"]["S"] for each in all_items(client, table_name)}
    assert found == {f"{tenant}/1#" for tenant in tenants}
