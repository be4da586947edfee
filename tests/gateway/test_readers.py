"""Readers of answers that are slow or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb.gateway.thread_calls import Page
from tests.gateway.conftest import MakeApp, Script
from tests.gateway.connections import connection

# From this version on a server says that a reader has gone by an error of `send`, as uvicorn does not yet.
ASGI = {"version": "3.0", "spec_version": "2.4"}


REQUEST = {"type": "http.request", "body": b'{"thread_id": "acme/1"}', "more_body": False}


async def read(app: Starlette, send: Callable[[Any], Any], request: dict[str, Any] = REQUEST) -> None:
    """Send a request, and take its answer as `send` does."""

    async def receive() -> dict[str, Any]:
        return request

    headers = {"content-type": "application/json", "content-length": "23"}
    scope: Any = connection(headers, method="POST", path="/checkpoints/get-tuple", asgi=ASGI).scope
    await app(scope, receive, send)


async def test_a_reader_that_takes_nothing_is_not_waited_for(
    make_app: MakeApp, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.bodies._STALL_SECONDS", 0.05)
    taken: list[Any] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()
            taken.append(message)

    await read(make_app(), send)
    # So is one of a problem.
    await read(make_app(principal=None), send)
    assert (len(script.asked), taken) == (1, [])


@pytest.mark.parametrize("at", ["the request", "the answer"])
async def test_a_client_that_goes_away_is_noted(
    at: str, make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    is_request = at == "the request"

    async def send(_message: Any) -> None:
        raise ZeroDivisionError

    await read(make_app(), send, {"type": "http.disconnect"} if is_request else REQUEST)
    records = [each.msg for each in caplog.records if isinstance(each.msg, dict)]
    noted = [(each["status"], each["error"]) for each in records]
    assert noted == [(499, None) if is_request else (200, "ZeroDivisionError")]


async def test_what_was_wrong_with_one_thread_of_a_list_is_in_the_page_and_in_the_metrics(
    make_client: Any, script: Script
) -> None:
    script.answer = lambda it: Page([], None, it.note(CheckpointCorruptionError("damaged")))
    client = make_client()
    answer = await client.post(
        "/checkpoints/list", json={"thread_id": "acme/1"}, headers={"X-Request-Id": "mine"}
    )
    problem = answer.json()["problem"]
    assert (answer.status_code, problem["request_id"], problem["detail"]) == (200, "mine", "damaged")
    counted = (await client.get("/metrics")).text
    assert 'endpoint="checkpoints/list",error="CheckpointCorruptionError"} 1' in counted
