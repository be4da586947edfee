"""The content of parts: what is packed is read as it was, and any other shape is damage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointSerializationError
from langgraph.checkpoint.dynamodb._format import content, items
from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError
from langgraph.checkpoint.dynamodb._format.content import Body, SharedValues, Write
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._format.segments import StoredValue

CODEC = Codec(JsonPlusSerializer())
SK = "C#2#"
KEY = items.key("t#", SK)
A, B, C = (bytes([each] * 8) for each in (2, 4, 6))
CONTENTS = {A: b"aa", B: b"bbb", C: b"cccc"}
CHECKPOINT = {"v": 4, "channel_versions": {"x": 1}}
LARGE = StoredValue("msgpack", (A, B), ((0, b"<"), (1, b"|"), (2, b">")))
SMALL = StoredValue("null", (), ((0, b""),))


def _head(parent: str | None = "1", rebuilt_from: str | None = None) -> Item:
    texts = {items.METADATA: "{}", items.PARENT: parent, items.REBUILT_FROM: rebuilt_from}
    return items.head_item(KEY, texts=texts, metadata={})


def _with_body(head: Item, packed: StoredValue, refs: tuple[bytes, ...]) -> Item:
    inline = content.pack_inline(packed.inline) if packed.segments else packed.join({})
    ids = (packed.segments, refs)
    part = Part(*ids, CODEC.seal(inline, head, items.BODY, ids))
    return {**head, items.BODY: part.attribute(SK)}


def _packed(
    head: Item,
    values: Mapping[str, StoredValue],
    sources: Mapping[str, str],
    shared: SharedValues | None = None,
) -> Item:
    kind, data = CODEC.dumps({**CHECKPOINT, "id": "other"}, "checkpoint")
    packed = content.pack_body(kind, data, values, sources, head, shared)
    return _with_body(head, packed, tuple(each for value in values.values() for each in value.segments))


@pytest.mark.parametrize("sources", [{}, {"log": "0", "other": ""}])
def test_a_body_is_read_as_it_was_packed(sources: dict[str, str]) -> None:
    values = {"small": SMALL, "large": LARGE, "last": StoredValue("bytes", (C,), ())}
    head = _packed(_head("1", next(iter(sources.values()), None)), values, sources)
    body = content.read_body(CODEC, head, CONTENTS)
    assert body == Body({**CHECKPOINT, "id": "2"}, values, sources, None)
    if not sources:
        # A deletion has cut the link to the parent.
        del head[items.PARENT]
        assert content.read_body(CODEC, head, CONTENTS) == body


def test_rows_in_front_count_where_the_body_has_no_value_of_their_channel() -> None:
    old, new = StoredValue("bytes", (), ((0, b"old"),)), StoredValue("bytes", (), ((0, b"new"),))
    rows = [content.shared_rows({"x": old, "y": old}), content.shared_rows({"x": new})]
    front = StoredValue("", (C,), ((1, rows[1]),))
    shared = SharedValues(front, len(b"".join(rows)), 3, frozenset("xy"), frozenset("x"))
    # The row of a channel that is current is not written once more.
    head = _packed(_head(), {"x": new, "y": LARGE}, {}, shared)
    body = content.read_body(CODEC, head, {**CONTENTS, C: rows[0]})
    assert body == Body({**CHECKPOINT, "id": "2"}, {"x": new, "y": LARGE}, {}, shared)


def _raw_body(head: Item, at: int | None = None, value: Any = None) -> list[Any]:
    """Return the elements of a body with one value of two segments, and one of them as it is given."""
    kind, data = CODEC.dumps(CHECKPOINT, "checkpoint")
    digests = [content._digest(head, name) for name in (items.METADATA, items.PARENT)]  # noqa: SLF001
    rows = [["x", "msgpack", 2, [[0, b"<"], [2, b">"]]]]
    elements = [b"", 0, kind, data, rows, digests[0], {}, digests[1]]
    if at is not None:
        elements[at] = value
    return elements


def _dumped(value: Any) -> bytes:
    return CODEC.dumps(value, "value")[1]


OTHER_FORM = "its content has another form than this package writes"
LIST = "no list of bytes, int, str, bytes, list, bytes, dict, bytes"


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        *((at, None, LIST) for at in range(8)),
        (3, _dumped([1]), "list instead of an object)"),
        (3, _dumped({"channel_versions": 1}), "int instead of an object)"),
        (4, [["x", "msgpack", 2]], "no list of str, str, int, list)"),
        (4, [["x", "msgpack", 1, []]], "it names more or fewer segments than its values have)"),
        (4, [["x", "y", 3, []], ["x", "y", -1, []]], "it names more or fewer"),
        (4, [["x", "msgpack", 2, [[1, b""], [0, b""]]]], "its bytes between segments are out of order"),
        (4, [["x", "msgpack", 2, [[3, b""]]]], "its bytes between segments are out of order)"),
        (4, [["x", "msgpack", 2, [[-1, b""]]]], "its bytes between segments are out of order)"),
        (4, [["x", "msgpack", 2, [[0]]]], "no list of int, bytes)"),
        (5, b"other", "its metadata was changed after it was stored)"),
        (6, {"log": "0"}, "its parent, or the ancestor that it is rebuilt from, was changed"),
        (7, b"other", "its parent, or the ancestor that it is rebuilt from, was changed"),
    ],
)
def test_a_body_of_another_form_is_damage(at: int, value: Any, why: str) -> None:
    head = _head()
    raw = ormsgpack.packb(_raw_body(head))
    body = content.read_body(CODEC, _with_body(head, StoredValue("", (), ((0, raw),)), (A, B)), CONTENTS)
    assert body.values == {"x": replace(LARGE, inline=((0, b"<"), (2, b">")))}
    raw = ormsgpack.packb(_raw_body(head, at, value))
    with pytest.raises(CheckpointCorruptionError) as caught:
        content.read_body(CODEC, _with_body(head, StoredValue("", (), ((0, raw),)), (A, B)), CONTENTS)
    assert str(caught.value).startswith(f"item PK='t#' SK='C#2#' is damaged: {OTHER_FORM} ({why}")


def test_the_ancestor_that_a_body_is_rebuilt_from_is_text() -> None:
    head = _head(rebuilt_from="0")
    raw = ormsgpack.packb(_raw_body(head, 6, {"log": "0", "other": 1}))
    with pytest.raises(CheckpointCorruptionError, match=r"writes \(int instead of text\)"):
        content.read_body(CODEC, _with_body(head, StoredValue("", (), ((0, raw),)), (A, B)), CONTENTS)


@dataclass
class _Made:
    field: int


def test_a_body_makes_no_types() -> None:
    """Whatever types a reader allows."""
    codec, head = Codec(JsonPlusSerializer(allowed_msgpack_modules=True)), _head()
    raw = ormsgpack.packb(_raw_body(head, 3, _dumped({"made": _Made(7)})))
    body = content.read_body(codec, _with_body(head, StoredValue("", (), ((0, raw),)), (A, B)), CONTENTS)
    assert body.checkpoint["made"] != _Made(7)
    packed = content.pack_typed("msgpack", _dumped({"made": _Made(7)}))
    for plain in (True, False):
        assert (content.unpack_object(codec, KEY, packed, plain=plain) == {"made": _Made(7)}) != plain


def _sealed(name: str, raw: bytes) -> Item:
    return {**KEY, name: Part((), (), CODEC.seal(raw, KEY, name)).attribute(SK)}


@pytest.mark.parametrize(
    ("item", "read", "why"),
    [
        (KEY, content.read_body, "it has no body"),
        (KEY, content.read_metadata, "it has no metadata"),
        ({**KEY, "metadata": {"S": "{"}}, content.read_metadata, "its metadata is not JSON (Expecting"),
        ({**KEY, "metadata": {"S": "[]"}}, content.read_metadata, "its metadata is not a JSON object"),
        (
            {**KEY, "metadata": {"S": '{"a":1e999}'}},
            content.read_metadata,
            "its metadata is not JSON (the number",
        ),
        (
            _sealed("sealed_metadata", ormsgpack.packb(["json"])),
            content.read_metadata,
            f"{OTHER_FORM} (no list of",
        ),
        (_sealed("body", b"\xc1"), content.read_body, OTHER_FORM),
    ],
)
def test_a_head_that_lacks_something_is_damage(item: Item, read: Callable[..., Any], why: str) -> None:
    with pytest.raises(CheckpointCorruptionError) as caught:
        read(CODEC, item, {})
    assert str(caught.value).startswith(f"item PK='t#' SK='C#2#' is damaged: {why}")


def test_sealed_metadata_are_an_object() -> None:
    item = _sealed("sealed_metadata", content.pack_typed("json", b'{"a":1}'))
    assert content.read_metadata(CODEC, item, {}) == {"a": 1}
    item = _sealed("sealed_metadata", content.pack_typed("json", b"[]"))
    with pytest.raises(UnreadableError, match=r"^item PK='t#' SK='C#2#' is intact, but the client"):
        content.read_metadata(CODEC, item, {})


def test_a_typed_value_is_read_as_it_was() -> None:
    raw = content.pack_typed(*CODEC.dumps({"a": UUID(int=1)}, "value"))
    assert (
        content.unpack_typed(CODEC, KEY, raw) == content.unpack_object(CODEC, KEY, raw) == {"a": UUID(int=1)}
    )
    for wrong, why in (
        (b"\x91\x01", "no list of str, bytes"),
        (content.pack_typed("json", b"1"), "int instead of"),
    ):
        with pytest.raises(CheckpointCorruptionError, match=rf"^item PK='t#' .* writes \({why}"):
            content.unpack_object(CODEC, KEY, wrong)


@pytest.mark.parametrize("limit", [4, 5])
def test_segments_that_are_gone_or_too_large_together_are_an_error(limit: int) -> None:
    codec = Codec(JsonPlusSerializer(), bytes_max=limit)
    between = content.pack_inline(((1, b"|"),))
    part = Part((A, B), (), codec.seal(between, KEY, "body", ((A, B), ())))
    with pytest.raises(
        CheckpointCorruptionError, match=r"^item .* damaged: segments that it needs are not in"
    ):
        content.part_content(codec, KEY, "body", part, {A: b"aa"})
    if limit == 5:
        assert content.part_content(codec, KEY, "body", part, CONTENTS) == b"aa|bbb"
        bare = replace(part, sealed=b"")
        assert content.part_content(codec, KEY, "body", bare, CONTENTS) == b"aabbb"
    else:
        with pytest.raises(UnreadableError, match=r"^item PK='t#' SK='C#2#' needs over 4 bytes of memory"):
            content.part_content(codec, KEY, "body", part, CONTENTS)


def test_pending_writes_are_in_the_order_of_tasks_and_within_the_bound() -> None:
    def of(task: str, **groups: list[Write]) -> Item:
        item = items.key("t#", items.writes_sk("2", task))
        return {
            **item,
            **{
                name: Part((), (), CODEC.seal(content.pack_writes(writes), item, name)).attribute(
                    items.sort_key(item)
                )
                for name, writes in groups.items()
            },
        }

    number = CODEC.dumps(7, "value")
    first = of("b", writes=[Write(10, "y", "bytes", b"12", "~1"), Write(2, "x", *number, "~1")])
    second = of(
        "a",
        writes=[Write(0, "x", "null", b"", "~2")],
        special_1=[Write(-1, "__error__", "bytes", b"345", "")],
    )
    expected = [("a", "__error__", b"345"), ("b", "x", 7), ("b", "y", b"12"), ("a", "x", None)]
    assert content.pending_writes(CODEC, [second, first], {}) == expected
    assert content.pending_writes(CODEC, [first, second], {}, frozenset("x")) == [expected[1], expected[3]]
    # Of tasks with one path, the id decides.
    third = of("0", writes=[Write(11, "z", "null", b"", "~1")])
    assert content.pending_writes(CODEC, [first, third], {}) == [("0", "z", None), *expected[1:3]]
    size = 5 + len(number[1])
    assert (
        content.pending_writes(Codec(JsonPlusSerializer(), bytes_max=size), [first, second], {}) == expected
    )
    with pytest.raises(UnreadableError, match=r"^item PK='t#' SK='C#2#W#a' needs over"):
        content.pending_writes(Codec(JsonPlusSerializer(), bytes_max=size - 1), [first, second], {})
    with pytest.raises(CheckpointCorruptionError, match=r"writes \(no list of int, str, str, bytes, str\)"):
        content.read_writes(CODEC, _sealed("writes", b"\x91\x90"), "writes", {})


def test_a_name_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(
        CheckpointSerializationError, match=r"^a channel name or task path is not valid Unicode"
    ):
        content.pack_typed("\ud800", b"")


@pytest.mark.parametrize("counters", [None, "mine", ["a"]])
def test_counters_of_an_applications_own_are_none(counters: Any) -> None:
    assert content.delta_counters({"counters_since_delta_snapshot": counters}) == set()
    assert content.delta_counters({"counters_since_delta_snapshot": {"a": (1, 1)}}) == {"a"}
