"""The savers that threads are moved between, and the threads: each kind that LangGraph makes."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_checkpoint_aws import DynamoDBSaver as AmazonSaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate import SaverEndpoint, TableEndpoint, endpoint_of, open_endpoint
from tools.engine import Engine

OTHERS = ("postgres", "sqlite", "aws", "memory")


@pytest.fixture
def table(make_saver: Callable[..., DynamoDBSaver]) -> TableEndpoint:
    """Give the store of a table of ours."""
    return TableEndpoint(make_saver())


@pytest.fixture
def amazon_table(other_table: Callable[..., str]) -> str:
    """Give the name of a table as langgraph-checkpoint-aws wants it."""
    return other_table(
        TableName=f"aws-{uuid.uuid4().hex}",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in ("PK", "SK")],
        BillingMode="PAY_PER_REQUEST",
    )


@pytest.fixture
def open_other(
    request: pytest.FixtureRequest, engine: Engine, tmp_path: Path, sessions: dict[str, Any]
) -> Iterator[Callable[[str], SaverEndpoint]]:
    """Give what opens an empty saver of another kind, as a store."""
    with contextlib.ExitStack() as stack:

        def open_other(kind: str) -> SaverEndpoint:
            if kind == "memory":
                return SaverEndpoint(InMemorySaver())
            if kind == "postgres":
                place = request.getfixturevalue("postgres_url")
            elif kind == "sqlite":
                place = f"sqlite:{tmp_path / 'threads.db'}"
            else:
                table, session = request.getfixturevalue("amazon_table"), sessions["session"]
                return endpoint_of(AmazonSaver(table, session=session, endpoint_url=engine.endpoint_url))
            return stack.enter_context(open_endpoint(place, as_target=True))

        yield open_other


@pytest.fixture
def other(request: pytest.FixtureRequest, open_other: Callable[[str], SaverEndpoint]) -> SaverEndpoint:
    """Give an empty saver of each other kind."""
    return open_other(request.param)
