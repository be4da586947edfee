"""The requests that our own clients make of a gateway, so that what they store is stored."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import pytest

from langgraph.checkpoint.dynamodb.gateway.bodies import announced_bytes, decompressed
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from tests.support.calls import CALLS, OF_TENANTS, called
from tests.support.checkpoints import Conversation, noise

T = TypeVar("T", HttpCheckpointSaver, HttpStore, HttpCache[Any])


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


@asynccontextmanager
async def connecting(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[T], T]]:
    """Give what lets one of our clients reach a gateway without a network; they are closed after the block."""
    clients: list[Any] = []

    def connect(client: T) -> T:
        transport: Any = client.transport
        monkeypatch.setattr(transport, "_client_options", {"transport": recorded})
        clients.append(client)
        return client

    yield connect
    for each in clients:
        await each.aclose()


async def converse(make_agent: Callable[[], HttpCheckpointSaver]) -> None:
    """Let a tenant make every call of its saver, and store large values, deltas and writes."""
    await call_all(make_agent(), "checkpointer")
    agent = make_agent()
    talk = Conversation(agent, "acme/1", "child:1")
    for step in range(3):
        config = await talk.aput(log=noise(30_000 + 3000 * step), step=step)
        await agent.aput_writes(config, [("log", noise(3000, step)), ("__error__", "x")], "task")
        await agent.aput_writes(config, [("__resume__", "y")], "task")
    # What remembers nothing reads all values.
    assert await make_agent().aget_tuple(talk.config) is not None


async def call_all(made: Any, component: str) -> None:
    """Make every call that a tenant may make."""
    for name, row in CALLS[component].items():
        if row.kind in OF_TENANTS:
            await called(made, component, name, is_async=True)
