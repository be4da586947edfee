"""Memories on the first page: of an owner or under labels, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.thread_view import Session
from langgraph.store.dynamodb import DynamoDBStore
from tests.view.conftest import Asked

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def store(table: str, client: DynamoDBClient) -> Iterator[DynamoDBStore]:
    """Give a store on the table."""
    with DynamoDBStore(table, client=client) as store:
        yield store


def test_an_owners_memories_come_page_by_page(
    saver: DynamoDBSaver, store: DynamoDBStore, thread: str
) -> None:
    for number in range(25):
        store.put(("users", thread, "facts"), f"{number:02}", {"number": number})
    store.put((thread,), "own", {"a/b": "c"})
    store.put(("users", "somebody else"), "other", {"number": 0})
    asked = Asked(Responses(Session(saver), None, lambda: store))
    first = asked.get("memories", of=thread)
    assert [each["key"] for each in first["memories"][:2]] == ["own", "24"]
    second = asked.get("memories", of=thread, offset=first["offset"])
    assert (len(first["memories"]), len(second["memories"]), second["offset"]) == (20, 6, None)
    assert first["memories"][0]["value"]["entries"][0]["key"] == "a/b"
    [found] = asked.get("memories", of="users/somebody%20else")["memories"]
    assert found["namespace"] == ["users", "somebody else"]
    with pytest.raises(CheckpointerInputError, match="the namespace 'users//' cannot be used"):
        asked.get("memories", of="users//")


def test_a_page_without_a_store_says_so(asked: Asked) -> None:
    with pytest.raises(CheckpointerInputError, match="has no store"):
        asked.get("memories", of="ada")
