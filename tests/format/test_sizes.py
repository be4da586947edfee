"""Any state size: what is far over the size of an item is stored, read, pruned, copied and deleted like the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import Conversation, all_items, noise, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver = Callable[..., DynamoDBSaver]

LARGE = pytest.mark.engines("dynamodb-local")  # moto's server takes minutes for thousands of items.


@pytest.mark.search
@LARGE
def test_a_value_of_25_megabytes(make_saver: MakeSaver) -> None:
    saver, value = make_saver(), noise(25_000_000)
    conversation = Conversation(saver, "t")
    conversation.put(documents=value, count=0)
    conversation.put(count=1)
    assert stored_values(make_saver(), thread_config("t")) == {"documents": value, "count": 1}


@LARGE
def test_a_large_thread_is_copied_and_deleted(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    saver, value = make_saver(), noise(3_000_000)
    Conversation(saver, "t").put(documents=value)
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    assert stored_values(make_saver(), thread_config("copy"))["documents"] == value
    saver.delete_thread("copy")
    assert all_items(client, table_name) == []
