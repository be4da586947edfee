"""What the tests of `infra/` share: an emulator of AWS, and savers behind a policy."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import aioboto3
import boto3
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import REQUIRE_LOCAL_VARIABLE
from tests.infra.authorization import Gate
from tests.infra.rendering import INFRA, Node
from tools.engine import LOCAL_ENVIRONMENT, Engine
from tools.server import Server

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Client: TypeAlias = Callable[[str], Any]
MakeSaver: TypeAlias = Callable[..., DynamoDBSaver]
Behind: TypeAlias = Callable[..., Any]
MINISTACK = INFRA.parent / ".venv-aiobotocore" / "bin" / "ministack"
MINISTACK_SETTINGS = {
    "GATEWAY_PORT": "{port}",
    "BIND_HOST": "127.0.0.1",
    "MINISTACK_ACCOUNT_ID": "123456789012",
    "LOG_LEVEL": "ERROR",
    # It applies policies, and whoever has this key may do everything.
    "AUTH": "true",
    "AWS_ACCESS_KEY_ID": LOCAL_ENVIRONMENT["AWS_ACCESS_KEY_ID"],
    "AWS_SECRET_ACCESS_KEY": LOCAL_ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
    # Ports of their own, for services that no template here has.
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
}


@pytest.fixture(scope="module")
def emulator() -> Iterator[Client]:
    """Give a factory of clients of an emulator that has a package in a bucket."""
    if not MINISTACK.exists():
        says = "MiniStack is not installed: `make test-all` installs it"
        pytest.fail(says) if os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1" else pytest.skip(says)
    settings = [f"{name}={value}" for name, value in MINISTACK_SETTINGS.items()]
    server = Server("MiniStack", ("env", *settings, str(MINISTACK)))
    # Its types know each service by its own name only.
    any_client: Any = boto3.client
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(server.run())

        def make(service: str) -> Any:
            return stack.enter_context(
                contextlib.closing(
                    any_client(
                        service,
                        endpoint_url=address,
                        region_name=LOCAL_ENVIRONMENT["AWS_REGION"],
                        aws_access_key_id=LOCAL_ENVIRONMENT["AWS_ACCESS_KEY_ID"],
                        aws_secret_access_key=LOCAL_ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
                    )
                )
            )

        package = io.BytesIO()
        with zipfile.ZipFile(package, "w") as archive:
            archive.writestr("handler.py", "def handler(event, context): ...\n")
        storage = make("s3")
        storage.create_bucket(Bucket="packages")
        storage.put_object(Bucket="packages", Key="key", Body=package.getvalue())
        yield make


@pytest.fixture
async def behind(engine: Engine, table_name: str) -> AsyncIterator[Behind]:
    """Give a factory of savers, stores and caches whose every request a gate judges, sync and async."""
    made: list[Any] = []
    # Of each gate, since sessions and their first clients take long to make.
    sessions: dict[int, dict[str, Any]] = {}

    def make(gate: Gate, kind: Callable[..., Any] = DynamoDBSaver, **options: Any) -> Any:
        if id(gate) not in sessions:
            sessions[id(gate)] = {"session": boto3.Session(), "async_session": aioboto3.Session()}
            for session in sessions[id(gate)].values():
                gate.guard(session)
        reach = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        made.append(kind(table_name, **reach, **sessions[id(gate)], **options))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()
        each.close()


def for_table(document: Node, table_name: str) -> Node:
    """A rendered policy as it would read for this table: only the table's name differs."""
    statements = [
        {
            **statement,
            "Resource": [
                each.replace("langgraph-checkpoints", table_name) for each in resources_of(statement)
            ],
        }
        for statement in document["Statement"]
    ]
    return {**document, "Statement": statements}


def resources_of(statement: Node) -> list[str]:
    """The resources that a statement names."""
    named: str | list[str] = statement["Resource"]
    return named if isinstance(named, list) else [named]


def contents(client: DynamoDBClient, table_name: str) -> list[dict[str, Any]]:
    """Every item of a table, in the order of its keys."""
    pages = client.get_paginator("scan").paginate(TableName=table_name, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"]]
    return sorted(items, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
