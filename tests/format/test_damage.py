"""Stored data that is not what was written, is newer than this release, or was encrypted with another key.

Damage is an error that names the item, and never a wrong answer or an older state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.serde.types import INTERRUPT

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerError,
    CheckpointFormatError,
    DynamoDBSaver,
)
from tests.support.checkpoints import (
    METADATA,
    all_items,
    checkpoint_of,
    noise,
    store,
    thread_config,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# No engine reads what it stores, so one shows it all.
pytestmark = pytest.mark.engines("dynamodb-local")

Item = dict[str, Any]
CONFIG = thread_config(checkpoint_id="2")
HEAD, SEGMENT, WRITES = "C#2#", "S#", "C#2#W#"
# Long enough for several segments, in the head and among the writes.
VALUES = {"big": [noise(300, number).hex() for number in range(200)], "small": "x"}
# Large enough to be sealed instead of being stored as readable JSON in the head.
SEALED = {"note": "metadata " * 2000}


@pytest.fixture
def saver(make_saver: Callable[..., DynamoDBSaver]) -> DynamoDBSaver:
    """Give a saver with a thread of two checkpoints, the second of which has writes; somebody else stored them."""
    _fill(make_saver())
    return make_saver()


def _fill(saver: DynamoDBSaver, **metadata: Any) -> None:
    parent = store(saver, thread_config(), "1", {"small": "older"})
    config = store(saver, parent, "2", VALUES, **metadata)
    saver.put_writes(config, [("channel", 1), ("channel", 2), (INTERRUPT, "?")], "task-1")


def _items(client: DynamoDBClient, table_name: str, sk: str) -> list[Item]:
    """The items whose sort key is this one, or begins with it where it is not a head's."""
    items = all_items(client, table_name)
    return [
        each for each in items if each["SK"]["S"] == sk or (sk != HEAD and each["SK"]["S"].startswith(sk))
    ]


def _flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 0x40
    return bytes(changed)


Damage = Callable[[Item], Item]


def _flip(name: str, position: int) -> Damage:
    return lambda item: {**item, name: {"B": _flipped(item[name]["B"], position)}}


def _cut(name: str, size: int) -> Damage:
    return lambda item: {**item, name: {"B": item[name]["B"][:size]}}


def _set(name: str, value: dict[str, Any]) -> Damage:
    return lambda item: {**item, name: value}


def _without(name: str) -> Damage:
    return lambda item: {other: value for other, value in item.items() if other != name}


# Byte 0 of a part and of a sealed unit is its format version, which has a test of its own.
DAMAGES: dict[str, tuple[str, Damage]] = {
    "segment: compression": (SEGMENT, _flip("data", 1)),
    "segment: length of the cipher's name": (SEGMENT, _flip("data", 2)),
    "segment: checksum": (SEGMENT, _flip("data", 5)),
    "segment: middle": (SEGMENT, _flip("data", 60)),
    "segment: last byte": (SEGMENT, _flip("data", -1)),
    "segment: cut short": (SEGMENT, _cut("data", 60)),
    "segment: header only": (SEGMENT, _cut("data", 3)),
    "segment: one byte": (SEGMENT, _cut("data", 1)),
    "segment: another type": (SEGMENT, _set("data", {"S": "text"})),
    "segment: no data": (SEGMENT, _without("data")),
    "body: number of segments": (HEAD, _flip("body", 4)),
    "body: id of a segment": (HEAD, _flip("body", 6)),
    "body: middle": (HEAD, _flip("body", -60)),
    "body: last byte": (HEAD, _flip("body", -1)),
    "body: cut short": (HEAD, _cut("body", 10)),
    "body: one byte": (HEAD, _cut("body", 1)),
    "body: another type": (HEAD, _set("body", {"S": "text"})),
    "body: gone": (HEAD, _without("body")),
    "head: no format version": (HEAD, _without("v")),
    "head: format version of another type": (HEAD, _set("v", {"S": "1"})),
    "metadata: no JSON": (HEAD, _set("metadata", {"S": '{"source": '})),
    "metadata: no object": (HEAD, _set("metadata", {"S": "[]"})),
    "metadata: gone": (HEAD, _without("metadata")),
    "writes: middle": (WRITES, _flip("writes", -8)),
    "writes: last byte": (WRITES, _flip("writes", -1)),
    "writes: cut short": (WRITES, _cut("writes", 9)),
    "writes: another type": (WRITES, _set("writes", {"S": "text"})),
    "special write: last byte": (WRITES, _flip("special_3", -1)),
}


def _damage(client: DynamoDBClient, table_name: str, sk: str, damage: Damage) -> None:
    item = _items(client, table_name, sk)[0]
    client.put_item(TableName=table_name, Item=damage(item))


@contextmanager
def _damaged(client: DynamoDBClient, table_name: str, sk: str, damage: Damage) -> Iterator[None]:
    """Damage an item while the block runs, which has to change nothing in the table."""
    whole = _items(client, table_name, sk)[0]
    _damage(client, table_name, sk, damage)
    before = all_items(client, table_name)
    yield
    assert all_items(client, table_name) == before
    client.put_item(TableName=table_name, Item=whole)


def _readings(saver: DynamoDBSaver) -> list[Callable[[], Any]]:
    """Every way in which the damaged checkpoint is asked for."""
    return [
        lambda: saver.get_tuple(thread_config()),
        lambda: saver.get_tuple(CONFIG),
        lambda: list(saver.list(thread_config())),
        lambda: list(saver.list(thread_config(), limit=1, filter={"step": 1})),
        lambda: list(saver.list({"configurable": {"thread_id": "thread-1"}})),
    ]


def _assert_that_all_raise(
    asked: list[Callable[[], Any]], error: type[CheckpointerError], message: str
) -> None:
    for ask in asked:
        with pytest.raises(error, match=message):
            ask()


@pytest.mark.usefixtures("saver")
def test_damage_is_an_error_that_names_the_item_by_whichever_way_it_is_read(
    make_saver: Callable[..., DynamoDBSaver], client: DynamoDBClient, table_name: str
) -> None:
    for sk, damage in DAMAGES.values():
        with _damaged(client, table_name, sk, damage):
            _assert_that_all_raise(
                _readings(make_saver()),
                CheckpointCorruptionError,
                rf"item PK='thread-1#' SK='{sk}.*(?:damaged|missing).*restore .* point-in-time recovery",
            )


def test_a_deleted_segment_is_an_error_that_names_the_checkpoint(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    segment = _items(client, table_name, SEGMENT)[0]
    client.delete_item(TableName=table_name, Key={"PK": segment["PK"], "SK": segment["SK"]})
    _assert_that_all_raise(
        _readings(saver),
        CheckpointCorruptionError,
        rf"SK='C#2#' needs segments .*\(1 missing, first: {segment['SK']['S']}\); restore",
    )


def test_a_change_of_readable_metadata_is_found(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    head = _items(client, table_name, HEAD)[0]
    changed = head["metadata"]["S"].replace('"loop"', '"fork"')
    assert changed != head["metadata"]["S"]
    client.put_item(TableName=table_name, Item={**head, "metadata": {"S": changed}})
    with pytest.raises(CheckpointCorruptionError, match=r"SK='C#2#' is damaged: .*metadata"):
        saver.get_tuple(CONFIG)


def test_damaged_metadata_that_were_sealed_are_found_when_they_are_filtered_by(
    make_saver: Callable[..., DynamoDBSaver], client: DynamoDBClient, table_name: str
) -> None:
    saver = make_saver()
    _fill(saver, **SEALED)
    _damage(client, table_name, HEAD, _flip("sealed_metadata", -1))
    _assert_that_all_raise(_readings(saver), CheckpointCorruptionError, "SK='C#2#' is damaged: its checksum")


def test_a_put_does_not_build_on_a_damaged_parent_and_stores_nothing(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, make_saver: Callable[..., DynamoDBSaver]
) -> None:
    assert saver.get_tuple(CONFIG) is not None
    _damage(client, table_name, SEGMENT, _flip("data", -1))
    before = all_items(client, table_name)
    fresh = make_saver()
    with pytest.raises(CheckpointCorruptionError, match="SK='S#"):
        fresh.put(CONFIG, checkpoint_of("3", VALUES), METADATA, {})
    assert all_items(client, table_name) == before


def test_writes_are_not_merged_into_damaged_ones(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    _damage(client, table_name, WRITES, _flip("writes", -1))
    before = all_items(client, table_name)
    with pytest.raises(CheckpointCorruptionError, match="SK='C#2#W#task-1' is damaged"):
        saver.put_writes(CONFIG, [("channel", number) for number in range(3)], "task-1")
    assert all_items(client, table_name) == before


def test_a_damaged_thread_can_be_deleted(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str
) -> None:
    _damage(client, table_name, SEGMENT, _flip("data", -1))
    _damage(client, table_name, HEAD, _flip("body", -1))
    saver.delete_thread("thread-1")
    assert all_items(client, table_name) == []


# Newer formats


NEWER: dict[str, tuple[str, Damage]] = {
    "head": (HEAD, _set("v", {"N": "9"})),
    "body": (HEAD, lambda item: {**item, "body": {"B": b"\x09" + item["body"]["B"][1:]}}),
    "segment": (SEGMENT, lambda item: {**item, "data": {"B": b"\x09" + item["data"]["B"][1:]}}),
    "writes": (WRITES, lambda item: {**item, "writes": {"B": b"\x09" + item["writes"]["B"][1:]}}),
}


@pytest.mark.usefixtures("saver")
def test_an_item_of_a_newer_format_is_refused_with_what_reads_it(
    make_saver: Callable[..., DynamoDBSaver], client: DynamoDBClient, table_name: str
) -> None:
    for sk, newer in NEWER.values():
        with _damaged(client, table_name, sk, newer):
            _assert_that_all_raise(
                _readings(make_saver()),
                CheckpointFormatError,
                rf"SK='{sk}.*has format version 9,.* up to \d; upgrade langgraph-dynamodb",
            )


@pytest.mark.parametrize("kind", ["head", "body"])
def test_nothing_is_built_on_a_checkpoint_of_a_newer_format(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str
) -> None:
    _damage(client, table_name, *NEWER[kind])
    before = all_items(client, table_name)
    fresh = DynamoDBSaver(table_name, client=client)
    _assert_that_all_raise(
        [
            lambda: fresh.put(CONFIG, checkpoint_of("3", VALUES), METADATA, {}),
            lambda: saver.copy_thread("thread-1", "copy"),
        ],
        CheckpointFormatError,
        "upgrade langgraph-dynamodb",
    )
    # The thread that was to be the copy may have been told its epoch.
    assert [each for each in all_items(client, table_name) if each["PK"]["S"] != "copy#"] == before


@pytest.mark.parametrize("kind", ["head", "body", "writes"])
def test_a_thread_with_items_of_a_newer_format_is_not_pruned(
    saver: DynamoDBSaver, client: DynamoDBClient, table_name: str, kind: str
) -> None:
    store(saver, CONFIG, "3", {"small": "newest"})
    _damage(client, table_name, *NEWER[kind])
    before = all_items(client, table_name)
    with pytest.raises(CheckpointFormatError, match="upgrade langgraph-dynamodb"):
        saver.prune(["thread-1"])
    # The thread item holds the claim of the deletion that failed.
    assert [each for each in all_items(client, table_name) if each["SK"]["S"] != "T"] == [
        each for each in before if each["SK"]["S"] != "T"
    ]


# Keys
