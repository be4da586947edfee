"""What a checkpoint may take up: a few small items can name gigabytes, and no reader allocates them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, seal_plain
from langgraph.checkpoint.dynamodb._format.content import Write, pack_writes
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._format.segments import new_id
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from tests.fuzz.tables import Thread, loaded, run, with_item
from tests.support.checkpoints import all_items, noise, store, stored_values, thread_config
from tests.support.harness import CODEC, Harness

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MakeSaver = Callable[..., DynamoDBSaver]
AT = items.partition_of("t")
MIB = 1024 * 1024
REFUSED = r"SK='C#1#.* needs over \d+ bytes of memory.*checkpoint_bytes_max"


def _thread() -> tuple[Thread, Item]:
    """A thread of one checkpoint, and its head."""
    harness = Harness()
    harness.run(harness.process().put("1", {"x": "y"}))
    thread = Thread(tuple(harness.model.items()), CODEC)
    return thread, next(each for each in thread.items if items.BODY in each)


def _segment(content: bytes, *, index: bool) -> tuple[bytes, Item]:
    segment_id = new_id(Random(len(content)), index=index)
    sealed = seal_plain(content, items.segment_sk(segment_id))
    return segment_id, items.created(items.segment_item(AT, segment_id, sealed), 0)


def _assert_refused(thread: Thread, codec: Codec = CODEC) -> None:
    """Reading it is an error, and takes up little."""
    harness = loaded(thread)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointerConfigurationError, match=REFUSED):
            run(harness, lambda storage: get_tuple(replace(storage, codec=codec), thread_config("t")))
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


def _bomb() -> tuple[bytes, list[Item], int]:
    """Two small segments that stand for 500 MiB; with the id of the index segment, and how many ids that holds."""
    segment_id, segment = _segment(bytes(64 * 1024), index=False)
    index_id, index = _segment(segment_id * 8_000, index=True)
    assert all(len(each[items.DATA]["B"]) < 200 for each in (segment, index))
    return index_id, [segment, index], 8_000


def test_three_small_items_whose_values_are_gigabytes_are_refused() -> None:
    thread, head = _thread()
    index_id, segments, count = _bomb()
    part = items.parse_part(head, items.BODY)
    assert part is not None
    kind, data, _, *rest = ormsgpack.unpackb(CODEC.open(part.sealed, head, items.BODY))
    rows = [["x", "msgpack", b"", 32 * count, b""]]
    sealed = CODEC.seal(ormsgpack.packb([kind, data, rows, *rest]), head, items.BODY)
    bomb = {**head, items.BODY: Part((), (index_id,) * 32, sealed).attribute(items.sort_key(head))}
    for segment in segments:
        thread = with_item(thread, None, segment)
    _assert_refused(with_item(thread, head, bomb))


@pytest.mark.parametrize("name", [items.BODY, pytest.param(items.WRITES, marks=pytest.mark.search)])
def test_three_small_items_whose_content_is_gigabytes_are_refused(name: str) -> None:
    thread, head = _thread()
    index_id, segments, _ = _bomb()
    at = (
        head
        if name == items.BODY
        else {**items.key(AT.pk, items.writes_sk("1", "task")), items.EPOCH: {"B": b""}}
    )
    bomb = {**at, name: Part((index_id,) * 32, (), b"").attribute(items.sort_key(at))}
    for segment in segments:
        thread = with_item(thread, None, segment)
    _assert_refused(with_item(thread, at, bomb))


def test_many_groups_of_writes_that_are_large_together_are_refused() -> None:
    thread, _ = _thread()
    for number in range(20):
        at = items.key(AT.pk, items.writes_sk("1", f"task-{number}"))
        raw = pack_writes([Write(0, "x", "bytes", bytes(4 * MIB), "")])
        writes = Part((), (), CODEC.seal(raw, at, items.WRITES)).attribute(items.sort_key(at))
        thread = with_item(thread, None, {**at, items.WRITES: writes})
    _assert_refused(thread, Codec(JsonPlusSerializer(), bytes_max=16 * MIB))
    found = run(loaded(thread), lambda storage: get_tuple(replace(storage, codec=CODEC), thread_config("t")))
    assert len(found.pending_writes) == 20


def test_many_segments_that_are_large_together_are_refused() -> None:
    thread, head = _thread()
    segments = [_segment(bytes(64 * 1024 - number), index=False) for number in range(200)]
    for _, segment in segments:
        thread = with_item(thread, None, segment)
    part = items.parse_part(head, items.BODY)
    assert part is not None
    bomb = {**head, items.BODY: Part((), tuple(each for each, _ in segments), part.sealed).attribute("C#1#")}
    thread = with_item(thread, head, bomb)
    codec = Codec(JsonPlusSerializer(), bytes_max=MIB)
    with pytest.raises(CheckpointerConfigurationError, match="checkpoint_bytes_max"):
        run(loaded(thread), lambda storage: get_tuple(replace(storage, codec=codec), thread_config("t")))


@pytest.mark.engines("dynamodb-local")
def test_what_would_be_too_large_to_be_read_is_not_stored(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    small = make_saver(checkpoint_bytes_max=100_000)
    config = store(small, thread_config(), "1", {"x": noise(99_000)})
    before = all_items(client, table_name)
    for refused in (
        lambda: store(small, config, "2", {"x": noise(60_000), "y": noise(60_000)}),
        lambda: store(make_saver(checkpoint_bytes_max=100_000), config, "2", {"x": noise(101_000)}),
        lambda: store(small, config, "2", {}, note=noise(60_000).hex()),
        lambda: small.put_writes(config, [("x", noise(60_000)), ("y", noise(60_000))], "task"),
    ):
        with pytest.raises(CheckpointerConfigurationError, match=r"over 100000 bytes.*checkpoint_bytes_max"):
            refused()
    assert all_items(client, table_name) == before
    reader = make_saver(checkpoint_bytes_max=100_000)
    assert stored_values(reader, thread_config()) == {"x": noise(99_000)}
    for number in range(2, 5):
        config = store(small, config, str(number), {"x": noise(99_000, number)})
    assert len(list(reader.list(thread_config()))) == 4
    large = make_saver()
    store(large, config, "9", {"x": noise(200_000)})
    with pytest.raises(CheckpointerConfigurationError, match=r"SK='C#9#'.*checkpoint_bytes_max"):
        reader.get_tuple(thread_config())
    assert stored_values(large, thread_config()) == {"x": noise(200_000)}
