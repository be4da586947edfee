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
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.shares import Holding
from tests.gateway.conftest import MakeClient, Script
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


@pytest.mark.parametrize("tenants", [("acme", "acme"), ("one", "other")], ids=["neighbours", "strangers"])
def test_bodies_that_trickle_keep_nobody_out(tenants: tuple[str, str], service: str) -> None:
    with ExitStack() as stack:
        for number in range(60):
            head = post("get-tuple", f"slow-{number % 2}", tenants[number % 2])
            stack.enter_context(connected(service, head + BODY[:5]))
        ask_as_somebody_else(service)


def test_readers_that_do_not_read_keep_nobody_out(service: str, script: Script) -> None:
    script.answer = {"data": "x" * (1 << 20)}
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


# Bytes


def test_what_a_principal_holds_is_bounded_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.shares._BODIES_MAX", 16)
    holding = Holding(Limits(body_bytes_max=1000, decompressed_bytes_max=1 << 20))
    greedy, neighbour, other = Principal("a", "acme"), Principal("b", "acme"), Principal("a", "other")

    def held_by(who: Principal, stack: ExitStack) -> int:
        """Hold requests of the largest size until there is no room."""
        count = 0
        while True:
            try:
                stack.enter_context(holding.request(who)).add(1 << 20)
            except ProblemError as problem:
                return count if problem.status == 503 else 0
            count += 1

    with ExitStack() as stack:
        first = held_by(greedy, stack)
        assert 8 <= first <= 10
        assert held_by(neighbour, stack)
        assert held_by(other, stack)
    with ExitStack() as stack:
        assert held_by(greedy, stack) == first


async def test_bodies_take_a_bounded_memory(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.shares._BODIES_MAX", 4)
    client = make_client(
        principal=Principal("a"), limits=Limits(body_bytes_max=8 << 20, decompressed_bytes_max=1 << 20)
    )
    go_on = asyncio.Event()

    async def pieces() -> Any:
        for _ in range(7):
            yield bytes(1 << 20)
        await go_on.wait()

    posts = [
        asyncio.create_task(
            client.post("/checkpoints/list", content=pieces(), headers={"content-type": "application/json"})
        )
        for _ in range(5)
    ]
    done, _ = await asyncio.wait(posts, timeout=WITHIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    assert {each.result().status_code for each in done} == {503}
    go_on.set()
    # What is too large once it is there is told as such.
    assert {each.status_code for each in await asyncio.gather(*posts)} == {413, 503}


async def test_an_answer_for_which_there_is_no_room_is_told_by_its_status(
    make_client: MakeClient, script: Script
) -> None:
    script.answer = {"data": "x" * (2 << 20)}
    limits = Limits(body_bytes_max=1000, decompressed_bytes_max=1000)
    answer = await make_client(limits=limits).post(
        "/checkpoints/get-tuple",
        content=BODY,
        headers={"content-type": "application/json", "accept-encoding": "identity"},
    )
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
