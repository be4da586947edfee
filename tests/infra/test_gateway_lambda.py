"""The gateway on Lambda, run as Lambda runs it, and reached by a function URL, an HTTP API and a load balancer."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._runtime.clients import default_config
from tests.infra import lambda_runtime
from tests.infra.lambda_entrance import Entrance, FunctionUrl, HttpApi, LoadBalancer
from tests.infra.rendering import Node, load, render
from tests.infra.test_gateway_templates import PACKAGE
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What is tested here is the process, so one engine does.
pytestmark = pytest.mark.engines("dynamodb-local")
HANDLER = "langgraph.checkpoint.dynamodb.gateway.aws_lambda.handler"
TOKEN = "t" * 32
PRINCIPALS = {
    "iam": {"agents": {"arns": ["arn:aws:iam::210987654321:role/agents"], "tenant": "acme"}},
    "authorizer": {"tenant_claim": "tenant"},
    "bearer": {"agents": {"sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()], "tenant": "acme"}},
}


def variables_of_the_template() -> dict[str, str]:
    """The environment of the function, as the template has it."""
    exports = render(load("table.yaml")).exports
    given = {"TableStackName": "checkpoints", **PACKAGE}
    function = render(load("gateway.yaml"), given, exports=exports).properties("Gateway")
    assert function["Handler"] == HANDLER
    found: dict[str, str] = function["Environment"]["Variables"]
    return found


@contextlib.contextmanager
def running(engine: Engine, table_name: str, **others: str) -> Iterator[subprocess.Popen[str]]:
    """Run the handler in a process; its variables are the template's, and others."""
    variables = {
        **engine.environment(),
        **variables_of_the_template(),
        "LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME": table_name,
        "LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps(PRINCIPALS),
        "PYTHONPATH": str(Path.cwd()),
        **others,
    }
    with subprocess.Popen(  # noqa: S603  # Our own program, in the interpreter of the tests.
        [sys.executable, lambda_runtime.__file__, HANDLER],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        # It ends with its input.
        yield process


@pytest.fixture(scope="module")
def made_table(client: DynamoDBClient) -> Iterator[str]:
    """Give the name of a table for all of these tests."""
    name = f"gateway-{uuid.uuid4().hex}"
    client.create_table(**table_schema(name))
    yield name
    client.delete_table(TableName=name)


@pytest.fixture(scope="module")
def function(engine: Engine, made_table: str) -> Iterator[subprocess.Popen[str]]:
    """Give an execution environment for all of these tests."""
    with running(engine, made_table) as process:
        yield process


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
    function: subprocess.Popen[str], entrance: type[Entrance]
) -> None:
    with entrance(function).serving() as address:
        status, about = ask(address, "/about")
        assert status == 200
        limit = int(variables_of_the_template()["LANGGRAPH_GATEWAY_LIMITS__BODY_BYTES_MAX"])
        assert about["limits"]["body_bytes_max"] == limit
        status, problem = ask(address, "/checkpoints/get-tuple", {"thread_id": "other/1"})
        assert (status, problem["type"].rpartition(":")[2]) == (403, "CheckpointerConfigurationError")


@pytest.mark.parametrize(
    "role", [None, "arn:aws:sts::210987654321:assumed-role/others/1", "arn:aws:sts::1:assumed-role/agents/1"]
)
def test_who_is_nobody_known_is_not_let_in(function: subprocess.Popen[str], role: str | None) -> None:
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


def test_a_load_balancer_takes_tokens(function: subprocess.Popen[str]) -> None:
    with LoadBalancer(function).serving() as address:
        assert ask(address, "/health") == (200, {"status": "ok"})
        assert ask(address, "/about")[0] == 401
        assert ask(address, "/about", authorization=f"Bearer {TOKEN}")[0] == 200


def test_what_may_go_by_before_an_answer_fits_into_the_time_out() -> None:
    """The attempts of a request to DynamoDB, then the service's own bound, then Lambda's."""
    variables = variables_of_the_template()
    config = default_config()
    trying = float(variables["LANGGRAPH_CHECKPOINTER_CONFIG__RETRY_SECONDS"])
    attempt = config.connect_timeout + config.read_timeout
    bound = float(variables["LANGGRAPH_GATEWAY_LIMITS__REQUEST_SECONDS_MAX"])
    exports = render(load("table.yaml")).exports
    given = {"TableStackName": "checkpoints", **PACKAGE}
    function = render(load("gateway.yaml"), given, exports=exports).properties("Gateway")
    assert trying + attempt < bound < int(function["Timeout"])
