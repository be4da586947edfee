"""Slow senders and readers keep nobody out, and nobody is waited for for ever: neither they, nor a table."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb._format.wire import DEADLINE_HEADER
from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, bodies
from langgraph.checkpoint.dynamodb.gateway.limits import Shares
from langgraph.checkpoint.dynamodb.gateway.thread_calls import Page
from tests.gateway.conftest import MakeApp, MakeClient, Script, connection, found_bytes

# Much longer than anything here takes, and shorter than a slow request may be slow.
WITHIN_SECONDS = 20
BODY = b'{"thread_id": "acme/1"}'


async def test_bodies_for_which_there_is_no_room_are_refused_before_they_come(
    make_client: MakeClient,
) -> None:
    client = make_client(
        principal=Principal("a", "a"), limits=Limits(body_bytes_max=64 << 20, decompressed_bytes_max=1 << 20)
    )
    go_on = asyncio.Event()

    async def pieces() -> Any:
        yield b"{"
        await go_on.wait()

    headers = {"content-type": "application/json", "content-length": f"{48 << 20}"}
    posts = [
        asyncio.create_task(client.post("/checkpoints/list", content=pieces(), headers=headers))
        for _ in range(5)
    ]
    done, _ = await asyncio.wait(posts, timeout=WITHIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    assert {each.result().status_code for each in done} == {503}
    go_on.set()
    assert sorted([each.status_code for each in await asyncio.gather(*posts)]) == [400, 503, 503, 503, 503]


async def test_an_answer_larger_than_all_is_sent_when_nobody_else_is_sent_one(
    make_client: MakeClient, script: Script
) -> None:
    script.answer = found_bytes(bytes(50 << 20))
    client = make_client(limits=Limits(body_bytes_max=1000, decompressed_bytes_max=1000))
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    posts = [client.post("/checkpoints/get-tuple", content=BODY, headers=headers) for _ in range(3)]
    assert {each.status_code for each in await asyncio.gather(*posts)} == {200}


async def test_a_larger_body_may_take_longer_to_arrive_or_to_be_read(
    make_client: MakeClient, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    known = bodies.patience_seconds

    def noted(size_bytes: int) -> float:
        sizes.append(size_bytes)
        return known(size_bytes)

    monkeypatch.setattr(bodies, "patience_seconds", noted)
    script.answer = found_bytes(bytes(1 << 20))
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    response = await make_client().post("/checkpoints/get-tuple", content=BODY, headers=headers)
    assert sizes == [len(BODY), len(response.content)]
    assert [known(0), known(1 << 20)] == [20, 20 + 64]


async def test_a_response_is_sent_when_there_is_room_for_it_twice(
    make_client: MakeClient, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    enter = Shares.enter

    async def noted(shares: Shares, who: Principal, amount: int = 1) -> int:
        taken.append(amount)
        return await enter(shares, who, amount)

    monkeypatch.setattr(Shares, "enter", noted)
    script.answer = found_bytes(bytes(1 << 20))
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    response = await make_client().post("/checkpoints/get-tuple", content=BODY, headers=headers)
    assert taken[-1] == (64 << 10) + 2 * len(response.content)


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


@pytest.mark.parametrize(
    ("seconds", "status"), [(60, 200), (math.inf, 200), (-0.001, 503), (math.nan, 400), (None, 400)]
)
async def test_a_deletion_that_comes_late_deletes_nothing(
    seconds: float | None, status: int, make_client: MakeClient, script: Script
) -> None:
    headers = {DEADLINE_HEADER: "soon" if seconds is None else str(time.time() + seconds)}
    answer = await make_client().post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=headers)
    assert (answer.status_code, len(script.asked)) == (status, status == 200)


@pytest.mark.parametrize("of", ["the client", "the service"])
async def test_what_has_begun_ends_when_its_time_is_over(
    of: str, make_client: MakeClient, script: Script
) -> None:
    """A deletion that waits for another one's claim would begin when its client has asked again and stored since."""
    script.wait = Wait(Future(), 100.0)
    limits, headers = Limits(), {DEADLINE_HEADER: str(time.time() + 0.2)}
    if of == "the service":
        limits, headers = Limits(request_seconds_max=0.05), {}
    async with make_client(limits=limits) as client:
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=headers)
    assert answer.status_code == 504
    assert (len(script.asked), script.running) == (1, 0)
