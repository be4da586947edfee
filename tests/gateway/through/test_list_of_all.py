"""A list of all threads through client and service is the saver's own, at once and however many there are."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb.errors import CheckpointFormatError
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, operations
from tests.support.change import change_requests
from tests.support.checkpoints import checkpoint_of, noise, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


def _names(found: Any) -> list[tuple[str, str]]:
    return [(each.config["configurable"]["thread_id"], each.checkpoint["id"]) for each in found]


def _until_failure(listing: Iterator[Any]) -> list[tuple[str, str]]:
    found: list[Any] = []
    with pytest.raises(CheckpointFormatError):
        collections.deque(map(found.append, listing), 0)
    return _names(found)


async def test_a_list_of_all_threads_is_whole(
    make_saver: Callable[..., DynamoDBSaver], make_remote: Callable[..., HttpCheckpointSaver]
) -> None:
    saver, remote = make_saver(), make_remote()
    for thread in range(5):
        parent = None
        for step in range(4):
            values = {"text": noise(20_000, thread), "step": step}
            metadata: Any = {"source": "loop", "step": step, "of": thread % 2}
            config = thread_config(f"thread {thread}", "", parent)
            saver.put(config, checkpoint_of(f"{step}", values), metadata, dict.fromkeys(values, step + 1))
            parent = f"{step}"
    here, there = [*saver.list(None)], [*remote.list(None)]
    assert sorted(_names(here)) == sorted(_names(there))
    assert len(there) == 20
    assert dict(zip(_names(here), here, strict=True)) == dict(zip(_names(there), there, strict=True))
    assert [*remote.list({})] == there
    assert [each async for each in remote.alist({})] == there
    assert len([*remote.list(None, filter={"of": 1}, limit=7)]) == 7
    assert len([*remote.list(None, filter={"of": 1})]) == 8
    assert len([*remote.list(None, limit=11)]) == 11


def test_a_damaged_thread_does_not_keep_others_from_being_listed_on_any_page(
    make_saver: Callable[..., DynamoDBSaver],
    make_remote: Callable[..., HttpCheckpointSaver],
    own_client: Any,
    table_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "_PAGE_MAX", 3)
    saver, remote = make_saver(), make_remote()
    for number in range(4):
        for step in range(5):
            metadata: Any = {"source": "loop", "run_id": "r"}
            saver.put(thread_config(f"{number}"), checkpoint_of(f"{step}", {}), metadata, {})
    own_client.update_item(
        TableName=table_name,
        Key={PARTITION_KEY: {"S": "1#"}, SORT_KEY: {"S": "C#2#"}},
        UpdateExpression="SET v = :newer",
        ExpressionAttributeValues={":newer": {"N": "99"}},
    )
    for metadata_filter in (None, {"run_id": "r"}):
        found = _until_failure(remote.list(None, filter=metadata_filter))
        others = sorted(each for each in found if each[0] != "1")
        assert others == [(thread, f"{step}") for thread in "023" for step in range(5)]


def test_a_list_goes_on_in_another_process(
    make_saver: Callable[..., DynamoDBSaver], make_remote: Callable[..., HttpCheckpointSaver], serve: Any
) -> None:
    saver, remote = make_saver(), make_remote()
    for number in range(40):
        for namespace in ("", "inner"):
            saver.put(thread_config("t", namespace), checkpoint_of(f"{number:02}", {}), {}, {})
    asked = remote.transport
    transports = itertools.cycle([make_remote(serve()).transport, asked])
    change_requests(remote, send=lambda call: asked.send(call))
    listed, found = remote.list({"configurable": {"thread_id": "t"}}), []
    for each in listed:
        found.append(each)
        asked = next(transports)
    assert _names(found) == _names(saver.list({"configurable": {"thread_id": "t"}}))
    assert len(found) == 80


@pytest.mark.parametrize(
    "value",
    [(1, 2), {3}, 2**70, datetime(2026, 1, 2, tzinfo=timezone.utc), UUID(int=5), b"raw", "\ud800", 1.5, None],
    ids=repr,
)
def test_a_filter_may_have_whatever_metadata_have(
    make_saver: Callable[..., DynamoDBSaver], make_remote: Callable[..., HttpCheckpointSaver], value: Any
) -> None:
    saver, remote = make_saver(), make_remote()
    for number, each in enumerate((value, "other", value)):
        metadata: Any = {"source": "loop", "of": each}
        saver.put(thread_config("t"), checkpoint_of(f"{number}", {}), metadata, {})
    for config in (thread_config("t"), None):
        here = _names(saver.list(config, filter={"of": value}))
        assert _names(remote.list(config, filter={"of": value})) == here
        assert _names(remote.list(config, filter={"of": value, "source": "loop"}, limit=1)) == here[:1]


def test_a_list_whose_filter_has_bytes_goes_on_after_its_first_page(
    make_saver: Callable[..., DynamoDBSaver], make_remote: Callable[..., HttpCheckpointSaver]
) -> None:
    saver, remote = make_saver(), make_remote()
    metadata: Any = {"source": "loop", "of": {"raw": b"\xff"}}
    for number in range(20):
        saver.put(thread_config("t"), checkpoint_of(f"{number:02}", {}), metadata, {})
    here = _names(saver.list(thread_config("t"), filter=metadata))
    assert _names(remote.list(thread_config("t"), filter=metadata)) == here
    assert len(here) == 20
