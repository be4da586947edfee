"""The content of the sealed parts of an item: a checkpoint's body, its metadata, a task's writes."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeVar, cast

import ormsgpack
from langgraph.checkpoint.base import CheckpointMetadata, PendingWrite, writes_sort_key

from ..errors import CheckpointSerializationError
from . import items
from .codec import Codec, UnreadableError, parse_metadata
from .items import Item
from .segments import Inline, StoredValue, expand

T = TypeVar("T")
Contents = Mapping[bytes, bytes]
"""The plaintexts of segments, by id."""


@dataclass(frozen=True)
class SharedValues:
    """Small values that several checkpoints have in common, as rows at the front of their bodies.

    A row holds a value as it once was. Where the body itself has a value of the same channel, that one counts.
    """

    front: StoredValue
    """The rows, in segments that the next checkpoint can name, too, and inline bytes."""
    size_bytes: int
    count: int
    names: frozenset[str]
    """The channels of all rows."""
    current: frozenset[str]
    """The channels whose rows count."""


@dataclass(frozen=True)
class Body:
    """A checkpoint without its values, and how each value is stored."""

    checkpoint: dict[str, Any]
    values: dict[str, StoredValue]
    # By delta channel, the ancestor that it is rebuilt from, the oldest first; "" is the very first checkpoint.
    sources: dict[str, str]
    shared: SharedValues | None


# A list, of which the first element has four bytes for its length.
_FRONT = struct.Struct(">BBI")
_LIST_OF_EIGHT, _LONG_BYTES, _LONG_LIST = 0x98, 0xC6, 0xDD


def shared_rows(values: Mapping[str, StoredValue]) -> bytes:
    """Serialize values without segments as rows, which others may follow."""
    return b"".join(_pack((name, value.kind, value.join({}))) for name, value in values.items())


def pack_body(
    kind: str,
    data: bytes,
    values: Mapping[str, StoredValue],
    sources: Mapping[str, str],
    head: Item,
    shared: SharedValues | None,
) -> StoredValue:
    """Serialize a body, given the serialized checkpoint. Ids are beside it, in the head, whose links it confirms."""
    current = frozenset[str]() if shared is None else shared.current
    rows = [
        (name, value.kind, len(value.segments), value.inline)
        for name, value in values.items()
        if name not in current
    ]
    links = _digest(head, items.METADATA), dict(sources), _digest(head, items.PARENT)
    if shared is None:
        return StoredValue("", (), ((0, _pack((b"", 0, kind, data, rows, *links))),))
    front = shared.front
    start = _FRONT.pack(_LIST_OF_EIGHT, _LONG_BYTES, shared.size_bytes)
    # The first byte says how many elements follow, which is said already.
    rest = _pack((shared.count, kind, data, rows, *links))[1:]
    return StoredValue("", front.segments, ((0, start), *front.inline, (len(front.segments), rest)))


def _shared(front: bytes, count: int) -> dict[str, StoredValue]:
    """Read the values at the front of a body. Of several of a channel, the last one counts."""
    rows = ormsgpack.unpackb(struct.pack(">BI", _LONG_LIST, count) + front) if front else []
    return {
        name: StoredValue(kind, (), ((0, data),))
        for name, kind, data in (_row(row, str, str, bytes) for row in rows)
    }


def read_body(codec: Codec, item: Item, contents: Contents) -> Body:
    """Read the body of a head, given the segments that it names."""
    part, checkpoint_id = items.parse_part(item, items.BODY), items.checkpoint_id_of(item)
    if part is None:
        raise items.damaged(item, "it has no body")
    refs = expand(part.refs, contents)

    # A segment that is named several times adds to the size each time.
    codec.check_joined(sum(len(contents.get(each, b"")) for each in refs), item)

    content = part_value(codec, item, items.BODY, part, contents)

    def body(data: Any) -> Body:
        front, row_count, kind, serialized, rows, metadata, sources, parent = _row(
            data, bytes, int, str, bytes, list, bytes, dict, bytes
        )
        if metadata != _digest(item, items.METADATA):
            raise ValueError("its metadata was changed after it was stored")
        # A deletion cuts the link to a parent that it deletes, unless the checkpoint is rebuilt from its ancestors.
        is_cut = items.PARENT not in item and not sources
        if (parent != _digest(item, items.PARENT) and not is_cut) or (
            item.get(items.REBUILT_FROM, {}).get("S") != next(iter(sources.values()), None)
        ):
            raise ValueError(
                "its parent, or the ancestor that it is rebuilt from, was changed after it was stored"
            )
        own, start = dict[str, StoredValue](), 0
        for row in rows:
            name, value_kind, count, inline = _row(row, str, str, int, list)
            segments = tuple(refs[start : start + count])
            own[name] = StoredValue(value_kind, segments, _inline(inline, count))
            start += count
        if start != len(refs) or any(row[2] < 0 for row in rows):
            raise ValueError("it names more or fewer segments than its values have")
        checkpoint = _object(codec.loads(kind, serialized, item, plain=True))
        checkpoint["id"] = checkpoint_id
        _object(checkpoint.get("channel_versions", {}))
        shared = None
        in_front = _shared(front, row_count)
        if front:
            names = frozenset(in_front)
            value = replace(content, inline=content.inline[1:-1])
            shared = SharedValues(value, len(front), row_count, names, names - own.keys())
        sources = {_text(name): _text(source) for name, source in sources.items()}
        return Body(checkpoint, in_front | own, sources, shared)

    return _parse(item, content.join(contents), body)


def _digest(head: Item, name: str) -> bytes:
    """Return the digest by which a body confirms a readable attribute beside it; none if the head does not have it."""
    return blake2b(str(head[name].get("S")).encode(), digest_size=16).digest() if name in head else b""


def read_metadata(codec: Codec, item: Item, contents: Contents) -> CheckpointMetadata:
    """Read a head's metadata."""
    text = items.text(item, items.METADATA)
    if text is not None:
        metadata: CheckpointMetadata = parse_metadata(item, text)
        return metadata
    part = items.parse_part(item, items.SEALED_METADATA)
    if part is None:
        raise items.damaged(item, "it has no metadata")
    raw = part_content(codec, item, items.SEALED_METADATA, part, contents)

    def load(data: Any) -> dict[str, Any]:
        kind, serialized = _row(data, str, bytes)
        found = codec.loads_metadata(kind, serialized, item)
        if not isinstance(found, dict):
            raise UnreadableError(no_metadata(items.name_of(item)))
        return found

    return cast("CheckpointMetadata", _parse(item, raw, load))


def no_metadata(name: str) -> str:
    """Return the message for metadata that a client has serialized itself, and that are no object."""
    return (
        f"{name} is intact, but the client that stored it through the gateway gave it metadata that are no object;"
        " store the checkpoint again with a dict, or delete the thread"
    )


def pack_typed(kind: str, data: bytes) -> bytes:
    """Serialize a value that the serializer has serialized."""
    return _pack((kind, data))


def unpack_typed(codec: Codec, item: Item, raw: bytes, *, plain: bool = False) -> Any:
    """Deserialize what `pack_typed` made. With `plain`, LangGraph's serializer makes plain data only."""

    def load(data: Any) -> Any:
        kind, serialized = _row(data, str, bytes)
        return codec.loads(kind, serialized, item, plain=plain)

    return _parse(item, raw, load)


def unpack_object(codec: Codec, item: Item, raw: bytes, *, plain: bool = False) -> dict[str, Any]:
    """Deserialize what `pack_typed` made of an object."""
    try:
        return _object(unpack_typed(codec, item, raw, plain=plain))
    except ValueError as error:
        raise items.damaged(
            item, f"its content has another form than this package writes ({error})"
        ) from error


def delta_counters(metadata: CheckpointMetadata) -> set[str]:
    """Return the delta channels whose updates since their last stored value a checkpoint's metadata counts."""
    counters = metadata.get("counters_since_delta_snapshot")
    # An application may use the same name for its own metadata.
    return set(counters) if isinstance(counters, dict) else set()


@dataclass(frozen=True)
class Write:
    """One pending write: its place within its task's writes, and its serialized value."""

    index: int
    channel: str
    kind: str
    data: bytes
    task_path: str


def pack_writes(writes: Iterable[Write]) -> bytes:
    """Serialize a group of writes."""
    return _pack([(each.index, each.channel, each.kind, each.data, each.task_path) for each in writes])


def read_writes(codec: Codec, item: Item, name: str, contents: Contents) -> list[Write]:
    """Read one group of writes of a writes item; return none if the item does not have it."""
    part = items.parse_part(item, name)
    if part is None:
        return []

    def load(data: Any) -> list[Write]:
        return [Write(*_row(row, int, str, str, bytes, str)) for row in data]

    return _parse(item, part_content(codec, item, name, part, contents), load)


def writes_of(codec: Codec, item: Item, contents: Contents) -> list[tuple[tuple[str, str, int], Write]]:
    """Read all writes of a task, each with its sort key among the writes of all tasks."""
    return [
        (writes_sort_key(write.task_path, items.task_id_of(item), write.index), write)
        for name in (items.WRITES, *items.SPECIAL_WRITES.values())
        for write in read_writes(codec, item, name, contents)
    ]


def pending_writes(
    codec: Codec,
    writes_items: Sequence[Item],
    contents: Contents,
    channels: frozenset[str] | None = None,
) -> list[PendingWrite]:
    """Return the pending writes of a checkpoint for LangGraph, in the order in which a run applies them."""
    found = []
    size = 0
    for item in writes_items:
        writes = writes_of(codec, item, contents)
        size += sum(len(write.data) for _, write in writes)
        codec.check_size(size, item)
        found += [
            (order, item, write) for order, write in writes if channels is None or write.channel in channels
        ]
    found.sort(key=lambda each: each[0])
    return [
        (order[1], write.channel, codec.loads(write.kind, write.data, item)) for order, item, write in found
    ]


def open_part(codec: Codec, item: Item, name: str, part: items.Part, contents: Contents) -> bytes:
    """Open the content of a part in its item. If it has segments, that is what lies between them, as it is packed."""
    ids = (expand(part.own, contents), expand(part.refs, contents))
    if not part.own:
        return codec.open(part.sealed, item, name, ids)
    return codec.open_between(part.sealed, item, name, ids)


def part_content(codec: Codec, item: Item, name: str, part: items.Part, contents: Contents) -> bytes:
    """Return the content of a part, from its item or from the segments that hold it."""
    return part_value(codec, item, name, part, contents).join(contents)


def part_value(codec: Codec, item: Item, name: str, part: items.Part, contents: Contents) -> StoredValue:
    """Return the content of a part as the segments that hold it, which are there, and the bytes between them."""
    raw = open_part(codec, item, name, part, contents)
    if not part.own:
        return StoredValue("", (), ((0, raw),))
    segments = tuple(expand(part.own, contents))
    codec.check_joined(sum(len(contents.get(each, b"")) for each in segments), item)
    if not contents.keys() >= set(segments):
        raise items.damaged(item, "segments that it needs are not in the table")
    inline = _parse(item, raw, lambda data: _inline(data, len(segments))) if raw else ()
    return StoredValue("", segments, inline)


def pack_inline(inline: Inline) -> bytes:
    """Serialize the bytes between the segments of a part's content; nothing if there are none."""
    return _pack(inline) if inline else b""


def _inline(data: Any, count: int) -> Inline:
    """Read the bytes between so many segments."""
    inline = tuple(tuple(_row(each, int, bytes)) for each in data)
    places = [place for place, _ in inline]
    if places != sorted(places) or not all(0 <= place <= count for place in places):
        raise ValueError("its bytes between segments are out of order")
    return cast("Inline", inline)


def _pack(data: Any) -> bytes:
    try:
        return ormsgpack.packb(data)
    except ormsgpack.MsgpackEncodeError as error:
        raise CheckpointSerializationError(
            f"a channel name or task path is not valid Unicode ({error}); nothing of the call was"
            " stored; use valid Unicode"
        ) from error


def _row(data: Any, *kinds: type) -> Any:
    """Return data that has to be a list of elements of exactly these types."""
    if type(data) is not list or [type(each) for each in data] != list(kinds):
        raise ValueError(f"no list of {', '.join(kind.__name__ for kind in kinds)}")
    return data


def _text(data: Any) -> str:
    if type(data) is not str:
        raise ValueError(f"{type(data).__name__} instead of text")
    return data


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{type(data).__name__} instead of an object")
    return data


def _parse(item: Item, raw: bytes, read: Callable[[Any], T]) -> T:
    """Unpack and read content. Any shape other than the one that is written is damage."""
    try:
        return read(ormsgpack.unpackb(raw))
    except (ValueError, TypeError) as error:
        raise items.damaged(
            item, f"its content has another form than this package writes ({error})"
        ) from error
