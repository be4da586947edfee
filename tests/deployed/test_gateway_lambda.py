"""The gateway on Lambda, run as Lambda runs it, and reached by an HTTP API."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from langgraph.checkpoint.dynamodb import CheckpointerInputError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.deployed.lambda_environment import Entrance, Environment
from tests.infra.rendering import Node
from tests.infra.stacks import GATEWAYS
from tests.support.checkpoints import noise, store, thread_config
from tests.support.http_stand_in import Answer, http_stand_in
from tools.engine import Engine

# What is tested here is the process, so one engine does.
pytestmark = pytest.mark.engines("dynamodb-local")
LIMIT = "LANGGRAPH_GATEWAY_LIMITS__BODY_BYTES_MAX"
TOKEN = "t" * 32
PRINCIPALS = {
    "bearer": {"agents": {"sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()], "tenant": "acme"}}
}
FUNCTION = GATEWAYS["Lambda"].properties("Gateway")
HANDLER: str = FUNCTION["Handler"]
VARIABLES: dict[str, str] = FUNCTION["Environment"]["Variables"]


def variables(engine: Engine, table_name: str, **others: str) -> dict[str, str]:
    """The environment of the function: the template's, and what is different here."""
    return {
        **engine.environment(),
        **VARIABLES,
        "LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME": table_name,
        "LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps(PRINCIPALS),
        "PYTHONPATH": str(Path.cwd()),
        **others,
    }


@pytest.fixture(scope="module")
def function(engine: Engine, made_table: str) -> Iterator[Environment]:
    """Give an execution environment for all of these tests."""
    with Environment.running(HANDLER, variables(engine, made_table)) as environment:
        yield environment


def ask(address: str, path: str, document: Node = None, **headers: str) -> tuple[int, Node]:
    """Send a request; the status and the document of the response."""
    method = "GET" if document is None else "POST"
    response = httpx.request(method, f"{address}{path}", json=document, headers=headers, timeout=60)
    return response.status_code, response.json()


@pytest.fixture(scope="module")
def address(function: Environment) -> Iterator[str]:
    """Give the address of an HTTP API in front of it."""
    with Entrance(function).serving() as address:
        yield address


def test_a_token_opens_the_threads_of_its_tenant(address: str) -> None:
    token = f"Bearer {TOKEN}"
    status, about = ask(address, "/about", authorization=token)
    assert status == 200
    assert about["limits"]["body_bytes_max"] == int(VARIABLES[LIMIT])
    asked = "/checkpoints/get-tuple"
    assert ask(address, asked, {"thread_id": "acme/1"}, authorization=token)[0] == 200
    status, problem = ask(address, asked, {"thread_id": "other/1"}, authorization=token)
    assert (status, problem["type"].rpartition(":")[2]) == (403, "CheckpointerConfigurationError")


def test_a_json_web_token_is_verified_by_the_function_itself(engine: Engine, made_table: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    published = json.loads(ECAlgorithm.to_jwk(key.public_key())) | {"kid": "1"}
    claims = {"iss": "https://issuer.example", "aud": "gateway", "tenant": "acme", "exp": time.time() + 3600}
    by_issuer, by_another = (
        jwt.encode({**claims, "sub": "agents"}, each, algorithm="ES256", headers={"kid": "1"})
        for each in (key, ec.generate_private_key(ec.SECP256R1()))
    )
    with http_stand_in() as issuer:
        issuer.always = Answer(body=json.dumps({"keys": [published]}).encode())
        trusted = {
            "jwks_url": f"{issuer.address}/keys",
            "issuer": claims["iss"],
            "audience": claims["aud"],
            "algorithms": ["ES256"],
            "tenant_claim": "tenant",
        }
        own = {"LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps({"jwt": trusted})}
        with (
            Environment.running(HANDLER, variables(engine, made_table, **own)) as function,
            # Whatever a first door says.
            Entrance(function, {"jwt": {"claims": claims, "scopes": None}}).serving() as address,
        ):
            assert ask(address, "/about", authorization=f"Bearer {by_issuer}")[0] == 200
            assert ask(address, "/about", authorization=f"Bearer {by_another}")[0] == 401
            assert ask(address, "/about")[0] == 401


@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {"iam": {"userArn": "arn:aws:sts::210987654321:assumed-role/agents/session"}},
        {"jwt": {"claims": {"sub": "agents", "tenant": "acme"}, "scopes": None}},
    ],
)
def test_nothing_but_a_token_lets_anybody_in(function: Environment, authorizer: Node) -> None:
    """Neither what an event says of its sender, nor a header."""
    said = json.dumps({"authorizer": authorizer})
    with Entrance(function, authorizer).serving() as address:
        for headers in ({}, {"x-amzn-request-context": said}, {"authorization": "Bearer agents"}):
            status, problem = ask(address, "/about", **headers)
            assert (status, problem["status"]) == (401, 401)


def test_a_value_as_large_as_a_body_goes_in_and_comes_out(function: Environment) -> None:
    value = noise(4_000_000)
    way_in = Entrance(function)
    with way_in.serving() as address:
        with HttpCheckpointSaver(address, auth=TOKEN) as writer:
            stored = store(writer, thread_config("acme/large"), "1", {"file": value})
            writer.put_writes(stored, [("file", value[::-1])], "task")
            larger = noise(int(VARIABLES[LIMIT]) + 1000, 1)
            with pytest.raises(CheckpointerInputError, match="body"):
                writer.put_writes(stored, [("file", larger)], "another task")
        with HttpCheckpointSaver(address, auth=TOKEN) as reader:
            found = reader.get_tuple(stored)
            listed = list(reader.list(thread_config("acme/large")))
    assert found is not None
    assert found.checkpoint["channel_values"]["file"] == value
    assert found.pending_writes == [("task", "file", value[::-1])]
    assert listed == [found]
    assert way_in.lost == []
