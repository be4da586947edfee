"""Settings: from a file and the environment, what they make, and what is said of mistakes."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection
from starlette.routing import Route

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, configured_gateway, settings
from langgraph.checkpoint.dynamodb.gateway.settings import GatewayOptions, PrincipalsOfFile, load_options
from tests.gateway.conftest import client_of, connection

WORD = "a-token-of-128-bits"
HASH = hashlib.sha256(WORD.encode()).hexdigest()
ROLE = "arn:aws:sts::123456789012:assumed-role/acme-agents/me"
CLAIMS = {"iss": "https://issuer.example", "aud": "threads", "sub": "acme-agents", "exp": 4102444800}
EVERYTHING = f"""
checkpointer:
  type: dynamodb
  config: {{table_name: threads}}
gateway:
  principals:
    bearer:
      acme-agents: {{tenant: acme, owner: ada, sha256: [{HASH}]}}
    jwt:
      jwks_url: https://issuer.example/keys
      issuer: https://issuer.example
      audience: threads
  limits: {{body_bytes_max: 1000, in_flight_max: 3}}
"""


@pytest.fixture(autouse=True)
def _no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("LANGGRAPH_GATEWAY_", "LANGGRAPH_CHECKPOINTER_")):
            monkeypatch.delenv(name)


@pytest.fixture
def everything(file: Path) -> Path:
    """Give a file with every setting."""
    file.write_text(EVERYTHING)
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give the path of a YAML file that a test writes."""
    return tmp_path / "gateway.yaml"


async def principal_of(options: GatewayOptions, request: HTTPConnection) -> Any:
    authenticate: Any = options.principals.authenticate()
    return await authenticate(request)


async def test_a_file_has_everything(everything: Path) -> None:
    options = load_options(everything)
    assert options.limits == Limits(body_bytes_max=1000, in_flight_max=3)
    agent = await principal_of(options, connection(headers={"authorization": f"Bearer {WORD}"}))
    assert agent == Principal("acme-agents", "acme", frozenset(("read", "write")), "ada")
    assert await principal_of(options, connection()) is None
    paths = [route.path for route in configured_gateway(everything).routes if isinstance(route, Route)]
    assert {"/about", "/checkpoints/put", "/checkpoints/get-tuple"} <= set(paths)


@pytest.mark.parametrize("said", [{"iam": {"userArn": ROLE}}, {"jwt": {"claims": CLAIMS, "scopes": None}}])
async def test_nothing_but_a_token_says_who_asks(everything: Path, said: dict[str, Any]) -> None:
    """Neither a header, which anybody may send, nor the event, which whoever may invoke the function may write."""
    options, event = load_options(everything), {"requestContext": {"authorizer": said}}
    headers = {
        "x-amzn-request-context": json.dumps(event["requestContext"]),
        "x-amzn-oidc-data": json.dumps(CLAIMS),
        "x-forwarded-user": "acme-agents",
        "authorization": "AWS4-HMAC-SHA256 Credential=acme-agents",
    }
    assert await principal_of(options, connection(headers, **{"aws.event": event})) is None


async def test_the_environment_has_everything_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_GATEWAY_PRINCIPALS__BEARER__AGENTS__SHA256", f"{'0' * 64},{HASH}")
    monkeypatch.setenv("LANGGRAPH_GATEWAY_PRINCIPALS__BEARER__AGENTS__RIGHTS", "read")
    monkeypatch.setenv("LANGGRAPH_GATEWAY_LIMITS__IN_FLIGHT_MAX", "3")
    options = load_options()
    assert options.limits.in_flight_max == 3
    found = await principal_of(options, connection(headers={"authorization": f"bearer {WORD}"}))
    assert found == Principal("agents", None, frozenset({"read"}))


@pytest.mark.parametrize("text", ["checkpointer: {type: memory}", "gateway:", ""])
def test_nothing_has_to_be_configured(text: str, file: Path) -> None:
    file.write_text(text)
    assert load_options(file) == GatewayOptions()
    assert load_options() == GatewayOptions()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{limit: {}}", "did you mean limits"),
        ("{limits: {in_flight_max: 0}}", "gateway.limits.in_flight_max: input should be greater than"),
        ("{limits: {in_flight_max: true}}", "gateway.limits.in_flight_max: give a number"),
        ("{principals: '{'}", "gateway.principals: give a mapping, or one as JSON or YAML"),
        (
            "{principals: '{bearer: {a: {sha256: x}, a: {sha256: x}}}'}",
            "gateway.principals: give a mapping, or one as",
        ),
        (
            f"{{principals: {{bearer: {{a: {{sha256: {'0a' * 32}}}, b: {{sha256: {'0A' * 32}}}}}}}}}",
            "gateway.principals.bearer: a and b have the same hash",
        ),
        ("{principals: [1]}", "gateway.principals: must be a mapping"),
        ("{principals: {bearer: {a: {sha256: [hush]}}}}", "gateway.principals.bearer.a.sha256.0: "),
        ("{principals: {bearer: {a: {sha256: []}}}}", "gateway.principals.bearer.a.sha256: value should"),
        ("{principals: {bearer: {a: {tenant: 'a/', sha256: x}}}}", "gateway.principals.bearer.a.tenant: "),
        ("{principals: {bearer: {a: {rights: all, sha256: x}}}}", "gateway.principals.bearer.a.rights.0: "),
        ("{principals: {jwt: {jwks_url: 'http://x'}}}", "gateway.principals.jwt.jwks_url: "),
        ("{principals: {jwt: {algorithms: HS256}}}", "gateway.principals.jwt.algorithms.0: "),
        ("{audit_key: '${NOT_SET_ANYWHERE}'}", "needs the environment variable NOT_SET_ANYWHERE"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_without_its_value(text: str, says: str, file: Path) -> None:
    file.write_text(f"\ngateway: {text}")
    with pytest.raises(CheckpointerConfigurationError) as caught:
        load_options(file)
    said = str(caught.value)
    assert says in said
    assert f"{file}, gateway" in said
    assert "hush" not in said


def test_a_gateway_needs_a_table(file: Path) -> None:
    file.write_text("checkpointer: {type: memory}")
    with pytest.raises(CheckpointerConfigurationError, match="the gateway needs dynamodb"):
        configured_gateway(file)


def test_an_option_that_cannot_be_used_is_told_with_its_place(file: Path) -> None:
    file.write_text(
        "checkpointer: {type: dynamodb, config: {table_name: agents, client_config: 'json:JSONEncoder'}}"
    )
    with pytest.raises(CheckpointerConfigurationError, match="client_config"):
        configured_gateway(file)


def test_without_principals_it_has_to_be_insecure(everything: Path) -> None:
    saver = DynamoDBSaver("threads")
    with pytest.raises(
        CheckpointerConfigurationError, match="principals in its configuration: bearer or jwt"
    ):
        GatewayOptions().gateway(saver)
    assert GatewayOptions().gateway(saver, insecure=True).routes
    with pytest.raises(CheckpointerConfigurationError, match="not both"):
        load_options(everything).gateway(saver, insecure=True)


async def test_principals_may_be_in_a_file_of_their_own_which_is_watched(
    everything: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGGRAPH_GATEWAY_PRINCIPALS_FILE", str(everything))
    monkeypatch.setattr(settings, "_LOOK_SECONDS", 0.0)
    rewrite = everything.write_text
    gateway = load_options().gateway(DynamoDBSaver("threads"))
    for content, status in ((EVERYTHING, 200), (EVERYTHING.replace(HASH, "a" * 64), 401)):
        rewrite(content)
        async with client_of(gateway) as client:
            response = await client.get("/about", headers={"authorization": f"Bearer {WORD}"})
        assert response.status_code == status
    monkeypatch.setenv("LANGGRAPH_GATEWAY_PRINCIPALS__BEARER__A__SHA256", HASH)
    with pytest.raises(CheckpointerConfigurationError, match="principals or principals_file, not both"):
        load_options().gateway(DynamoDBSaver("threads"))


async def test_a_token_is_revoked_by_a_change_of_the_file_without_a_restart(
    everything: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "langgraph")
    now = [0.0]
    authenticate: Any = load_options(everything).principals.authenticate()
    current = PrincipalsOfFile(authenticate, everything, lambda: now[0])

    def change(content: str | None, seconds: float) -> None:
        if content is None:
            everything.unlink()
        else:
            everything.write_text(content)
        now[0] = seconds

    async def name_of(word: str = WORD) -> str | None:
        found = await current(connection(headers={"authorization": f"Bearer {word}"}))
        return None if found is None else found.name

    assert await name_of() == "acme-agents"
    now[0] = 1.0
    assert await name_of() == "acme-agents"
    other = hashlib.sha256(b"another").hexdigest()
    for content, seconds, wanted in (
        (EVERYTHING.replace(HASH, other), 1.5, ("acme-agents", None)),
        (EVERYTHING.replace(HASH, other), 2.0, (None, "acme-agents")),
        # A mistake changes nothing, and is told; so is a file that is gone.
        ("gateway: {principals: {bearer: {a: {sha256: [x]}}}}", 3.0, (None, "acme-agents")),
        (None, 4.0, (None, "acme-agents")),
        ("gateway: {}", 5.0, (None, None)),
        (EVERYTHING, 6.0, ("acme-agents", None)),
    ):
        change(content, seconds)
        assert (await name_of(), await name_of("another")) == wanted
    told = [each.levelname for each in caplog.records if "read again" in each.message]
    assert told == ["INFO", "ERROR", "ERROR", "INFO", "INFO"]
