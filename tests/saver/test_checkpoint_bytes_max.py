"""What a checkpoint may take up: a few small items can name gigabytes, and no reader allocates them."""

import tracemalloc
from random import Random

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, seal_plain
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._format.segments import new_id
from tests.support.checkpoints import noise
from tests.support.harness import CODEC, Harness

AT = items.partition_of("t")
MIB = 1024 * 1024
BOMB_SEGMENTS = 8_000
REFUSED = r"SK='C#1#.* needs over \d+ bytes of memory.*checkpoint_bytes_max"


@pytest.fixture
def harness() -> Harness:
    """Give a table with a thread of one checkpoint."""
    harness = Harness()
    harness.run(harness.process().put("1", {"x": "y"}))
    return harness


def _head(harness: Harness) -> Item:
    head: Item = harness.items("C#1#")["C#1#"]
    return head


def _sealed_body(harness: Harness) -> bytes:
    part = items.parse_part(_head(harness), items.BODY)
    assert part is not None
    return part.sealed


def _add_segment(harness: Harness, content: bytes, *, index: bool = False) -> bytes:
    """Store a segment, and return its id."""
    segment_id = new_id(Random(len(content)), index=index)
    sealed = seal_plain(content, items.segment_sk(segment_id))
    harness.change(items.created(items.segment_item(AT, segment_id, sealed), 0))
    return segment_id


def _add_bomb(harness: Harness) -> bytes:
    """Store two small segments that stand for 500 MiB; return the id of the index segment."""
    segment_id = _add_segment(harness, bytes(64 * 1024))
    index_id = _add_segment(harness, segment_id * BOMB_SEGMENTS, index=True)
    assert all(len(each[items.DATA]["B"]) < 200 for each in harness.items(items.SEGMENTS).values())
    return index_id


def _assert_refused(harness: Harness) -> None:
    """Reading it is an error, and takes up little."""
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointerConfigurationError, match=REFUSED):
            harness.process().get()
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


def test_three_small_items_whose_values_are_gigabytes_are_refused(harness: Harness) -> None:
    index_id, head = _add_bomb(harness), _head(harness)
    kind, data, _, *rest = ormsgpack.unpackb(CODEC.open(_sealed_body(harness), head, items.BODY))
    rows = [["x", "msgpack", b"", 32 * BOMB_SEGMENTS, b""]]
    sealed = CODEC.seal(ormsgpack.packb([kind, data, rows, *rest]), head, items.BODY)
    harness.change(head, body=Part((), (index_id,) * 32, sealed).attribute("C#1#"))
    _assert_refused(harness)


@pytest.mark.parametrize("name", [items.BODY, pytest.param(items.WRITES, marks=pytest.mark.search)])
def test_three_small_items_whose_content_is_gigabytes_are_refused(harness: Harness, name: str) -> None:
    index_id = _add_bomb(harness)
    writes = {**items.key(AT.pk, items.writes_sk("1", "task")), items.EPOCH: {"B": b""}}
    at = _head(harness) if name == items.BODY else writes
    harness.change(at, **{name: Part((index_id,) * 32, (), b"").attribute(items.sort_key(at))})
    _assert_refused(harness)


def test_what_would_be_too_large_to_be_read_is_not_stored(harness: Harness) -> None:
    small, other = (harness.process(codec=Codec(JsonPlusSerializer(), bytes_max=100_000)) for _ in range(2))
    harness.run(small.put("2", {"x": noise(99_000)}, "1"))
    before = harness.model.items()
    two = {"x": noise(60_000), "y": noise(60_000, 1)}
    for refused in (
        small.put("3", two, "2"),
        other.put("3", {"x": noise(101_000)}, "2"),
        small.put("3", {}, "2", note=noise(60_000).hex()),
        small.put_writes("2", list(two.items())),
    ):
        with pytest.raises(CheckpointerConfigurationError, match=r"over 100000 bytes.*checkpoint_bytes_max"):
            harness.run(refused)
    assert harness.model.items() == before
    # In a list, each counts alone.
    harness.run(small.put("3", {"x": noise(99_000, 3)}, "2"))
    assert other.ids() == ["3", "2", "1"]
