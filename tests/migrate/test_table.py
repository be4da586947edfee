"""Stores of one table and of others beside it: each reads, writes, deletes and locks in its own."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.migrate import TableEndpoint


@pytest.fixture
def store() -> TableEndpoint:
    """A store that asks for nothing."""
    return TableEndpoint(DynamoDBSaver("in-use", region_name="eu-west-1"))


def test_a_store_beside_another_one_has_a_saver_of_its_own_table(store: TableEndpoint) -> None:
    """What deletes or locks by it must not do so in the table in use."""
    beside = store.beside("restored")
    assert beside.table_name == "restored"
    assert beside.saver.storage.table.name == "restored"
    assert store.saver.storage.table.name == "in-use"


def test_a_store_with_another_ttl_has_a_saver_with_it(store: TableEndpoint) -> None:
    assert store.with_ttl(60).saver.storage.ttl_seconds == 60
    assert store.saver.storage.ttl_seconds is None


def test_a_thread_is_not_copied_onto_itself(store: TableEndpoint) -> None:
    with pytest.raises(CheckpointerInputError, match="another id"):
        store.with_ttl(60).copy(store, "thread", "thread")
