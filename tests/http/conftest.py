"""A server in place of the gateway, and transports to it on either side."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._runtime import attempts
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.support.http_stand_in import StandIn, http_stand_in
from tests.support.operations import Side

Send = Callable[[GatewayTransport, Call], Any]
# Certificates are all that takes long to load.
QUICK = {"client_options": {"verify": ssl.create_default_context()}}


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    """Give a server in place of the gateway."""
    with http_stand_in() as stand_in:
        yield stand_in


@pytest.fixture(autouse=True)
def _moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let attempts wait for moments only."""
    monkeypatch.setattr(attempts, "BACKOFF_SECONDS_MAX", 0.01)


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

    def ask(url: str, method: str = "put", params: Any = None, **options: Any) -> Any:
        return send(GatewayTransport(url, **{**QUICK, **options}), Call(method, params or {}))

    return ask
