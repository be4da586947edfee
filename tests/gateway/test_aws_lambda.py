"""The handler for Lambda, in this process; tests/deployed runs it as Lambda does."""

import asyncio
import base64
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")
MODULE = "langgraph.checkpoint.dynamodb.gateway.aws_lambda"
TOKEN = "t" * 32
OWN = {"sha256": [hashlib.sha256(TOKEN.encode()).hexdigest()], "rights": ["administer"]}
PRINCIPALS = {"bearer": {"agents": OWN}}
Invoke = Callable[..., dict[str, Any]]


@pytest.fixture
def invoke(engine: Engine, table_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Give a function that invokes the handler, as API Gateway does, on a thread whose event loop is its own."""
    variables = {
        "AWS_ENDPOINT_URL_DYNAMODB": engine.endpoint_url,
        "LANGGRAPH_CHECKPOINTER_TYPE": "dynamodb",
        "LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME": table_name,
        "LANGGRAPH_GATEWAY_PRINCIPALS": json.dumps(PRINCIPALS),
        "LANGGRAPH_GATEWAY_LIMITS__BODY_BYTES_MAX": "1000",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    # It is made when it is imported.
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with ThreadPoolExecutor(1) as thread:
        module = thread.submit(importlib.import_module, MODULE).result()

        def run(method: str, path: str, body: bytes = b"") -> dict[str, Any]:
            event = {
                "version": "2.0",
                "headers": {
                    "authorization": f"Bearer {TOKEN}",
                    "content-type": "application/json",
                    "content-length": str(len(body)),
                },
                "requestContext": {"http": {"method": method, "path": path, "sourceIp": "203.0.113.7"}},
                "body": base64.b64encode(body).decode(),
                "isBase64Encoded": True,
            }
            answer: dict[str, Any] = thread.submit(module.handler, event, None).result()
            return answer

        yield run
        thread.submit(_end, module).result()
    monkeypatch.delitem(sys.modules, MODULE)


def _end(module: Any) -> None:
    """Do what the end of Lambda's process does: the application closes its saver when it ends."""

    async def begin_and_end() -> None:
        async with module.application.router.lifespan_context(module.application):
            pass

    loop = asyncio.get_event_loop()
    loop.run_until_complete(begin_and_end())
    asyncio.set_event_loop(None)
    loop.close()


def test_events_are_served_one_after_the_other_on_one_event_loop(invoke: Invoke) -> None:
    def delete(thread_id: str) -> dict[str, Any]:
        return invoke("POST", "/checkpoints/delete-thread", json.dumps({"thread_id": thread_id}).encode())

    for _ in range(2):
        answer = delete("no-such-thread")
        assert (answer["statusCode"], json.loads(answer["body"])) == (200, {})
        assert answer["isBase64Encoded"] is False
    refused = delete("t" * 2000)
    assert refused["statusCode"] == 413
    assert refused["headers"]["content-type"] == "application/problem+json"
    assert json.loads(refused["body"])["status"] == 413


def test_the_audit_key_is_read_from_the_secret_that_the_template_names(
    table_name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    del table_name  # It is made where `invoke` finds it, not in what stands in for the secrets.
    with mock_aws():
        secrets = boto3.client("secretsmanager", region_name="eu-west-1")
        arn = secrets.create_secret(Name="audit", SecretString="k" * 32)["ARN"]
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        monkeypatch.setenv("AUDIT_KEY_SECRET_ARN", arn)
        # What the module sets is to be taken back.
        monkeypatch.setenv("LANGGRAPH_GATEWAY_AUDIT_KEY", "")
        request.getfixturevalue("invoke")
    assert os.environ["LANGGRAPH_GATEWAY_AUDIT_KEY"] == "k" * 32


def test_an_answer_that_aws_would_drop_is_a_problem(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[MODULE], "_RESPONSE_BYTES_MAX", 100)
    assert invoke("GET", "/health")["statusCode"] == 200
    answer = invoke("GET", "/about")
    assert answer["statusCode"] == 422
    assert answer["headers"]["content-type"] == "application/problem+json"
    problem = json.loads(answer["body"])
    assert problem["request_id"] == answer["headers"]["x-request-id"]
    assert problem["detail"].endswith(
        "through Lambda 100 are possible; ask for less at a time, or run the gateway on ECS"
    )
