"""What the tests of `infra/` share: savers, stores and caches behind a policy."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import boto3
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.infra.authorization import Gate, listed
from tests.infra.rendering import Node
from tools.engine import Engine

Behind: TypeAlias = Callable[..., Any]


@pytest.fixture
def behind(engine: Engine, table_name: str) -> Iterator[Behind]:
    """Give a factory of savers, stores and caches whose every blocking request a gate judges."""
    # Of each gate, since a session and its first client take long to make.
    sessions: dict[int, boto3.Session] = {}
    reach: Any = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
    with contextlib.ExitStack() as stack:

        def make(gate: Gate, kind: Callable[..., Any] = DynamoDBSaver, **options: Any) -> Any:
            if id(gate) not in sessions:
                sessions[id(gate)] = gate.session()
            return stack.enter_context(kind(table_name, session=sessions[id(gate)], **reach, **options))

        yield make


def for_table(document: Node, table_name: str) -> Node:
    """A rendered policy as it would read for this table: only the table's name differs."""
    statements = [
        {
            **statement,
            "Resource": [
                each.replace("langgraph-checkpoints", table_name) for each in listed(statement["Resource"])
            ],
        }
        for statement in document["Statement"]
    ]
    return {**document, "Statement": statements}
