"""Lists: streams, and readers that are slow, gone or told of an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb._runtime.steps import Emit, Stream, Wait
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal
from langgraph.checkpoint.dynamodb.gateway.media import MSGPACK
from tests.gateway.conftest import MakeClient, Script, always
from tests.gateway.connections import connection

ACME = Principal("acme-agents", "acme")
BY_RUN = {"filter": {"run_id": "r"}}


def documents(answer: httpx.Response) -> list[Any]:
    """The documents of a stream, in either encoding."""
    if answer.headers["content-type"] == "application/x-ndjson":
        return [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == MSGPACK.stream_name
    found, rest = [], answer.content
    while rest:
        end = 4 + int.from_bytes(rest[:4], "big")
        found.append(MSGPACK.decode(rest[4:end]))
        rest = rest[end:]
    return found


@pytest.mark.parametrize("accept", ["application/json", MSGPACK.name, MSGPACK.stream_name])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_list_is_a_stream_of_documents(
    accept: str, encoding: str, make_client: MakeClient, script: Script
) -> None:
    script.listed = [{"thread_id": "acme/1", "body": bytes(each)} for each in (1, 100_000)] + [
        {"end": True, "more": False}
    ]
    headers = {"accept": accept, "accept-encoding": encoding}
    answer = await make_client().post("/checkpoints/list", json={"thread_id": "acme/1"}, headers=headers)
    assert answer.headers.get("content-encoding") == (None if encoding == "identity" else encoding)
    assert [each.get("thread_id") for each in documents(answer)] == ["acme/1", "acme/1", None]
    assert documents(answer)[-1] == {"end": True, "more": False}


async def test_an_empty_list_is_an_empty_stream(make_client: MakeClient) -> None:
    answer = await make_client().post("/checkpoints/list", json={"thread_id": "acme/1"})
    assert (answer.status_code, answer.content) == (200, b"")


# Errors


async def test_an_error_before_the_first_document_is_the_status(
    make_client: MakeClient, script: Script
) -> None:
    script.error = CheckpointNotFoundError("gone")
    answer = await make_client().post("/checkpoints/list", json={"thread_id": "acme/1"})
    assert (answer.status_code, answer.json()["detail"]) == (404, "gone")


@pytest.mark.parametrize("error", [CheckpointCorruptionError("damaged"), KeyError("a state")])
async def test_an_error_in_mid_stream_is_the_last_document(
    error: Exception, make_client: MakeClient, script: Script
) -> None:
    script.listed, script.error = [{"thread_id": "acme/1"}], error
    client = make_client()
    answer = await client.post(
        "/checkpoints/list", json={"thread_id": "acme/1"}, headers={"X-Request-Id": "mine"}
    )
    assert answer.status_code == 200
    first, last = documents(answer)
    assert first == {"thread_id": "acme/1"}
    assert last["problem"]["request_id"] == "mine"
    is_known = isinstance(error, CheckpointCorruptionError)
    assert last["problem"].get("detail") == ("damaged" if is_known else None)
    counted = (await client.get("/metrics")).text
    assert f'endpoint="checkpoints/list",error="{type(error).__name__}"}} 1' in counted


# Tenants


async def test_who_has_all_threads_sees_all_up_to_the_limit_of_the_operation(
    make_client: MakeClient, script: Script
) -> None:
    script.listed = [{"thread_id": "other/1"}]
    answer = await make_client(principal=Principal("one")).post(
        "/checkpoints/list", json={**BY_RUN, "limit": 2}
    )
    assert documents(answer) == [{"thread_id": "other/1"}]
    assert [each.limit for each in script.asked] == [2]


# Readers


# From this version on a server says that a reader has gone by an error of `send`, as uvicorn does not yet.
_ASGI = {"version": "3.0", "spec_version": "2.4"}


class Reader:
    """A server's side of one connection, by hand: each piece of the answer is taken when the reader likes."""

    def __init__(self, app: Starlette, request: Any) -> None:
        """Send a request, and take nothing yet."""
        self.pieces: list[bytes] = []
        self._taken = asyncio.Semaphore(0)
        self._body = json.dumps(request).encode()
        self._task = asyncio.create_task(self._run(app))
        self.failure: Exception | None = None

    async def _run(self, app: Starlette) -> None:
        headers = {"content-type": "application/json"}
        scope: Any = connection(headers, method="POST", path="/checkpoints/list", asgi=_ASGI).scope
        await app(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def _send(self, message: Any) -> None:
        if self.failure is not None:
            raise self.failure
        if message["type"] == "http.response.body":
            await self._taken.acquire()
            self.pieces.append(message["body"])

    def take(self) -> None:
        """Take one more piece."""
        self._taken.release()

    async def settle(self) -> None:
        """Let the service go on for as long as it can."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Wait until the service has done with the request."""
        await self._task


async def test_a_slow_reader_does_not_make_the_service_hold_the_thread(
    make_app: Callable[..., Starlette], script: Script
) -> None:
    script.listed = [{"thread_id": f"acme/{each}"} for each in range(100)]
    reader = Reader(make_app(), {"thread_id": "acme/1"})
    for taken in range(5):
        await reader.settle()
        assert script.made == taken + 1
        reader.take()
    for _ in range(200):
        reader.take()
    await reader.end()
    assert script.made == 100


async def test_a_reader_that_takes_nothing_is_not_waited_for(
    make_app: Callable[..., Starlette], script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.admission._STALL_SECONDS", 0.05)
    closed: list[bool] = []

    def listed(*_asked: Any) -> Stream[Any]:
        try:
            while True:
                yield Emit({"thread_id": "acme/1"})
        finally:
            closed.append(True)

    script.__dict__["_list"] = listed
    reader = Reader(make_app(), {"thread_id": "a"})
    await reader.end()
    await reader.settle()
    assert (reader.pieces, closed) == ([], [True])


@pytest.mark.parametrize(
    ("failure", "noted"),
    [(OSError(), (499, None)), (ZeroDivisionError(), (200, "ZeroDivisionError"))],
    ids=["gone", "broken"],
)
async def test_a_reader_that_has_gone_is_noted_and_ends_the_list(
    failure: Exception,
    noted: Any,
    make_app: Callable[..., Starlette],
    script: Script,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    script.listed = [{"thread_id": "acme/1"}] * 100
    reader = Reader(make_app(), {"thread_id": "acme/1"})
    reader.take()
    await reader.settle()
    reader.failure = failure
    reader.take()
    await reader.end()
    assert script.made < 5
    records = [each.msg for each in caplog.records if isinstance(each.msg, dict)]
    assert [(each["status"], each["error"]) for each in records] == [noted]


async def test_a_list_that_stands_still_ends_with_a_problem(
    make_app: Callable[..., Starlette], script: Script, client_of: Any
) -> None:
    def listed(*_asked: Any) -> Stream[Any]:
        yield Emit({"thread_id": "acme/1"})
        yield (Wait(Future(), 100.0),)

    script.__dict__["_list"] = listed
    client = client_of(make_app(authenticate=always(ACME), limits=Limits(request_seconds_max=0.05)))
    found = documents(await client.post("/checkpoints/list", json={"thread_id": "acme/1"}))
    assert found[-1]["problem"]["status"] == 504
