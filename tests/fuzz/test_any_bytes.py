"""Any bytes in any attribute: a clean result, or an error of this package that says what is wrong. Never anything else.

Every operation runs on each damaged thread, and counts as endless after some thousand rounds or requests.
"""

import os
import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress

import ormsgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointFormatError,
    CheckpointNotFoundError,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import _envelope, seal_plain
from langgraph.checkpoint.dynamodb._format.compression import compress
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._format.segments import is_index
from tests.fuzz.mutations import VERIFIED, damaged_attributes, odd_keys, resealed
from tests.fuzz.tables import PLAIN, Thread, loaded, run, threads, with_item
from tests.support.examples import percent

EXAMPLES = int(os.environ.get("LANGGRAPH_DYNAMODB_FUZZ_EXAMPLES", percent(25)))
# What an operation may take up, though what it is told to read has no end.
BYTES_MAX = 128 * 1024 * 1024

# The thread may seem to have a newer format, a history that is cut, or a deletion that is under way.
CLEAN = (CheckpointCorruptionError, CheckpointFormatError, CheckpointNotFoundError, ThreadBusyError)
# What has the right checksum is intact, so the saver's serializer or key is what seems wrong.
CLEAN_IF_INTACT = (*CLEAN, CheckpointerConfigurationError)

few = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
any_thread = pytest.mark.parametrize("kind", ["plain", "encrypted", "segmented", "delta"])


def _outcomes(
    thread: Thread, damaged: Thread, clean: tuple[type[Exception], ...]
) -> Iterator[tuple[str, object]]:
    """Ask the damaged thread for everything that there was; give what the readings returned, where they did."""
    table = loaded(damaged)
    for name, operation in thread.readings().items():
        with suppress(*clean):
            yield name, run(table, operation)
    for operation in thread.changes().values():
        with suppress(*clean):
            run(loaded(damaged), operation)


def _intact(old: Item, new: Item) -> bool:
    """Whether all that has changed is something that no checksum covers, or is gone."""
    return not any(old.get(name) != new[name] for name in new.keys() & VERIFIED)


@any_thread
@few
@given(data=st.data())
def test_a_damaged_attribute_is_found_or_makes_no_difference(kind: str, data: st.DataObject) -> None:
    thread, old, new = data.draw(damaged_attributes(threads()[kind]))
    readings = thread.readings()
    for name, result in _outcomes(thread, with_item(thread, old, new), CLEAN):
        if name.startswith("get_tuple") and not _intact(old, new):
            assert result == run(loaded(thread), readings[name])


@any_thread
@few
@given(data=st.data())
def test_an_item_under_any_other_key_is_found_or_makes_no_difference(kind: str, data: st.DataObject) -> None:
    thread, old, new = data.draw(odd_keys(threads()[kind]))
    readings = thread.readings()
    for name, result in _outcomes(thread, with_item(thread, old, new), CLEAN):
        if name.startswith("get_tuple") and not _has(result, new):
            assert result == run(loaded(thread), readings[name])


def _has(result: object, item: Item) -> bool:
    """Tell whether a reading is of the checkpoint that an item belongs to by its key."""
    if not isinstance(result, CheckpointTuple):
        return False
    prefix = items.checkpoint_prefix(result.config["configurable"]["checkpoint_id"])
    return items.sort_key(item).startswith(prefix)


@any_thread
@few
@given(data=st.data())
def test_content_that_nobody_wrote_raises_only_errors_of_this_package(kind: str, data: st.DataObject) -> None:
    """Its checksum is right, so it may also be read."""
    thread, old, new = data.draw(resealed(threads()[kind]))
    outcomes = list(_outcomes(thread, with_item(thread, old, new), CLEAN_IF_INTACT))
    assert {name for name, _ in outcomes} <= thread.readings().keys()


# What has no end, and what must not run


def _newest(thread: Thread) -> tuple[Item, Part]:
    """The head that a reader finds first, and its body."""
    heads = [item for item in thread.items if items.BODY in item]
    head = max(heads, key=lambda item: (items.sort_key(item), items.partition_key(item)))
    part = items.parse_part(head, items.BODY)
    assert part is not None
    return head, part


def _newest_of(thread: Thread) -> str:
    """The name of what reads that head."""
    head, _ = _newest(thread)
    namespace = items.parse_partition(items.partition_key(head)).namespace
    return f"get_tuple: newest of {namespace!r}"


def _with_body(thread: Thread, part: Part) -> Thread:
    head, _ = _newest(thread)
    return with_item(thread, head, {**head, items.BODY: part.attribute(items.sort_key(head))})


def _with_value(kind: str, data: bytes) -> Thread:
    """The plain thread, whose newest checkpoint has a value that was serialized to this."""
    thread = threads()["plain"]
    head, part = _newest(thread)
    *checkpoint, _, digest, sources, parent = ormsgpack.unpackb(PLAIN.open(part.sealed, head, items.BODY))
    raw = ormsgpack.packb([*checkpoint, [["count", kind, 0, [[0, data]]]], digest, sources, parent])
    return _with_body(thread, Part((), (), PLAIN.seal(raw, head, items.BODY)))


def _with_indexes(content: Callable[[int, list[bytes]], bytes]) -> Thread:
    """The segmented thread, each of whose index segments holds what is made from its place and the ids of all."""
    thread = threads()["segmented"]
    segments = [item for item in thread.items if items.DATA in item]
    indexes = [item for item in segments if is_index(items.segment_id_of(item))]
    ids = [items.segment_id_of(item) for item in indexes]
    for place, item in enumerate(indexes):
        sealed = seal_plain(content(place, ids), items.sort_key(item))
        thread = with_item(thread, item, {**item, items.DATA: {"B": sealed}})
    return thread


def _with_sealed_body(compression: int, payload: bytes) -> Thread:
    thread = threads()["plain"]
    head, _ = _newest(thread)
    return _with_body(thread, Part((), (), _envelope(1, compression, b"", payload, items.sort_key(head))))


def _nested(code: int, depth: int) -> bytes:
    """Extension types of msgpack, one within the other."""
    data = b"\xc0"
    for _ in range(depth):
        data = b"\xc9" + len(data).to_bytes(4, "big") + bytes([code]) + data
    return data


# The second says that there are 4 GiB to come.
_BOMB = compress(bytes(1 << 28))
_CLAIM = b"\x28\xb5\x2f\xfd\xa0\xff\xff\xff\xff\x01\x00\x00"
ENDLESS: dict[str, Callable[[], Thread]] = {
    "index segments that name themselves": lambda: _with_indexes(lambda place, ids: ids[place]),
    "index segments that name each other": lambda: _with_indexes(lambda _, ids: b"".join(ids)),
    "index segments that name each other often": lambda: _with_indexes(lambda _, ids: b"".join(ids * 200)),
    "index segments that name the next one often": lambda: _with_indexes(
        lambda place, ids: [*ids, bytes(8)][place + 1] * 64
    ),
    "index segments of nothing": lambda: _with_indexes(lambda _, ids: b""),
    "index segments of half an id": lambda: _with_indexes(lambda _, ids: ids[0] + ids[1][:4]),
    "index segments with a gigabyte of ids": lambda: _with_indexes(lambda _, ids: bytes(1 << 26)),
    "a body of compressed nothing": lambda: _with_sealed_body(*_BOMB),
    "a body that claims its size": lambda: _with_sealed_body(1, _CLAIM),
    "a body of lists in lists": lambda: _with_sealed_body(0, b"\x91" * 100_000),
    "a body that is longer than it is": lambda: _with_sealed_body(0, b"\xdd\xff\xff\xff\xff"),
    "a value of lists in lists": lambda: _with_value("msgpack", b"\x91" * 100_000),
    "a value of objects in objects": lambda: _with_value("msgpack", _nested(7, 2_000)),
    "a value that is longer than it is": lambda: _with_value("msgpack", b"\xdf\xff\xff\xff\xff"),
    "a value of JSON in JSON": lambda: _with_value("json", b"[" * 100_000),
}


# One of each is enough to see whether the bounds are there.
LONGEST = {"index segments that name each other often", "index segments that name the next one often"}


@pytest.mark.parametrize(
    "bomb", [pytest.param(each, marks=pytest.mark.search) if each in LONGEST else each for each in ENDLESS]
)
def test_what_has_no_end_is_refused_within_bounds(bomb: str) -> None:
    thread = ENDLESS[bomb]()
    table = loaded(thread)
    tracemalloc.start()
    try:
        with pytest.raises(CLEAN_IF_INTACT):
            run(table, thread.readings()[_newest_of(thread)])
        assert tracemalloc.get_traced_memory()[1] < BYTES_MAX
    finally:
        tracemalloc.stop()
    for operation in thread.changes().values():
        with suppress(*CLEAN_IF_INTACT):
            run(loaded(thread), operation)


class _Trap:
    """Makes its mark where it is unpickled."""

    sprung = 0

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _spring, ()


def _spring() -> None:
    _Trap.sprung += 1


def test_pickled_bytes_are_not_run() -> None:
    trap = pickle.dumps(_Trap())
    pickle.loads(trap)  # noqa: S301 - to show that it works.
    assert _Trap.sprung == 1
    thread = _with_value("pickle", trap)
    with pytest.raises(CheckpointerConfigurationError, match="'pickle'"):
        run(loaded(thread), thread.readings()[_newest_of(thread)])
    assert list(_outcomes(thread, thread, CLEAN_IF_INTACT))
    assert _Trap.sprung == 1
