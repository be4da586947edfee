"""`copy_thread` where the thread lacks segments: what cannot be whole is never copied as if it were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format import items
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import Conversation, all_items, noise, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What is missing is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def three(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Store three checkpoints, of which the later two lack a segment that an index segment of both leads to."""
    use_small_limits(monkeypatch)
    conversation = Conversation(saver, "t")
    configs = [
        conversation.put(step=0),
        conversation.put(noise=noise(4_000)),
        conversation.put(step=2),
    ]
    named = items.named_ids(all_items(client, table_name, begins="C#"))
    inner = next(
        each
        for each in all_items(client, table_name, begins="S#")
        if items.segment_id_of(each) not in named and items.segment_id_of(each)[0] % 2 == 0
    )
    client.delete_item(TableName=table_name, Key=items.key(items.partition_key(inner), items.sort_key(inner)))
    return [each["configurable"]["checkpoint_id"] for each in configs]


def _never_acknowledge(client: DynamoDBClient, table_name: str, checkpoint_id: str) -> None:
    client.update_item(
        TableName=table_name,
        Key=items.key("t#", items.checkpoint_prefix(checkpoint_id)),
        UpdateExpression="SET epoch = :other",
        ExpressionAttributeValues={":other": {"B": b"another epoch"}},
    )


@pytest.mark.parametrize("newest_counts", [True, False])
def test_a_damaged_checkpoint_is_not_copied_also_where_its_index_segment_was(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, three: list[str], *, newest_counts: bool
) -> None:
    if not newest_counts:
        _never_acknowledge(client, table_name, three[2])
    with pytest.raises(CheckpointCorruptionError, match="needs segments that are not in the table"):
        saver.copy_thread("t", "copy")
    assert list(saver.list(thread_config("copy"))) == []


def test_checkpoints_that_never_counted_are_left_out(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, three: list[str]
) -> None:
    for checkpoint_id in three[1:]:
        _never_acknowledge(client, table_name, checkpoint_id)
    saver.copy_thread("t", "copy")
    assert [each.checkpoint["id"] for each in saver.list(thread_config("copy"))] == three[:1]
