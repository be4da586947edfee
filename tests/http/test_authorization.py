"""Who asks: tokens that are renewed, and what is httpx's own."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport, authorization
from tests.http.conftest import call
from tests.support.http_stand_in import Answer, StandIn

Ask = Callable[..., Any]

REFUSED = Answer(401, b"", {})


def _shown(gateway: StandIn) -> list[str | None]:
    return [each.headers["Authorization"] for each in gateway.asked]


def _tokens() -> Callable[[], str]:
    numbers = iter(range(1, 100))
    return lambda: f"token-{next(numbers)}"


@pytest.mark.parametrize(("auth", "count"), [(lambda: "token-1", 1), (_tokens, 2)])
def test_a_token_that_is_refused_stays_so_and_a_new_one_is_tried_once(
    gateway: StandIn, ask: Ask, auth: Callable[[], Any], count: int
) -> None:
    gateway.always = REFUSED
    with pytest.raises(CheckpointerConfigurationError, match="refused the credentials") as caught:
        ask(gateway.address, auth=auth())
    assert "token-" not in str(caught.value)
    assert _shown(gateway) == ["Bearer token-1", "Bearer token-2"][:count]


def test_a_token_is_asked_for_once_and_again_when_it_is_refused(gateway: StandIn) -> None:
    transport = GatewayTransport(gateway.address, auth=_tokens())
    transport.send(call())
    gateway.script = [REFUSED]
    assert transport.send(call({"a": 1})).document == {"a": 1}
    asyncio.run(transport.asend(call()))
    transport.close()
    assert _shown(gateway) == ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]


def test_of_requests_that_are_refused_together_one_asks_for_a_new_token() -> None:
    bearer: Any = authorization(_tokens())
    flows = [bearer.sync_auth_flow(httpx.Request("POST", "https://gateway.example")) for _ in range(3)]
    assert [next(flow).headers["Authorization"] for flow in flows] == ["Bearer token-1"] * 3
    refused = httpx.Response(401)
    assert [flow.send(refused).headers["Authorization"] for flow in flows] == ["Bearer token-2"] * 3


def test_what_gives_a_token_may_block_but_not_the_event_loop(gateway: StandIn) -> None:
    async def main() -> None:
        loop, reached, opened = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def give() -> str:
            loop.call_soon_threadsafe(reached.set)
            assert opened.wait(60)
            return "token-1"

        async def open_when_reached() -> None:
            await reached.wait()
            opened.set()

        transport = GatewayTransport(gateway.address, auth=give)
        await asyncio.gather(open_when_reached(), transport.asend(call()))
        await transport.aclose()

    asyncio.run(main())
    assert _shown(gateway) == ["Bearer token-1"]


def test_what_gives_a_token_may_fail(gateway: StandIn, ask: Ask) -> None:
    with pytest.raises(ZeroDivisionError):
        ask(gateway.address, auth=lambda: 1 // 0)
    with pytest.raises(CheckpointerInputError, match="the token of auth= cannot be sent") as caught:
        ask(gateway.address, auth=lambda: "token 1")
    assert "token 1" not in str(caught.value)


def test_an_authorization_of_httpx_is_used_as_it_is(gateway: StandIn, ask: Ask) -> None:
    ask(gateway.address, auth=httpx.BasicAuth("name", "word"))
    assert _shown(gateway) == ["Basic bmFtZTp3b3Jk"]
