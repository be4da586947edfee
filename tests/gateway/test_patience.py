"""Those who send or read slowly: they keep nobody else out, and are not waited for for ever."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, app, bodies
from tests.gateway.conftest import MakeClient, Script, found_bytes
from tests.support.gateway_service import gateway_service

# Much longer than anything here takes, and shorter than a slow request may be slow.
WITHIN_SECONDS = 20
LIMITS = Limits(in_flight_max=8)
HEADERS = "Host: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"thread_id": "acme/1"}'


async def named(request: HTTPConnection) -> Principal | None:
    """Believe what a request says of who makes it."""
    name = request.headers.get("x-name")
    return None if name is None else Principal(name, request.headers.get("x-tenant"))


@contextmanager
def connected(url: str, sent: bytes = b"") -> Iterator[socket.socket]:
    """Connect to a service and send something."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), WITHIN_SECONDS) as connection:
        # What is not read shall not lie in the buffers of this machine.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        connection.sendall(sent)
        yield connection


def post(path: str, who: str, tenant: str, length: int = len(BODY)) -> bytes:
    """The headers of a request."""
    whose = f"X-Name: {who}\r\nX-Tenant: {tenant}\r\n"
    return f"POST /checkpoints/{path} HTTP/1.1\r\n{HEADERS}{whose}Content-Length: {length}\r\n\r\n".encode()


def ask_as_somebody_else(url: str) -> None:
    """See that another tenant is served."""
    headers = {"x-name": "patient", "x-tenant": "acme"}
    for _ in range(3):
        answer = httpx.post(
            f"{url}/checkpoints/get-tuple",
            content=BODY,
            timeout=WITHIN_SECONDS,
            headers={"content-type": "application/json", **headers},
        )
        assert answer.status_code == 200


@pytest.fixture
def service(script: Script) -> Iterator[str]:
    """Give the address of a service whose operations do nothing."""
    del script
    with gateway_service(DynamoDBSaver("threads"), authenticate=named, limits=LIMITS) as url:
        yield url


def test_readers_that_do_not_read_keep_nobody_out(service: str, script: Script) -> None:
    script.answer = found_bytes(bytes(1 << 20))
    with ExitStack() as stack:
        for number in range(60):
            request = post("get-tuple", f"slow-{number % 2}", "acme") + BODY
            stack.enter_context(connected(service, request))
        ends_at = time.monotonic() + WITHIN_SECONDS
        # More of them than there are places.
        while len(script.asked) < 40 and time.monotonic() < ends_at:
            time.sleep(0.01)
        assert len(script.asked) >= 40
        ask_as_somebody_else(service)


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

    for module in (app, bodies):
        monkeypatch.setattr(module, "patience_seconds", noted)
    script.answer = found_bytes(bytes(1 << 20))
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    response = await make_client().post("/checkpoints/get-tuple", content=BODY, headers=headers)
    assert sizes == [len(BODY), len(response.content)]
    assert known(2 << 20) - known(1 << 20) == known(1 << 20) - known(0) > 0
