"""What a saver with a cipher refuses, from somebody who may write to the table but has no key.

Whoever writes here knows the format, so every checksum is right. Nothing that was written so may reach the serializer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
from tests.simulation.world import use_small_limits
from tests.support.checkpoints import all_items, noise, store, stored_values, thread_config
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# An engine stores bytes, whoever made them.
pytestmark = pytest.mark.engines("dynamodb-local")

MakeSaver = Callable[..., DynamoDBSaver]
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


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_limits(monkeypatch)


def fill(saver: DynamoDBSaver, thread_id: str, seed: int = 0) -> dict[str, Any]:
    """Store two checkpoints with segments, index segments and own segments of body, metadata and writes."""
    values = {
        "noise": noise(3000, seed),
        "text": noise(200, seed).hex(),
        **{noise(9, n).hex(): n for n in range(60)},
    }
    config = store(saver, thread_config(thread_id), "1", {"text": "older"})
    config = store(saver, config, "2", values, note=noise(600, seed).hex())
    saver.put_writes(config, [("noise", noise(600, seed)), ("__interrupt__", "?")], "task")
    return values


def found(client: DynamoDBClient, table_name: str, thread_id: str, sk: str = "") -> list[Item]:
    """The thread's items whose sort keys begin so."""
    return [
        each
        for each in all_items(client, table_name, begins=sk)
        if each["PK"]["S"] == items.partition_of(thread_id).pk
    ]


def head_of(client: DynamoDBClient, table_name: str, thread_id: str = "t") -> Item:
    """The head of the thread's newest checkpoint."""
    return found(client, table_name, thread_id, "C#2#")[0]


def part_of(item: Item, name: str) -> Part:
    """A part that the item has."""
    part = items.parse_part(item, name)
    assert part is not None
    return part


def assert_refused(
    make_saver: MakeSaver,
    changed: Item,
    message: str = "for another place",
    kind: type[CheckpointerError] = CheckpointCorruptionError,
) -> None:
    """Reading the thread is an error that names the item, and what somebody else wrote is not deserialized."""
    inner = WatchedSerializer()
    saver = make_saver(serde=cipher(inner))
    message = f"SK='{items.sort_key(changed)}' .*{message}"
    for reading in (
        lambda: saver.get_tuple(thread_config("t")),
        lambda: list(saver.list(thread_config("t"))),
    ):
        with pytest.raises(kind, match=message):
            reading()
    with pytest.raises(kind, match=message):
        saver.copy_thread("t", "copy")
    assert HOSTILE not in b"".join(inner.read)


@pytest.fixture
def thread(make_saver: MakeSaver) -> dict[str, Any]:
    """Store an encrypted thread."""
    return fill(make_saver(serde=cipher()), "t")


# Unencrypted units


def _plain(client: DynamoDBClient, table_name: str, make_saver: MakeSaver) -> list[Item]:
    """The thread as who has no key would store it, with a value of their own."""
    writer = make_saver()
    writer.delete_thread("t")
    values = {"noise": HOSTILE + noise(3000), **{noise(9, n).hex(): n for n in range(60)}}
    config = store(writer, thread_config("t"), "1", {"text": HOSTILE})
    config = store(writer, config, "2", values, note=HOSTILE.hex() * 100)
    writer.put_writes(config, [("noise", HOSTILE + noise(600)), ("__interrupt__", HOSTILE)], "task")
    return found(client, table_name, "t")


def test_a_whole_thread_that_is_not_encrypted_is_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    _plain(client, table_name, make_saver)
    inner = WatchedSerializer()
    saver = make_saver(serde=cipher(inner))
    for reading in (
        lambda: saver.get_tuple(thread_config("t")),
        lambda: saver.get_tuple(thread_config("t", checkpoint_id="1")),
        lambda: list(saver.list(thread_config("t"))),
        lambda: list(saver.list(thread_config("t"), filter={"note": "x"})),
        lambda: saver.get_delta_channel_history(config=thread_config("t"), channels=["x"]),
        lambda: store(saver, thread_config("t", checkpoint_id="1"), "3", {}),
        lambda: saver.put_writes(thread_config("t", checkpoint_id="2"), [("a", 1), ("b", 2)], "task"),
    ):
        with pytest.raises(CheckpointerConfigurationError, match=r"not encrypted.*allow_unencrypted=True"):
            reading()
    assert inner.read == []


@pytest.mark.parametrize("name", [items.BODY, items.SEALED_METADATA, items.WRITES, "special_3"])
def test_one_attribute_that_is_not_encrypted_is_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any], name: str
) -> None:
    old = next(each for each in found(client, table_name, "t", "C#2#") if name in each)
    raw = PLAIN.seal(HOSTILE, old, name)
    changed = {**old, name: Part((), (), raw).attribute(items.sort_key(old))}
    client.put_item(TableName=table_name, Item=changed)
    assert_refused(make_saver, changed, "not encrypted", CheckpointerConfigurationError)


def test_a_segment_that_is_not_encrypted_is_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any]
) -> None:
    old = _data_segments(client, table_name)[0]
    changed = {**old, items.DATA: {"B": PLAIN.seal(HOSTILE, old, items.DATA)}}
    client.put_item(TableName=table_name, Item=changed)
    assert_refused(make_saver, changed, "not encrypted", CheckpointerConfigurationError)


# Units of another place


def _moved(item: Item, to: Item) -> Item:
    """What one item holds in the place of another, with checksums that are right there."""
    sk = items.sort_key(to)
    moved = {**item, **items.key(items.partition_key(to), sk)}
    if items.DATA in item:
        moved[items.DATA] = {"B": _resealed(item[items.DATA]["B"], item, sk)}
    for name, part in items.parts_of(item):
        sealed = _resealed(part.sealed, item, sk)
        moved[name] = Part(part.own, part.refs, sealed).attribute(sk)
    return moved


def _resealed(sealed: bytes, item: Item, sk: str) -> bytes:
    header, payload = _verified(sealed, item)
    return _envelope(header[0], header[1], header[3:], payload, sk)


def _data_segments(client: DynamoDBClient, table_name: str, thread_id: str = "t") -> list[Item]:
    segments = found(client, table_name, thread_id, items.SEGMENTS)
    return [each for each in segments if not is_index(items.segment_id_of(each))]


@pytest.mark.parametrize("sk", ["C#2#", "C#2#W#task"])
def test_items_of_another_thread_are_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any], sk: str
) -> None:
    fill(make_saver(serde=cipher()), "other", 1)
    theirs, ours = (found(client, table_name, each, sk) for each in ("other", "t"))
    for item in found(client, table_name, "other", items.SEGMENTS):
        client.put_item(TableName=table_name, Item={**item, "PK": {"S": "t#"}})
    epoch = ours[0].get(items.EPOCH)
    changed = {**_moved(theirs[0], ours[0]), **({items.EPOCH: epoch} if epoch else {})}
    client.put_item(TableName=table_name, Item=changed)
    inner = WatchedSerializer()
    with pytest.raises(CheckpointCorruptionError, match="for another place"):
        make_saver(serde=cipher(inner)).get_tuple(thread_config("t"))


def test_an_older_checkpoint_is_refused_in_the_place_of_a_newer_one(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any]
) -> None:
    older = found(client, table_name, "t", "C#1#")[0]
    changed = _moved(older, head_of(client, table_name))
    client.put_item(TableName=table_name, Item=changed)
    assert_refused(make_saver, changed)


def test_segments_that_are_exchanged_are_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any]
) -> None:
    one, other, *_ = _data_segments(client, table_name)
    changed = _moved(one, other)
    client.put_item(TableName=table_name, Item=changed)
    assert_refused(make_saver, changed)


@pytest.mark.parametrize("name", [items.BODY, items.SEALED_METADATA, items.WRITES])
@pytest.mark.parametrize("how", ["turned round", "cut short", "given to the other list"])
def test_a_list_of_ids_that_was_changed_is_refused(
    make_saver: MakeSaver,
    client: DynamoDBClient,
    table_name: str,
    thread: dict[str, Any],
    name: str,
    how: str,
) -> None:
    """What the content is in, or refers to, is as encrypted as the content; the ids themselves are not."""
    old = next(each for each in found(client, table_name, "t", "C#2#") if name in each)
    part = part_of(old, name)
    ids = (*part.own, *part.refs)
    lists = {
        "turned round": (part.own[::-1], part.refs[::-1]),
        "cut short": (part.own[:-1] or part.own, part.refs[:-1]),
        "given to the other list": (ids[:-1], ids[-1:]),
    }
    changed = {**old, name: Part(*lists[how], part.sealed).attribute(items.sort_key(old))}
    assert changed != old
    client.put_item(TableName=table_name, Item=changed)
    assert_refused(make_saver, changed)


def test_an_index_segment_that_was_changed_is_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any]
) -> None:
    head = head_of(client, table_name)
    refs = set(part_of(head, items.BODY).refs)
    segments = {items.segment_id_of(each): each for each in found(client, table_name, "t", items.SEGMENTS)}
    index = next(segments[each] for each in refs if is_index(each))
    ids = items.unpack_ids(open_plain(index[items.DATA]["B"], index))
    content = seal_plain(b"".join(ids[::-1]), items.sort_key(index))
    client.put_item(TableName=table_name, Item={**index, items.DATA: {"B": content}})
    assert_refused(make_saver, head)


def test_content_in_segments_that_nobody_vouches_for_is_refused(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any]
) -> None:
    """Otherwise a body could be made of what a user of the agent wrote."""
    head = head_of(client, table_name)
    part = part_of(head, items.BODY)
    assert part.own
    changed = {**head, items.BODY: Part(part.refs, (), b"").attribute("C#2#")}
    client.put_item(TableName=table_name, Item=changed)
    assert_refused(make_saver, changed, "not for its place", CheckpointerConfigurationError)


def test_readable_metadata_cannot_be_changed_or_added(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str, thread: dict[str, Any]
) -> None:
    changed = {**head_of(client, table_name), items.METADATA: {"S": '{"source":"loop","step":9}'}}
    del changed[items.SEALED_METADATA]
    client.put_item(TableName=table_name, Item=changed)
    saver = make_saver(serde=cipher())
    with pytest.raises(CheckpointCorruptionError, match="metadata was changed after it was stored"):
        saver.get_tuple(thread_config("t"))
    with pytest.raises(CheckpointCorruptionError, match="metadata was changed after it was stored"):
        list(saver.list(thread_config("t"), filter={"step": 9}))


# Migrations


def test_an_unencrypted_thread_is_moved_by_a_copy(
    make_saver: MakeSaver, client: DynamoDBClient, table_name: str
) -> None:
    values = fill(make_saver(), "t")
    with pytest.raises(CheckpointerConfigurationError, match="allow_unencrypted"):
        make_saver(serde=cipher()).copy_thread("t", "copy")
    assert found(client, table_name, "copy") == []
    moving = make_saver(serde=cipher(), allow_unencrypted=True)
    assert stored_values(moving, thread_config("t")) == values
    moving.copy_thread("t", "copy")
    moving.delete_thread("t")
    saver = make_saver(serde=cipher())
    assert stored_values(saver, thread_config("copy")) == values
    before, after = (next(saver.list(thread_config("copy"))).pending_writes for _ in range(2))
    assert before == after != []


# The table's name


def test_a_table_s_arn_and_its_name_are_one_table(
    make_unclosed: Callable[..., DynamoDBSaver], engine: Engine, table_name: str
) -> None:
    arn = f"arn:aws:dynamodb:{engine.region_name}:000000000000:table/{table_name}"
    with DynamoDBSaver(
        arn, endpoint_url=engine.endpoint_url, region_name=engine.region_name, serde=cipher()
    ) as by_arn:
        values = fill(by_arn, "t")
    with make_unclosed(serde=cipher()) as by_name:
        assert stored_values(by_name, thread_config("t")) == values


def test_a_restored_table_is_read_under_the_name_that_it_was_encrypted_for(
    make_saver: MakeSaver,
    client: DynamoDBClient,
    table_name: str,
    thread: dict[str, Any],
    make_unclosed: Callable[..., DynamoDBSaver],
    engine: Engine,
) -> None:
    restored = f"{table_name}-restored"
    client.create_table(**table_schema(restored))
    for item in all_items(client, table_name):
        client.put_item(TableName=restored, Item=item)
    options: dict[str, Any] = {
        "endpoint_url": engine.endpoint_url, "region_name": engine.region_name, "serde": cipher(),
    }  # fmt: skip
    with (
        DynamoDBSaver(restored, **options) as saver,
        pytest.raises(
            CheckpointCorruptionError,
            match=f"with another name than '{restored}', pass that name as bound_to",
        ),
    ):
        saver.get_tuple(thread_config("t"))
    with DynamoDBSaver(restored, bound_to=table_name, **options) as saver:
        assert stored_values(saver, thread_config("t")) == thread
        store(saver, thread_config("t", checkpoint_id="2"), "3", {"text": "newest"})
    with DynamoDBSaver(restored, bound_to=table_name, **options) as saver:
        assert stored_values(saver, thread_config("t")) == {"text": "newest"}
    client.delete_table(TableName=restored)
