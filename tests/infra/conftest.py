"""What the tests of `infra/` share: stacks that moto's CloudFormation made, and savers behind a policy."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import aioboto3
import boto3
import pytest

from infra.deploy_local import create_stack
from tests.infra.authorization import Gate
from tests.infra.rendering import INFRA, Node
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb import DynamoDBSaver

MakeSaver: TypeAlias = "Callable[..., DynamoDBSaver]"


@pytest.fixture
def aws_cli() -> Path:
    """Give the AWS CLI, which the environment of `make infra-check` has."""
    found = INFRA.parent / ".venv-infra" / "bin" / "aws"
    if not found.exists():
        pytest.skip("the AWS CLI is not installed: make infra-check installs it")
    return found


@pytest.fixture
def cloudformation(engine: Engine) -> Iterator[CloudFormationClient]:
    """Give a client of moto's CloudFormation; DynamoDB Local has none."""
    with contextlib.closing(boto3.client("cloudformation", **engine.client_options())) as client:
        yield client


@pytest.fixture
def stack_outputs(cloudformation: CloudFormationClient) -> Iterator[dict[str, str]]:
    """Give the outputs of a stack that CloudFormation made of `table.yaml`."""
    name = f"checkpoints-{uuid.uuid4().hex}"
    yield create_stack(cloudformation, name, name)
    cloudformation.delete_stack(StackName=name)


@pytest.fixture
def saver_of(make_saver: MakeSaver) -> Callable[[Gate], DynamoDBSaver]:
    """Give a factory of savers whose every request a gate judges, sync and async."""

    def make(gate: Gate, **options: Any) -> DynamoDBSaver:
        sessions = {"session": boto3.Session(), "async_session": aioboto3.Session()}
        for session in sessions.values():
            gate.guard(session)
        return make_saver(**sessions, **options)

    return make


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


def page_verdicts(section: str, page: Path = INFRA.parent / "docs" / "tested.md") -> dict[str, str]:
    """The verdicts in a section of the page of what has been tested."""
    text = page.read_text(encoding="utf-8")
    [found] = re.findall(rf"^## {section}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^\| ([a-z -]+) \| (ok|problem|left out) \|", found, re.MULTILINE))
