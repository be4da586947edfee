"""The gateway on Lambda, run as Lambda runs it, and reached by a function URL, an HTTP API and a load balancer."""

from __future__ import annotations

import hashlib
import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint

from langgraph.checkpoint.dynamodb import CheckpointerInputError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.deployed.lambda_entrance import Entrance, FunctionUrl, HttpApi, LoadBalancer
from tests.deployed.lambda_environment import Environment
from tests.infra.rendering import Node
from tests.infra.stacks import GATEWAYS
from tools.engine import Engine

# What is tested here is the process, so one engine does.
pytestmark = pytest.mark.engines("dynamodb-local")
LIMIT = "LANGGRAPH_GATEWAY_LIMITS__BODY_BYTES_MAX"
TOKEN = "t" * 32
PRINCIPALS = {
    "iam": {"agents": {"arns": ["arn:aws:iam::210987654321:role/agents"], "tenant": "acme"}},
    "authorizer": {"tenant_claim": "tenant"},
    "bearer": {"agents": {"sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()], "tenant": "acme"}},
}


FUNCTION = GATEWAYS["function URL"].properties("Gateway")
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
    """Send a request; the status and the document of the answer."""
    data = None if document is None else json.dumps(document).encode()
    sent = {"content-type": "application/json", **headers}
    request = urllib.request.Request(f"{address}{path}", data, sent)  # noqa: S310  # This machine's.
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize("entrance", [FunctionUrl, HttpApi])
def test_who_aws_has_authenticated_is_let_in_to_the_threads_of_their_tenant(
    function: Environment, entrance: type[Entrance]
) -> None:
    with entrance(function).serving() as address:
        status, about = ask(address, "/about")
        assert status == 200
        limit = int(VARIABLES[LIMIT])
        assert about["limits"]["body_bytes_max"] == limit
        assert ask(address, "/checkpoints/get-tuple", {"thread_id": "acme/1"})[0] == 200
        status, problem = ask(address, "/checkpoints/get-tuple", {"thread_id": "other/1"})
        assert (status, problem["type"].rpartition(":")[2]) == (403, "CheckpointerConfigurationError")


@pytest.mark.parametrize(
    "role", [None, "arn:aws:sts::210987654321:assumed-role/others/1", "arn:aws:sts::1:assumed-role/agents/1"]
)
def test_who_is_nobody_known_is_not_let_in(function: Environment, role: str | None) -> None:
    """And nothing that a caller may write themselves makes them somebody."""
    said = json.dumps({"requestContext": {"authorizer": {"iam": {"userArn": FunctionUrl.role}}}})
    way_in = FunctionUrl(function)
    way_in.role = role
    with way_in.serving() as address:
        for headers in (
            {},
            {"x-amzn-request-context": said},
            {"authorization": f"Bearer {FunctionUrl.role}"},
        ):
            status, problem = ask(address, "/about", **headers)
            assert (status, problem["status"]) == (401, 401)


def test_a_load_balancer_takes_tokens(function: Environment) -> None:
    with LoadBalancer(function).serving() as address:
        assert ask(address, "/health") == (200, {"status": "ok"})
        assert ask(address, "/about")[0] == 401
        assert ask(address, "/about", authorization=f"Bearer {TOKEN}")[0] == 200


def large_checkpoint(size: int) -> Checkpoint:
    """A checkpoint with a value of so many bytes, which compression does not make fewer."""
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"file": random.Random(0).randbytes(size)}
    checkpoint["channel_versions"] = {"file": "1"}
    return checkpoint


# In an answer of 1 MB a body is base64 text, beside headers.
_OF_A_LOAD_BALANCER = "700000"


@pytest.mark.parametrize(
    ("entrance", "body_bytes_max", "size"),
    [
        (FunctionUrl, VARIABLES[LIMIT], 4_000_000),
        (LoadBalancer, _OF_A_LOAD_BALANCER, 600_000),
    ],
)
def test_a_value_as_large_as_a_body_goes_in_and_comes_out(
    engine: Engine, made_table: str, entrance: type[Entrance], body_bytes_max: str, size: int
) -> None:
    checkpoint = large_checkpoint(size)
    value = checkpoint["channel_values"]["file"]
    config: RunnableConfig = {
        "configurable": {"thread_id": f"acme/{entrance.__name__}-{size}", "checkpoint_ns": ""}
    }
    with Environment.running(HANDLER, variables(engine, made_table, **{LIMIT: body_bytes_max})) as function:
        way_in = entrance(function)
        with way_in.serving() as address:
            with HttpCheckpointSaver(address, auth=TOKEN) as writer:
                stored = writer.put(config, checkpoint, {"step": 1}, {"file": "1"})
                writer.put_writes(stored, [("file", value[::-1])], "task")
                larger = random.Random(1).randbytes(int(body_bytes_max) + 1000)
                with pytest.raises(CheckpointerInputError, match="body"):
                    writer.put_writes(stored, [("file", larger)], "another task")
            with HttpCheckpointSaver(address, auth=TOKEN) as reader:
                found = reader.get_tuple(config)
                listed = list(reader.list(config))
    assert found is not None
    assert found.checkpoint["channel_values"]["file"] == value
    assert found.pending_writes == [("task", "file", value[::-1])]
    assert listed == [found]
    assert way_in.lost == []
