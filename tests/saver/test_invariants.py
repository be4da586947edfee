"""Ids are data, what was stored stays readable, and damage is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langgraph.checkpoint.dynamodb._format.items import FORMAT_VERSION
from tests.conftest import NO_SECOND_OPINION, MakeSaver
from tests.support.checkpoints import Conversation, all_items, stored_values, thread_config
from tests.support.format_fixtures import THREADS, read_items
from tests.support.observable import described

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

pytestmark = NO_SECOND_OPINION


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
@pytest.mark.parametrize("name", THREADS)
async def test_what_an_earlier_release_stored_is_read_as_it_was(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, version: int, name: str
) -> None:
    """Stored data outlives the code: every format version that was ever released is read exactly."""
    store, options = THREADS[name]
    for item in read_items(name, version):
        client.put_item(TableName=table_name, Item=item)
    saver = make_saver(**options())
    expected = InMemorySaver(serde=saver.serde)
    store(expected)

    kept = {str(each.config): each for each in expected.list(None)}
    found = {str(each.config): each for each in saver.list(None)}
    assert kept
    assert found.keys() == kept.keys()
    for place, each in found.items():
        assert described(each) == described(kept[place])
        assert saver.get_tuple(each.config) == each
        channels = ["log", "text", "list"]
        history = saver.get_delta_channel_history(config=each.config, channels=channels)
        assert history == expected.get_delta_channel_history(config=each.config, channels=channels)


async def test_a_thread_of_an_earlier_release_can_be_continued(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    """A newer release goes on with an older release's thread, copies it and deletes it."""
    for item in read_items("segmented", 1):
        client.put_item(TableName=table_name, Item=item)
    saver = make_saver()
    newest = saver.get_tuple(thread_config("segmented"))
    assert newest is not None
    conversation = Conversation(saver, "segmented")
    conversation.config = newest.config
    conversation.values = dict(newest.checkpoint["channel_values"])
    conversation.versions = dict(newest.checkpoint["channel_versions"])
    config, checkpoint, metadata, versions = conversation.change(more="and more")
    saver.put(config, {**checkpoint, "id": "2"}, metadata, versions)
    saver.copy_thread("segmented", "copy")
    saver.delete_thread("segmented")

    again = stored_values(make_saver(), thread_config("copy"))
    assert again == {**newest.checkpoint["channel_values"], "more": "and more"}
    saver.delete_thread("copy")
    assert all_items(client, table_name) == []
