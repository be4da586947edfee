"""A server in place of the gateway, and transports to it on either side."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._runtime import attempts
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb.gateway.call import serve
from langgraph.checkpoint.dynamodb.gateway.serving import Serving
from langgraph.checkpoint.dynamodb.http.exchange import call_to
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.support.http_stand_in import StandIn, http_stand_in
from tests.support.operations import Side

Send = Callable[[GatewayTransport, Call], Any]


@dataclass(frozen=True)
class Echoed:
    """The answer of a server that gives requests their own bodies back."""

    document: dict[str, Any] | None = None


@serve("write")
def put_writes(_it: Serving, document: dict[str, Any] | None = None) -> Op[Echoed]:
    """Stand for any function of the service."""
    yield from ()
    return Echoed(document)


def call(document: Any = None) -> Call:
    """Return a call that sends a document."""
    return call_to(put_writes, "", document)


# Certificates are all that takes long to load.
QUICK: dict[str, Any] = {"client_options": {"verify": ssl.create_default_context()}}


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    """Give a server in place of the gateway."""
    with http_stand_in() as stand_in:
        yield stand_in


@pytest.fixture(autouse=True)
def _moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let attempts wait for moments only."""
    monkeypatch.setattr(limits, "BACKOFF_SECONDS_MAX", 0.01)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a clock by which every attempt takes seconds decide how long to go on."""
    clock = SimpleNamespace(monotonic=count(step=limits.RETRY_SECONDS_QUIET + 1).__next__)
    monkeypatch.setattr(attempts, "time", clock)
    monkeypatch.setattr(attempts, "_silent_until", 0.0)


@pytest.fixture(params=["sync", "async"])
def side(request: pytest.FixtureRequest) -> Side:
    """Give either side."""
    found: Side = request.param
    return found


@pytest.fixture
def send(side: Side) -> Send:
    """Give a function that makes a call over a transport on a side, and closes the transport."""

    async def asend(transport: GatewayTransport, call: Call) -> Any:
        try:
            return await transport.asend(call)
        finally:
            await transport.aclose()

    def send(transport: GatewayTransport, call: Call) -> Any:
        if side == "async":
            return asyncio.run(asend(transport, call))
        try:
            return transport.send(call)
        finally:
            transport.close()

    return send


@pytest.fixture
def ask(send: Send) -> Callable[..., Any]:
    """Give a function that makes one call on a side, over a transport of its own."""

    def ask(url: str, document: Any = None, **options: Any) -> Any:
        return send(GatewayTransport(url, **{**QUICK, **options}), call(document)).document

    return ask
