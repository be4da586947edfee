"""What the tests of `infra/` share: savers, stores and caches behind a policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import aioboto3
import boto3
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.infra.authorization import Gate
from tests.infra.rendering import Node
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver: TypeAlias = Callable[..., DynamoDBSaver]
Behind: TypeAlias = Callable[..., Any]


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
