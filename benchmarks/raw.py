"""Tables on an engine, without a saver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks.contestants import session_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from benchmarks.contestants import Contestant
    from tools.engine import Engine


@contextmanager
def new_table(engine: Engine, contestant: Contestant) -> Iterator[str]:
    """Make an empty table for a contestant, and yield its name."""
    client: DynamoDBClient = session_of(engine).client("dynamodb", endpoint_url=engine.endpoint_url)
    name = f"bench-{uuid4().hex}"
    client.create_table(**{**contestant.schema, "TableName": name})
    try:
        yield name
    finally:
        client.delete_table(TableName=name)
