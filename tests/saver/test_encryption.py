"""What a saver with a cipher refuses, from somebody who may write to the table but has no key.

Whoever writes here knows the format, so every checksum is right. Nothing that was written so may reach the serializer.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerConfigurationError,
    CheckpointerError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, _envelope, _verified, open_plain, seal_plain
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._runtime.steps import collected
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import all_items, noise, store, stored_values, thread_config
from tests.support.harness import TABLE, THREAD, Harness, Process
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEY = b"0123456789abcdef"
PLAIN = Codec(JsonPlusSerializer())
HOSTILE = b"from somebody else"


class WatchedSerializer(JsonPlusSerializer):
    """Notes what it is given to read."""

    def __init__(self) -> None:
        """Start with nothing read."""
        super().__init__()
        self.read: list[bytes] = []

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Note it, and read it."""
        self.read.append(data[1])
        return super().loads_typed(data)


def cipher(inner: Any = None) -> EncryptedSerializer:
    """The serializer of whoever has the key."""
    return EncryptedSerializer.from_pycryptodome_aes(serde=inner or JsonPlusSerializer(), key=KEY)


def with_key(harness: Harness, inner: Any = None) -> Process:
    """A process with the key, which remembers nothing."""
    return harness.process(codec=Codec(cipher(inner), bound_to=TABLE))


def fill(process: Process, thread: str = THREAD, seed: int = 0, mark: bytes = b"") -> None:
    """Store two checkpoints with segments, index segments and own segments of body, metadata and writes."""
    values = {
        "noise": mark + noise(3000, seed),
        "text": noise(200, seed).hex(),
        **{noise(9, n).hex(): n for n in range(60)},
    }
    process.harness.run(process.put("1", {"text": mark or b"older"}, thread=thread))
    note = (mark + noise(600, seed)).hex()
    process.harness.run(process.put("2", values, "1", thread=thread, note=note))
    writes = [("noise", mark + noise(600, seed)), ("__interrupt__", mark or "?")]
    process.harness.run(process.put_writes("2", writes, thread=thread))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_limits(monkeypatch)


@pytest.fixture
def harness() -> Harness:
    """Give a table with an encrypted thread."""
    harness = Harness()
    fill(with_key(harness))
    return harness


def test_a_whole_thread_that_is_not_encrypted_is_refused() -> None:
    harness = Harness()
    fill(harness.process(), mark=HOSTILE)
    inner = WatchedSerializer()
    process = with_key(harness, inner)
    newest, storage = thread_config(THREAD), process.storage
    for operation in (
        process.read(),
        process.read("1"),
        collected(process.listed()),
        collected(list_checkpoints(storage, newest, {"note": "x"}, None, None)),
        get_delta_channel_history(storage, newest, ["x"]),
        process.put("3", {}, "1"),
        process.put_writes("2", [("a", 1), ("b", 2)]),
    ):
        with pytest.raises(CheckpointerConfigurationError, match=r"not encrypted.*allow_unencrypted=True"):
            harness.run(operation)
    assert inner.read == []


# What somebody changes in the encrypted thread, each with the item that an error names.


def _item_with(harness: Harness, name: str) -> Item:
    return next(each for each in harness.items("C#2#").values() if name in each)


def _head(harness: Harness) -> Item:
    return _item_with(harness, items.BODY)


def _part(item: Item, name: str) -> Part:
    part = items.parse_part(item, name)
    assert part is not None
    return part


def _segments(harness: Harness, *, index: bool = False) -> list[Item]:
    found = harness.items(items.SEGMENTS).values()
    return [each for each in found if is_index(items.segment_id_of(each)) is index]


def _unencrypted(harness: Harness, name: str) -> Item:
    old = _item_with(harness, name)
    raw = PLAIN.seal(HOSTILE, old, name)
    harness.change(old, **{name: Part((), (), raw).attribute(items.sort_key(old))})
    return old


def _unencrypted_segment(harness: Harness) -> Item:
    old = _segments(harness)[0]
    harness.change(old, **{items.DATA: {"B": PLAIN.seal(HOSTILE, old, items.DATA)}})
    return old


def _moved(harness: Harness, item: Item, to: Item) -> Item:
    """Put what one item holds in the place of another, with checksums that are right there."""

    def resealed(sealed: bytes) -> bytes:
        header, payload = _verified(sealed, item)
        return _envelope(header[0], header[1], header[3:], payload, sk)

    sk = items.sort_key(to)
    epoch = {items.EPOCH: to[items.EPOCH]} if items.EPOCH in to else {}
    moved = {**item, **items.key(items.partition_key(to), sk), **epoch}
    if items.DATA in item:
        moved[items.DATA] = {"B": resealed(item[items.DATA]["B"])}
    for name, part in items.parts_of(item):
        moved[name] = Part(part.own, part.refs, resealed(part.sealed)).attribute(sk)
    harness.change(moved)
    return to


def _of_another_thread(harness: Harness, sk: str) -> None:
    """Put an item with the segments that it names: an error may name any of these."""
    fill(with_key(harness), "other", 1)
    for segment in harness.items(items.SEGMENTS, "other").values():
        harness.change(segment, PK=_head(harness)["PK"])
    _moved(harness, harness.items(sk, "other")[sk], harness.items(sk)[sk])


def _other_ids(harness: Harness, name: str, change: Callable[[Part], Sequence[Sequence[bytes]]]) -> Item:
    """Change the lists of ids that a part has, which are readable."""
    old = _item_with(harness, name)
    part = _part(old, name)
    own, refs = map(tuple, change(part))
    assert (own, refs) != (part.own, part.refs)
    harness.change(old, **{name: Part(own, refs, part.sealed).attribute(items.sort_key(old))})
    return old


def _other_index(harness: Harness) -> Item:
    head = _head(harness)
    indexes = {items.segment_id_of(each): each for each in _segments(harness, index=True)}
    index = next(indexes[each] for each in _part(head, items.BODY).refs if each in indexes)
    ids = items.unpack_ids(open_plain(index[items.DATA]["B"], index))
    harness.change(index, **{items.DATA: {"B": seal_plain(b"".join(ids[::-1]), items.sort_key(index))}})
    return head


def _body_of_values(harness: Harness) -> Item:
    """Make a body of what a user of the agent wrote."""
    head = _head(harness)
    part = _part(head, items.BODY)
    assert part.own
    harness.change(head, **{items.BODY: Part(part.refs, (), b"").attribute("C#2#")})
    return head


def _other_metadata(harness: Harness) -> Item:
    head = _head(harness)
    readable = {items.METADATA: {"S": '{"source":"loop","step":9}'}, items.SEALED_METADATA: None}
    harness.change(head, **readable)
    return head


UNENCRYPTED = (CheckpointerConfigurationError, "not encrypted")
MISPLACED = (CheckpointCorruptionError, "for another place")
IDS: dict[str, Callable[[Part], Sequence[Sequence[bytes]]]] = {
    "turned round": lambda part: (part.own[::-1], part.refs[::-1]),
    "cut short": lambda part: (part.own[:-1] or part.own, part.refs[:-1]),
    "given to the other list": lambda part: ([*part.own, *part.refs][:-1], [*part.own, *part.refs][-1:]),
}
Refusal: TypeAlias = tuple[type[CheckpointerError], str]
CHANGES: dict[str, tuple[Callable[[Harness], Item | None], Refusal]] = {
    **{
        f"{name} is not encrypted": (partial(_unencrypted, name=name), UNENCRYPTED)
        for name in (items.BODY, items.SEALED_METADATA, items.WRITES, "special_3")
    },
    "a segment is not encrypted": (_unencrypted_segment, UNENCRYPTED),
    "the head of another thread": (partial(_of_another_thread, sk="C#2#"), MISPLACED),
    "the writes of another thread": (partial(_of_another_thread, sk="C#2#W#task"), MISPLACED),
    "an older checkpoint in the place of a newer one": (
        lambda harness: _moved(harness, harness.items("C#1#")["C#1#"], _head(harness)),
        MISPLACED,
    ),
    "segments that are exchanged": (lambda harness: _moved(harness, *_segments(harness)[:2]), MISPLACED),
    **{
        f"the ids of {name} are {how}": (partial(_other_ids, name=name, change=change), MISPLACED)
        for name in (items.BODY, items.SEALED_METADATA, items.WRITES)
        for how, change in IDS.items()
    },
    "an index segment": (_other_index, MISPLACED),
    "content in segments that nobody vouches for": (
        _body_of_values,
        (CheckpointerConfigurationError, "not for its place"),
    ),
    "readable metadata": (
        _other_metadata,
        (CheckpointCorruptionError, "metadata was changed after it was stored"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_an_error_that_names_the_item_and_is_not_deserialized(
    harness: Harness, change: str
) -> None:
    make, (kind, said) = CHANGES[change]
    changed = make(harness)
    sk = items.sort_key(changed) if changed else ".*"
    inner = WatchedSerializer()
    process = with_key(harness, inner)
    filtered = list_checkpoints(process.storage, thread_config(THREAD), {"step": 9}, None, None)
    for operation in (
        process.read(),
        collected(process.listed()),
        # A copy does not read what only lists do.
        collected(filtered) if make is _other_metadata else process.copy_thread("copy"),
    ):
        with pytest.raises(kind, match=f"SK='{sk}' .*{said}"):
            harness.run(operation)
    assert HOSTILE not in b"".join(inner.read)


def test_an_unencrypted_thread_is_moved_by_a_copy() -> None:
    harness = Harness()
    fill(harness.process())
    before = harness.process().values()
    with pytest.raises(CheckpointerConfigurationError, match="allow_unencrypted"):
        harness.run(with_key(harness).copy_thread("copy"))
    assert harness.items("", "copy") == {}
    moving = harness.process(codec=Codec(cipher(), bound_to=TABLE, allow_unencrypted=True))
    assert moving.values() == before
    harness.run(moving.copy_thread("copy"))
    assert with_key(harness).values(thread="copy") == before
    found = with_key(harness).found(thread="copy")
    assert found.pending_writes


# The table's name


@pytest.mark.engines("dynamodb-local")
def test_a_restored_table_is_read_under_the_name_that_it_was_encrypted_for(
    client: DynamoDBClient, table_name: str, other_table: Callable[..., str], engine: Engine
) -> None:
    """A table's ARN and its name are one table."""
    options: dict[str, Any] = {
        "endpoint_url": engine.endpoint_url, "region_name": engine.region_name, "serde": cipher(),
    }  # fmt: skip
    values: dict[str, Any] = {"noise": noise(3000)}
    with DynamoDBSaver(f"arn:aws:dynamodb:us-east-1:000000000000:table/{table_name}", **options) as saver:
        store(saver, thread_config(), "1", values)
    with DynamoDBSaver(table_name, **options) as saver:
        assert stored_values(saver, thread_config()) == values
    restored = other_table(**table_schema(f"{table_name}-restored"))
    for item in all_items(client, table_name):
        client.put_item(TableName=restored, Item=item)
    said = f"with another name than '{restored}', pass that name as bound_to"
    with DynamoDBSaver(restored, **options) as saver, pytest.raises(CheckpointCorruptionError, match=said):
        saver.get_tuple(thread_config())
    for newest in ({"text": "newer"}, {"text": "newest"}):
        with DynamoDBSaver(restored, bound_to=table_name, **options) as saver:
            assert stored_values(saver, thread_config()) == values
            store(saver, thread_config(), newest["text"], newest)
            values = newest


OWNER_KEY = b"the key of owners"


@pytest.mark.engines("dynamodb-local")
def test_no_traceback_shows_a_key(engine: Engine) -> None:
    """Services that collect errors collect the locals of their frames."""
    connection: Any = {"endpoint_url": engine.endpoint_url, "owner_from": "user_id"}
    with (
        DynamoDBSaver("missing", serde=cipher(), owner_key=OWNER_KEY, **connection) as saver,
        pytest.raises(CheckpointerError) as caught,
    ):
        store(saver, thread_config(), "1", {"text": "a"})
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "storage = Storage(" in shown
    assert repr(OWNER_KEY) not in shown
    assert repr(KEY) not in shown
