"""docs/web-service.md: its service streams, refuses a second run, takes an approval, and survives who hangs up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from tests.examples.test_chat import served
from tests.support.documents import blocks, read
from tests.support.forks import exit_statuses, fork, forking

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

(SERVICE,) = blocks(read("docs/web-service.md"), "python")
TABLE = "langgraph-checkpoints"
ADA = {"user": "ada"}
THREAD: Any = {"configurable": {"thread_id": "ada/trip", "user_id": "ada"}}


class Gate:
    """What a node waits for, so that a test decides when it goes on."""

    def __init__(self) -> None:
        """Begin closed."""
        self.reached, self.opened = asyncio.Event(), asyncio.Event()


async def greet(state: MessagesState) -> MessagesState:
    return {"messages": [AIMessage("One moment. ")]}


@pytest.fixture
def service(
    engine: Engine, client: DynamoDBClient, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """Give the names of the page's program, with an agent whose second node waits or asks."""
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint_url)
    gate = Gate()

    async def answer(state: MessagesState) -> MessagesState:
        text = str(state["messages"][-2].content)
        if text == "wait":
            gate.reached.set()
            await gate.opened.wait()
        if text == "book":
            text = str(interrupt("Shall I?"))
        return {"messages": [AIMessage(f"You said {text}.")]}

    builder = StateGraph(MessagesState).add_node(greet).add_node(answer)
    builder.add_edge(START, "greet").add_edge("greet", "answer")
    names: dict[str, Any] = {"builder": builder, "gate": gate}
    exec(compile(SERVICE, "web-service.md", "exec"), names)  # noqa: S102  # Our own document's program.
    names["saver"].setup()
    yield names
    client.delete_table(TableName=TABLE)


@contextlib.asynccontextmanager
async def browser(service: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the app, and give a client of it."""
    async with served(service["app"]) as address, httpx.AsyncClient(base_url=address, timeout=60) as http:
        yield http


async def test_it_streams_and_takes_an_approval(service: dict[str, Any]) -> None:
    async with browser(service) as http:
        said = await http.post("/chats/trip", json="Hello", headers=ADA)
        assert said.text == "One moment. You said Hello."
        await http.post("/chats/trip", json="book", headers=ADA)
        waiting = service["saver"].threads(owner="ada", status="waiting").threads
        assert [each.thread_id for each in waiting] == ["ada/trip"]
        approved = await http.post("/approvals/trip", json="yes", headers=ADA)
        assert approved.json() == "You said yes."
        newest = await service["saver"].aget_tuple(THREAD)
        assert newest.metadata["user_id"] == "ada"


async def test_a_second_run_of_a_thread_gets_409_until_the_first_stream_ends(service: dict[str, Any]) -> None:
    async with browser(service) as http:
        first = asyncio.create_task(http.post("/chats/trip", json="wait", headers=ADA))
        await service["gate"].reached.wait()
        second = await http.post("/chats/trip", json="Hello", headers=ADA)
        assert second.status_code == 409
        assert "is held by another runner" in second.json()["detail"]
        service["gate"].opened.set()
        assert (await first).text == "One moment. You said wait."
        assert (await http.post("/chats/trip", json="Hello", headers=ADA)).status_code == 200


async def test_a_client_that_hangs_up_ends_its_run_and_the_thread_goes_on_from_its_last_step(
    service: dict[str, Any],
) -> None:
    async with browser(service) as http:
        async with http.stream("POST", "/chats/trip", json="wait", headers=ADA) as response:
            parts = response.aiter_text()
            assert await anext(parts) == "One moment. "
            await service["gate"].reached.wait()
        # The lock is free again once the service has noticed.
        async with service["saver"].athread_lock("ada/trip", wait=30):
            stopped = await service["graph"].aget_state(THREAD)
            assert stopped.next == ("answer",)
            assert [each.content for each in stopped.values["messages"]] == ["wait", "One moment. "]
            service["gate"].opened.set()
            state = await service["graph"].ainvoke(None, THREAD)
            assert state["messages"][-1].content == "You said wait."


@forking
def test_workers_forked_from_a_process_that_used_the_saver_serve_its_threads(service: dict[str, Any]) -> None:
    """`gunicorn --preload` forks its workers like this, after it has loaded the program."""
    asyncio.run(service["graph"].ainvoke({"messages": [("user", "Hello")]}, THREAD))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(service["app"], log_level="error"))
        children = [fork(lambda: server.run(sockets=[listening])) for _ in range(2)]
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/chats/trip"
        try:
            # A connection each, so that either child may answer.
            said = [
                httpx.post(address, json=text, headers=ADA, timeout=60) for text in ("one", "two", "three")
            ]
        finally:
            for child in children:
                os.kill(child, signal.SIGTERM)
    assert exit_statuses(children) == {-signal.SIGTERM}
    assert [each.text for each in said] == [
        f"One moment. You said {each}." for each in ("one", "two", "three")
    ]
    stored = service["graph"].get_state(THREAD).values["messages"]
    assert [each.content for each in stored if each.type == "human"] == ["Hello", "one", "two", "three"]
