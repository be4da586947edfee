"""Who asks: tokens that are renewed, signatures of AWS, and what is httpx's own."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http import SigV4
from langgraph.checkpoint.dynamodb.http.authorization import authorization
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.support.http_stand_in import Answer, Asked, StandIn

Ask = Callable[..., Any]

REFUSED = Answer(401, b"", {})


def _shown(gateway: StandIn) -> list[str | None]:
    return [each.headers["Authorization"] for each in gateway.asked]


def test_a_token_is_shown(gateway: StandIn, ask: Ask) -> None:
    ask(gateway.address, auth="token-1")
    assert _shown(gateway) == ["Bearer token-1"]


def test_a_token_that_is_refused_stays_so(gateway: StandIn, ask: Ask) -> None:
    gateway.always = REFUSED
    with pytest.raises(CheckpointerConfigurationError, match="refused the credentials") as caught:
        ask(gateway.address, auth="token-1")
    assert "token-1" not in str(caught.value)
    assert _shown(gateway) == ["Bearer token-1"]


def _tokens() -> Callable[[], str]:
    numbers = iter(range(1, 100))
    return lambda: f"token-{next(numbers)}"


def test_a_token_is_asked_for_once_and_again_when_it_is_refused(gateway: StandIn) -> None:
    transport = GatewayTransport(gateway.address, auth=_tokens())
    transport.send(Call("put", {}))
    gateway.script = [REFUSED]
    assert transport.send(Call("put", {"a": 1})) == {"a": 1}
    asyncio.run(transport.asend(Call("put", {})))
    transport.close()
    assert _shown(gateway) == ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]


def test_a_new_token_that_is_refused_too_is_an_error(gateway: StandIn, ask: Ask) -> None:
    gateway.always = REFUSED
    with pytest.raises(CheckpointerConfigurationError, match="refused the credentials"):
        ask(gateway.address, auth=_tokens())
    assert _shown(gateway) == ["Bearer token-1", "Bearer token-2"]


def test_of_requests_that_are_refused_together_one_asks_for_a_new_token() -> None:
    bearer = authorization(_tokens())
    assert bearer is not None
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
        await asyncio.gather(open_when_reached(), transport.asend(Call("put", {})))
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


# Signatures


def _signature(asked: Asked, secret: str, service: str) -> str:
    """Compute the signature of a request as AWS does: "Create a signed AWS API request" in the IAM user guide."""
    date = asked.headers["X-Amz-Date"]
    signed = asked.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    lines = [f"{name}:{asked.headers[name]}" for name in signed.split(";")]
    digest = hashlib.sha256(asked.body).hexdigest()
    canonical = "\n".join([asked.method, asked.path, "", *lines, "", signed, digest])
    scope = f"{date[:8]}/eu-west-1/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment have credentials."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "word")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("service", ["lambda", "execute-api"])
def test_requests_are_signed(gateway: StandIn, ask: Ask, service: Any) -> None:
    auth = SigV4(service, "eu-west-1")
    ask(gateway.address + "/stage", params={"a": "b"}, auth=auth)
    ask(gateway.address, "about", auth=auth)
    assert [each.method for each in gateway.asked] == ["POST", "GET"]
    for asked in gateway.asked:
        assert asked.headers["X-Amz-Security-Token"] == "session"
        assert asked.headers["Authorization"].endswith(f"Signature={_signature(asked, 'word', service)}")


@pytest.mark.usefixtures("account")
def test_the_region_is_that_of_the_configuration(
    gateway: StandIn, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    ask(gateway.address, auth=SigV4("lambda"))
    assert "/eu-west-1/lambda/aws4_request" in str(_shown(gateway)[0])
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(
        CheckpointerConfigurationError, match="no AWS region to sign requests for; pass region_name="
    ):
        ask(gateway.address, auth=SigV4("lambda"))


def test_without_credentials_nothing_is_sent(
    gateway: StandIn, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(
        CheckpointerConfigurationError, match="no AWS credentials to sign requests with; give the"
    ):
        ask(gateway.address, auth=SigV4("lambda", "eu-west-1"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    with pytest.raises(
        CheckpointerConfigurationError, match="no usable AWS credentials to sign requests with"
    ):
        ask(gateway.address, auth=SigV4("lambda", "eu-west-1"))
    assert gateway.asked == []


def test_other_services_are_refused() -> None:
    service: Any = "s3"
    with pytest.raises(CheckpointerInputError, match="service is 's3'; give one of lambda, execute-api"):
        SigV4(service)
