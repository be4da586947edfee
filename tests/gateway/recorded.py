"""The requests that our own clients make of a gateway, so that what they store is stored."""

import json
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb.gateway.bodies import announced_bytes, decompressed
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from tests.support.calls import CALLS, OF_TENANTS, TENANT, called
from tests.support.checkpoints import Conversation, noise

URL = "http://localhost"


class Recorded(httpx.ASGITransport):
    """Takes requests to a gateway, and keeps their documents by endpoint."""

    def __init__(self, gateway: Any) -> None:
        """Keep nothing yet."""
        super().__init__(app=gateway)
        self.documents: dict[str, list[Any]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Keep one, and send it."""
        if request.method == "POST":
            name = request.url.path[1:].removeprefix("checkpoints/")
            content = request.content
            if request.headers.get("content-encoding") == "zstd":
                content = decompressed(content, "zstd", announced_bytes(content, "zstd"))
            self.documents.setdefault(name, []).append(json.loads(content))
        return await super().handle_async_request(request)


async def record(gateway: Any, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Let a tenant make every call that it may make, and store large values, deltas and writes."""
    recorded, clients = Recorded(gateway), list[Any]()

    def connect(client: Any) -> Any:
        monkeypatch.setattr(client.transport, "_client_options", {"transport": recorded})
        clients.append(client)
        return client

    store, cache = connect(HttpStore(URL)), connect(HttpCache(URL, prefix=(TENANT,)))
    first, agent, last = (connect(HttpCheckpointSaver(URL)) for _ in range(3))
    for component, made in (("checkpointer", first), ("store", store), ("cache", cache)):
        for name, row in CALLS[component].items():
            if row.kind in OF_TENANTS:
                await called(made, component, name, is_async=True)
    talk = Conversation(agent, f"{TENANT}/1", "child:1")
    for step in range(3):
        config = await talk.aput(log=noise(30_000 + 3000 * step), step=step)
        await agent.aput_writes(config, [("log", noise(3000, step)), ("__error__", "x")], "task")
        await agent.aput_writes(config, [("__resume__", "y")], "task")
    # What remembers nothing reads all values.
    assert await last.aget_tuple(talk.config) is not None
    for each in clients:
        await each.aclose()
    return recorded
