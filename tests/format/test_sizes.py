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


def test_many_channels_and_large_metadata_fit_into_an_item(make_saver: MakeSaver) -> None:
    saver = make_saver()
    conversation = Conversation(saver, "t")
    conversation.put(**{f"channel_{number}": noise(1_024, number) for number in range(500)})
    config, checkpoint, metadata, versions = conversation.change(channel_0=b"changed")
    metadata["notes"] = noise(200_000).hex()
    saver.put(config, checkpoint, metadata, versions)
    found = make_saver().get_tuple(thread_config("t"))
    assert found is not None
    assert found.checkpoint["channel_values"] == conversation.values
    assert found.metadata == metadata
    assert [
        each.metadata for each in saver.list(thread_config("t"), filter={"notes": metadata["notes"]})
    ] == [metadata]


@pytest.mark.engines("dynamodb-local")
def test_sizes_around_every_bound(make_saver: MakeSaver) -> None:
    for size in (0, 1, 15, 16, 17, 4_096, 16_384, 16_400, 16_401, 65_536, 399_999, 400_001):
        conversation = Conversation(make_saver(), f"{size}")
        conversation.put(first=noise(size, 1), second="x" * size)
        conversation.put(first=noise(size, 1) + b"more")
        conversation.put(third=None)
        assert stored_values(make_saver(), thread_config(f"{size}")) == conversation.values
