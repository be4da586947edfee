"""Connections: kept between requests, new after a fork and on every loop, closed in the end, and with certificates."""

import asyncio
import gc
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb import CheckpointerError
from langgraph.checkpoint.dynamodb.errors import ThreadBusyError
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.checkpoint.dynamodb.http import transport as http_transport
from langgraph.checkpoint.dynamodb.http.exchange import ServiceClock
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.http.conftest import QUICK, Echoed, Send, call
from tests.support.certificates import write_certificate
from tests.support.http_stand_in import DROPPED, StandIn, http_stand_in, problem
from tests.support.loaded import loaded_by
from tests.support.loop_ends import FORKED, check_end, every_end
from tests.support.operations import Side, ask

CALL, ECHOED = call({"a": 1}), Echoed({"a": 1})


def test_a_connection_is_used_again_also_after_an_error(gateway: StandIn) -> None:
    transport = GatewayTransport(gateway.address)
    gateway.script = [problem(409, "ThreadBusyError", "Busy.")]
    with pytest.raises(ThreadBusyError):
        transport.send(CALL)
    transport.send(CALL)
    transport.close()
    assert gateway.connections == 1


def test_who_waits_for_a_turn_has_a_deadline_from_then_on(
    gateway: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the last ones of a crowd would come too late, and again, and again."""
    noted: list[str] = []
    monkeypatch.setattr(http_transport, "POOL_CONNECTIONS", 1)
    monkeypatch.setattr(ServiceClock, "learn", lambda *_: noted.append("answered"))

    def headers(_clock: ServiceClock) -> dict[str, str]:
        noted.append("sent")
        return {}

    monkeypatch.setattr(ServiceClock, "headers", headers)

    async def main() -> None:
        own = GatewayTransport(gateway.address)
        await asyncio.gather(*(own.asend(CALL) for _ in range(3)))
        await own.aclose()

    asyncio.run(main())
    assert noted == ["sent", "answered"] * 3


def test_what_was_closed_may_be_used_again(gateway: StandIn) -> None:
    async def main() -> None:
        transport = GatewayTransport(gateway.address)
        for _ in range(2):
            assert transport.send(CALL) == await transport.asend(CALL) == ECHOED
            assert list(transport.pool().map(transport.send, [CALL] * 3)) == [ECHOED] * 3
            await transport.aclose()
            await transport.aclose()

    asyncio.run(main())


def test_who_is_closed_by_another_meanwhile_goes_on_with_new_connections(
    gateway: StandIn, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = GatewayTransport(gateway.address)
    closings, blocking, waiting = [1], httpx.Client.send, httpx.AsyncClient.send

    # Another thread, or task, comes in between.

    def close_and_send(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        if closings:
            closings.pop()
            transport.close()
        return blocking(client, request, **options)

    async def aclose_and_send(
        client: httpx.AsyncClient, request: httpx.Request, **options: Any
    ) -> httpx.Response:
        if closings:
            closings.pop()
            await transport.aclose()
        return await waiting(client, request, **options)

    monkeypatch.setattr(httpx.Client, "send", close_and_send)
    monkeypatch.setattr(httpx.AsyncClient, "send", aclose_and_send)
    assert send(transport, CALL) == ECHOED
    transport.close()
    assert closings == []


def test_other_errors_of_the_kind_pass_through(
    gateway: StandIn, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("as it is")

    for kind in (httpx.Client, httpx.AsyncClient):
        monkeypatch.setattr(kind, "build_request", fail)
    with pytest.raises(RuntimeError, match="as it is"):
        ask(gateway.address)


def test_a_transport_that_is_dropped_is_closed(gateway: StandIn) -> None:
    async def main() -> list[bool]:
        transport = GatewayTransport(gateway.address)
        transport.send(CALL)
        await transport.asend(CALL)
        on_loops = [each.client for each in transport._loops.values()]  # noqa: SLF001
        clients: list[Any] = [transport._client, *on_loops]  # noqa: SLF001
        del transport
        gc.collect()
        for _ in range(100):
            await asyncio.sleep(0)
        return [each.is_closed for each in clients]

    assert asyncio.run(main()) == [True, True]


def test_a_child_leaves_its_parents_connections_alone(
    gateway: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = GatewayTransport(gateway.address)
    transport.send(CALL)
    inherited: Any = transport._client  # noqa: SLF001
    # What happens in a child, in this process.
    monkeypatch.setattr(os, "getpid", lambda: 0)
    transport.start()
    assert transport.send(CALL) == ECHOED
    transport.close()
    assert gateway.connections == 2
    del transport
    gc.collect()
    assert not inherited.is_closed
    inherited.close()


USE = """
import asyncio, gc, os, sys
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.http.conftest import call

def made():
    return GatewayTransport(sys.argv[1])

async def use(transport, number):
    blocking, waiting = (call({"number": each}) for each in (0, number))
    transport.send(blocking)
    print((await transport.asend(waiting)).document["number"], end=" ", flush=True)
"""


# A child has its parent's sockets, which it may not close: see `test_a_child_leaves_its_parents_connections_alone`.
@every_end(FORKED)
def test_nothing_is_left_open_after(gateway: StandIn, end: str) -> None:
    check_end(USE, end, gateway.address)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Give a file with a key, and a certificate that nobody has signed but itself."""
    return write_certificate(tmp_path / "gateway.pem")


def test_certificates(certificate: Path, ask: Callable[..., Any]) -> None:
    with http_stand_in(certificate) as gateway:
        assert gateway.address.startswith("https://localhost:")
        # It does not get better by waiting.
        with pytest.raises(
            CheckpointerError, match=r"no response .*CERTIFICATE_VERIFY_FAILED.*TLS certificate"
        ) as caught:
            ask(gateway.address, auth="token-1", retry_seconds=1000.0)
        assert "token-1" not in str(caught.value)
        assert gateway.asked == []
        trusted = ssl.create_default_context(cafile=certificate)
        assert ask(gateway.address, document={"a": 1}, client_options={"verify": trusted}) == {"a": 1}


@pytest.mark.parametrize("kind", [HttpCheckpointSaver, HttpStore, HttpCache])
def test_warming_up_asks_the_gateway_once_what_it_is(gateway: StandIn, kind: Any, side: Side) -> None:
    gateway.always = DROPPED
    with kind(gateway.address, **QUICK) as made:
        ask(side, made, "warm_up")
    assert [each.path for each in gateway.asked] == ["/about"]


BASE = (
    "import langgraph.checkpoint.base, langgraph.checkpoint.serde.encrypted, langchain_core.runnables.config"
)
MADE = "from langgraph.checkpoint.dynamodb.http import {name}; made = {name}('{url}', auth='token')"
OF_AWS = {"boto3", "botocore", "aiobotocore", "aioboto3"}


@pytest.mark.parametrize("name", ["HttpCheckpointSaver", "HttpStore", "HttpCache"])
def test_a_client_is_made_without_what_takes_long_to_load(name: str) -> None:
    loaded = loaded_by(MADE.format(name=name, url="https://gateway.example")) - loaded_by(BASE)
    assert not loaded & (OF_AWS | {"fastapi", "starlette", "yaml"})


@pytest.mark.parametrize("send", ["made.warm_up()", "import asyncio; asyncio.run(made.awarm_up())"])
def test_a_request_loads_nothing_of_aws(gateway: StandIn, send: str) -> None:
    loaded = loaded_by(f"{MADE.format(name='HttpCheckpointSaver', url=gateway.address)}; {send}")
    assert "httpx" in loaded
    assert not loaded & OF_AWS
