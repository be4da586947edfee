"""The requests that our own clients make of a gateway, so that what they store is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import ormsgpack
import pytest

from langgraph.checkpoint.dynamodb.gateway.bodies import decompressed
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.checkpoint.dynamodb.http.connections import Connections
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS
from langgraph.store.dynamodb import erase
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
            name = request.url.path.rpartition("/")[2]
            content = request.content
            if request.headers.get("content-encoding") == "zstd":
                content = decompressed(content, "zstd", 1 << 30)
            self.documents.setdefault(name, []).append(ormsgpack.unpackb(content))
        return await super().handle_async_request(request)


@asynccontextmanager
async def connecting(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[T], T]]:
    """Give what lets one of our clients reach a gateway without a network; they are closed after the block."""
    clients: list[Any] = []

    def connect(client: T) -> T:
        transport: Any = client.transport
        authorization = transport._authorization  # noqa: SLF001 - there is no network between the two.
        connections = Connections(TIMEOUT_SECONDS, {"transport": recorded}, authorization)
        monkeypatch.setattr(transport, "_connections", connections)
        clients.append(client)
        return client

    yield connect
    for each in clients:
        await each.aclose()


async def converse(make_agent: Callable[[], HttpCheckpointSaver]) -> None:
    """Let every method of a saver be called, with large values, deltas and writes."""
    agent = make_agent()
    talk = Conversation(agent, "acme/1", "child:1")
    for step in range(3):
        config = await talk.aput(log=noise(30_000 + 3000 * step), step=step)
        await agent.aput_writes(config, [("log", noise(3000, step)), ("__error__", "x")], "task")
        await agent.aput_writes(config, [("__resume__", "y")], "task")
    assert [each async for each in agent.alist({"configurable": {"thread_id": "acme/1"}})]
    # What remembers nothing reads all values.
    assert await make_agent().aget_tuple(talk.config) is not None
    await agent.aget_delta_channel_history(config=talk.config, channels=["log"])
    await agent.aset_thread("acme/1", owner="acme/ada", title="Trains")
    await agent.aset_thread("acme/1", title="Planes")
    assert len((await agent.athreads(owner="acme/ada", with_status=True)).threads) == 1
    assert await agent.aruns("acme/1") == []
    await agent.aprune(["acme/1"])
    await agent.acopy_thread("acme/1", "acme/2")
    await agent.adelete_thread("acme/2")


async def remember(memories: HttpStore, nodes: HttpCache[Any], *labels: str) -> None:
    """Let every kind of request of a store and of a cache be made, with segments, under some labels."""
    await memories.aput((*labels, "notes"), "large", {"x": noise(150_000).hex()})
    await memories.aput((*labels, "notes"), "k", {"n": 1}, ttl=60)
    await memories.aput((*labels, "notes"), "k", {"n": 2})
    assert await memories.aget((*labels, "notes"), "large") is not None
    assert len(await memories.asearch(labels, filter={"n": 2})) == 1
    assert (*labels, "notes") in await memories.alist_namespaces(prefix=(*labels, "notes"))
    assert await memories.adelete_namespace((*labels, "notes")) == 2
    await memories.aput((*labels, "notes"), "old", {})
    with pytest.MonkeyPatch.context() as patch:
        # As an hour later: what is so old leaves no tombstone.
        patch.setattr(erase, "TOMBSTONE_SECONDS", -1)
        assert await memories.adelete_namespace((*labels, "notes")) == 1
    await memories.aput((*labels, "notes"), "again", {})
    await nodes.aset({(("node",), "k"): ("v", 60)})
    assert await nodes.aget([(("node",), "k")]) == {(("node",), "k"): "v"}
    await nodes.aclear()
    assert await nodes.aget([(("node",), "k")]) == {}
