"""Threads for the viewer, on one table, and what asks for documents of them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import boto3
import pytest

from benchmarks.meter import Meter
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from tests.support.checkpoints import table_of_its_own

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Asked:
    """A viewer's documents, by their names and parameters."""

    responses: Responses

    def get(self, name: str, **parameters: Any) -> Any:
        """A document as the page gets it: through JSON, which has to be valid."""
        found = self.responses.document(name, {key: _as_text(each) for key, each in parameters.items()})
        return json.loads(json.dumps(found, allow_nan=False))

    def pages(self, name: str, cursor: str = "before", **parameters: Any) -> Iterator[Any]:
        """A document, page by page."""
        given = parameters
        for _ in range(100):
            page = self.get(name, **given)
            yield page
            if page[cursor] is None:
                return
            given = {**parameters, cursor: page[cursor]}
        pytest.fail("the pages do not end")

    def rows(self, thread: str, ns: str = "") -> list[Any]:
        """The checkpoints of a namespace, the newest first."""
        rows: list[Any] = self.get("tree", thread=thread, ns=ns)["rows"]
        return rows

    def newest(self, thread: str) -> dict[str, str]:
        """What names the newest checkpoint of a thread."""
        return {"thread": thread, "ns": "", "checkpoint": self.rows(thread)[0]["checkpoint"]}

    def values(self, thread: str) -> dict[str, Any]:
        """The channels of the newest checkpoint, by their names."""
        channels = self.get("state", **self.newest(thread))["channels"]
        return {each["name"]: each for each in channels}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture(scope="session")
def table(client: DynamoDBClient) -> Iterator[str]:
    """Give a table that all tests share, each of which has threads of its own."""
    with table_of_its_own(client, "view") as name:
        yield name


@dataclass(frozen=True)
class Raw:
    """The items of threads as they are stored, to look at and to damage."""

    client: DynamoDBClient
    table: str

    def items(self, thread: str, begins: str = "") -> list[Any]:
        """The items of a thread's root namespace whose sort keys begin so."""
        pages: Any = self.client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": f"{quote(thread)}#"}},
        )
        found = [each for page in pages for each in page["Items"]]
        return [each for each in found if each["SK"]["S"].startswith(begins)]

    def change(self, thread: str, sort_key: str, **attributes: Any) -> None:
        """Store other attributes of an item."""
        self.client.update_item(
            TableName=self.table,
            Key={"PK": {"S": f"{quote(thread)}#"}, "SK": {"S": sort_key}},
            AttributeUpdates={name: {"Value": each, "Action": "PUT"} for name, each in attributes.items()},
        )


@pytest.fixture
def raw(client: DynamoDBClient, table: str) -> Raw:
    """Give the items of the table."""
    return Raw(client, table)


@pytest.fixture(scope="session")
def saver(table: str, open_saver: Callable[..., DynamoDBSaver]) -> DynamoDBSaver:
    """Give a saver on the table."""
    return open_saver(table)


@pytest.fixture
def thread() -> str:
    """Give the id of a thread that nobody else has."""
    return f"thread-{uuid.uuid4().hex}"


@pytest.fixture
def asked(saver: DynamoDBSaver) -> Asked:
    """Give a viewer that has read nothing yet."""
    return Asked(Responses(Session(saver)))


@dataclass(frozen=True)
class Metered:
    """A viewer, and what it is charged."""

    asked: Asked
    meter: Meter


@pytest.fixture
def metered(table: str, open_saver: Callable[..., DynamoDBSaver]) -> Metered:
    """Give a viewer whose requests are counted."""
    meter = Meter()
    saver = open_saver(table, session=meter.watch(boto3.Session()))
    return Metered(Asked(Responses(Session(saver))), meter)
