"""Who asks: random tokens, and nobody at all."""

import hashlib
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.failures import is_of_this_machine
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.authentication import BearerTokens, anybody_on_this_machine, either
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from tests.gateway.conftest import MakeClient, Script, always, connection

ACME, OTHER = Principal("acme", "acme"), Principal("other", "other")


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


# Bearer tokens


@pytest.fixture
def tokens() -> BearerTokens:
    """Give the tokens of two principals, of which one is replacing its own."""
    return BearerTokens({ACME: [hashed("old"), hashed("new").upper()], OTHER: [hashed("other")]})


@pytest.mark.parametrize(
    ("header", "principal"),
    [
        ("Bearer old", ACME),
        ("Bearer new", ACME),
        ("Bearer other", OTHER),
        *((header, None) for header in ("Bearer ", "Bearer neu", f"Bearer {hashed('old')}")),
        # Other schemes.
        *((header, None) for header in ("", "Basic old", "old", "Bearerold", "Digest Bearer old")),
    ],
)
async def test_a_token_is_its_principals_while_its_hash_is_known(
    header: str, principal: Principal | None, tokens: BearerTokens
) -> None:
    assert await tokens(connection(headers={"authorization": header} if header else {})) == principal


async def test_two_headers_are_refused_whichever_a_proxy_would_have_read(tokens: BearerTokens) -> None:
    with pytest.raises(ProblemError) as caught:
        await tokens(connection(headers=[("authorization", "Bearer old"), ("authorization", "Bearer other")]))
    assert caught.value.status == 401


async def test_the_first_way_that_knows_the_request_counts() -> None:
    assert await either(always(ACME), always(OTHER))(connection()) == ACME
    assert await either(always(None), always(OTHER))(connection()) == OTHER


# Nobody


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)]
    + [(each, False) for each in ("0.0.0.0", "::", "10.0.0.1", "example.org", "", "localhost.evil.org")],  # noqa: S104
)
async def test_insecure_is_for_requests_of_this_machine(host: str, is_local: bool) -> None:
    assert is_of_this_machine(host) == is_local
    name = f"[{host}]" if ":" in host else host
    for request in (connection(client=(host, 1)), connection(headers={"host": f"{name}:8000"})):
        if is_local:
            principal: Any = await anybody_on_this_machine(request)
            assert principal.rights == {"read", "write", "administer"}
        elif host or request.client is None:
            with pytest.raises(ProblemError, match="use localhost"):
                await anybody_on_this_machine(request)
    with pytest.raises(ProblemError, match="use localhost"):
        await anybody_on_this_machine(connection(client=None))


@pytest.mark.parametrize("header", ["Forwarded", "Via", "X-Forwarded-For", "x-forwarded-any", "X-Real-IP"])
async def test_insecure_refuses_what_comes_through_a_proxy(header: str) -> None:
    # Even one that says that it asks for this machine: strangers may send that header, too.
    for value in ("203.0.113.9", "127.0.0.1", ""):
        with pytest.raises(ProblemError, match="through a proxy"):
            await anybody_on_this_machine(connection(headers={header: value}))


async def test_insecure_refuses_nginx_as_it_is_installed() -> None:
    assert await anybody_on_this_machine(connection(http_version="1.1")) is not None
    with pytest.raises(ProblemError, match="through a proxy"):
        await anybody_on_this_machine(connection(http_version="1.0"))


async def test_who_is_nobody_gets_401_before_a_body_is_read(make_client: MakeClient, script: Script) -> None:
    client = make_client(principal=None)
    for path in ("/checkpoints/put", "/about", "/metrics", "/no-such-path"):
        answer = await client.post(path, content=b"not even a body")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["type"].endswith(":CheckpointerConfigurationError")
    assert script.asked == []


async def test_what_is_open_asks_nobody(make_client: MakeClient) -> None:
    client = make_client(principal=None)
    assert (await client.get("/health")).json() == {"status": "ok"}
    assert (await client.get("/openapi.json")).status_code == 200


# Principals and the gateway itself


@pytest.mark.parametrize("tenant", ["", "a/b", "a/", "a b", "a#", "a%", "a\n", "é", "*", "x" * 129])
def test_what_could_be_anothers_prefix_is_no_tenant(tenant: str) -> None:
    with pytest.raises(CheckpointerInputError, match="tenant has to be letters"):
        Principal("agents", tenant)


def test_an_unknown_right_is_refused() -> None:
    rights: Any = frozenset(("read", "all"))
    with pytest.raises(CheckpointerInputError, match="rights can be administer, read, write"):
        Principal("agents", rights=rights)
