"""What may have become of an item: any bytes, any type, any sort key; and what passes every checksum but is not ours.

A checksum keeps damage from the parsers behind it. So that they are tried too, half of the mutations here are
sealed again, as somebody would who knows the format.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import ormsgpack
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, Ids, _envelope, seal_plain
from langgraph.checkpoint.dynamodb._format.compression import compress
from langgraph.checkpoint.dynamodb._format.content import open_part
from langgraph.checkpoint.dynamodb._format.items import Item, Part
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, SORT_KEY
from langgraph.checkpoint.dynamodb._format.segments import expand, is_index
from langgraph.checkpoint.dynamodb._operations.reads import open_segment
from tests.fuzz.tables import Thread

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
Damaged: TypeAlias = tuple[Thread, Item, Item]
"""A thread as it was, the item that was damaged, and what became of it."""

KEYS = frozenset({PARTITION_KEY, SORT_KEY})
# What checksums cover, directly or by the body's digest of the readable metadata.
VERIFIED = frozenset({*items.PARTS, items.METADATA, items.DATA})

# Bytes


def mutated(draw: Draw, data: bytes, others: list[bytes]) -> bytes:
    """Bytes made from some that were stored."""
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, len(data)))
    middle = draw(
        st.binary(max_size=16)
        | st.sampled_from(others)
        | st.integers(0, 255).map(lambda mask: bytes(each ^ mask for each in data[start:end]))
        | st.integers(2, 5).map(lambda times: data[start:end] * times)
    )
    return bytes(data[:start] + middle + draw(st.sampled_from((data[end:], b""))))


NUMBERS = st.sampled_from(["0", "-1", "0.5", "1E+125", "-1E+125", "1E-130", "9" * 38, "255", "65536"]).map(
    lambda number: {"N": number}
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
OTHER_TYPES = st.one_of(
    NUMBERS,
    TEXT.map(lambda text: {"S": text}),
    st.just({"S": "x" * 3000}),
    st.just({"S": "[" * 100_000}),
    st.binary(max_size=40).map(lambda data: {"B": data}),
    st.sampled_from([
        {"NULL": True},
        {"BOOL": False},
        {"M": {"B": {"B": b"x"}}},
        {"L": [{"S": "x"}]},
        {"BS": [b"x"]},
    ]),
)  # fmt: skip
JSON_METADATA = st.sampled_from([
    "{}", "[]", "null", '{"step":"x"}', '{"parents":{"":7}}', '{"parents":3}', '{"parents":{"":[]}}',
    '{"counters_since_delta_snapshot":5}', '{"counters_since_delta_snapshot":[[]]}', '{"source":"\\ud800"}',
    '{"step":' + "9" * 5000 + "}", '{"a":' * 5000,
]).map(lambda text: {"S": text})  # fmt: skip


def _all_bytes(thread: Thread) -> list[bytes]:
    return [each["B"] for item in thread.items for each in item.values() if "B" in each]


def _attribute(draw: Draw, thread: Thread, item: Item, name: str) -> Item:
    """The item with one attribute that is not what it was, or without it."""
    value = item[name]
    kinds: list[st.SearchStrategy[Any]] = [OTHER_TYPES, st.none()]
    kinds += [st.sampled_from([each[name] for each in thread.items if name in each])]
    if name == items.METADATA:
        kinds += [JSON_METADATA]
    if "B" in value:
        kinds += [st.just(...)] * 6
    changed = draw(st.one_of(kinds))
    if changed is ...:
        changed = {"B": mutated(draw, value["B"], _all_bytes(thread))}
    rest = {each: content for each, content in item.items() if each != name}
    return rest if changed is None else {**rest, name: changed}


def _storable(item: Item) -> Item:
    """The item as DynamoDB can hold it: the index takes no run id that is not a string of at least a character."""
    run_id = item.get(RUN_ID, {}).get("S") or "x" * 2049
    return (
        item
        if len(run_id.encode()) <= 2048
        else {name: value for name, value in item.items() if name != RUN_ID}
    )


@st.composite
def damaged_attributes(draw: Draw, thread: Thread) -> Damaged:
    """One item of the thread with one attribute that is not what was written."""
    old = draw(st.sampled_from(thread.items))
    name = draw(st.sampled_from(sorted(old.keys() - KEYS)))
    return thread, old, _storable(_attribute(draw, thread, old, name))


ODD_KEYS = st.one_of(
    st.sampled_from([
        "C#", "C##", "C#%", "C#%zz#", "C#1", "C#1#W", "C#1#W#", "C#1#X#y", "C# #", "C#%41#", "C#1##", "C##W#x", "N#%41",
        "N#:", "S#", "S#0", "S#nothex", "S#00000000000000AB", "S#00000000000000ab0", "T", "T#", "X",
    ]),
    TEXT.map(lambda text: f"C#{text}"),
    TEXT.map(lambda text: f"C#{text}#W#{text}"),
    TEXT.map(lambda text: f"S#{text}"),
    TEXT.map(lambda text: f"N#x{text}"),
    st.sampled_from(["C#%s#", "C#1#W#%s", "N#%s"]).map(lambda key: key % (" " * 1000)),
)  # fmt: skip


@st.composite
def odd_keys(draw: Draw, thread: Thread) -> Damaged:
    """An item more, which somebody put under a sort key of their own; what is sealed in it is sealed for that key."""
    old = draw(st.sampled_from(thread.items))
    sk = draw(ODD_KEYS)
    new = {**old, SORT_KEY: {"S": sk}, items.REGISTERED: {"B": b"entered"}}
    for name, part in items.parts_of(old):
        if part.sealed:
            raw = open_part(thread.codec, old, name, part, thread.indexes)
            sealed = thread.codec.seal(raw, new, name, _expanded(thread, part.own, part.refs))
            new[name] = Part(part.own, part.refs, sealed).attribute(sk)
    return thread, {}, new


def _expanded(thread: Thread, own: tuple[bytes, ...], refs: tuple[bytes, ...]) -> Ids:
    """The segments that lists of ids lead to."""
    return expand(own, thread.indexes), expand(refs, thread.indexes)


# Sealed again

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([-(1 << 63), (1 << 64) - 1]),
    st.floats(),
    TEXT,
    st.binary(max_size=8),
    st.sampled_from(["pickle", "msgpack", "json", "null", "bytes", "no such type", "msgpack+aes"]),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def _changed_tree(draw: Draw, tree: Any) -> Any:
    """A tree with one node that is something else."""
    children = tree if isinstance(tree, list) else [] if not isinstance(tree, dict) else list(tree)
    if not children or draw(st.integers(0, 4)) == 0:
        return draw(TREES)
    at = draw(st.sampled_from(range(len(children))))
    if isinstance(tree, dict):
        return {**tree, children[at]: _changed_tree(draw, tree[children[at]])}
    how = draw(st.sampled_from(["change", "change", "change", "drop", "repeat"]))
    if how == "change":
        return [*tree[:at], _changed_tree(draw, tree[at]), *tree[at + 1 :]]
    return tree[:at] + tree[at + 1 :] if how == "drop" else [*tree[:at], tree[at], *tree[at:]]


def _changed_packed(draw: Draw, data: bytes) -> bytes:
    """Packed content with something else in it: in the tree, or in what one of its values is serialized to."""
    try:
        tree = ormsgpack.unpackb(data)
    except ValueError:
        return mutated(draw, data, [data])
    if isinstance(tree, list) and draw(st.booleans()):
        packed = [at for at, each in enumerate(tree) if isinstance(each, bytes) and each]
        if packed:
            at = draw(st.sampled_from(packed))
            tree[at] = _changed_packed(draw, tree[at])
            return ormsgpack.packb(tree)
    return ormsgpack.packb(_changed_tree(draw, tree))


def _sealed(draw: Draw, codec: Codec, raw: bytes, item: Item, name: str, ids: Ids = ((), ())) -> bytes:
    """Sealed bytes whose checksum is right, whatever else is not."""
    compression, payload = compress(raw)
    sk = items.sort_key(item)
    sealed: bytes = draw(
        st.one_of(
            st.just(codec.seal(raw, item, name, ids)),
            st.just(_envelope(1, compression, b"", payload, sk)),
            st.builds(
                lambda version, compression, cipher, payload: _envelope(
                    version, compression, cipher, payload, sk
                ),
                st.integers(0, 2),
                st.integers(0, 3),
                st.sampled_from([b"", b"aes", b"\xff\xfe", b"x" * 255]),
                st.just(payload) | st.binary(max_size=60),
            ),
        )
    )
    return sealed


def _ids(draw: Draw, thread: Thread, own: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """A list of segment ids: of the thread, of the item itself, or of nothing."""
    known = [
        items.segment_id_of(item) for item in thread.items if items.sort_key(item).startswith(items.SEGMENTS)
    ]
    one = st.sampled_from([*known, *own, bytes(8), b"\xff" * 8])
    return tuple(draw(st.lists(one, max_size=6) | st.just(list(own)) | one.map(lambda each: [each] * 60)))


@st.composite
def resealed(draw: Draw, thread: Thread) -> Damaged:
    """One item of the thread with content that nobody wrote, under the right checksum."""
    sealing = [item for item in thread.items if items.DATA in item or any(True for _ in items.parts_of(item))]
    old = draw(st.sampled_from(sealing))
    sk = items.sort_key(old)
    if items.DATA in old:
        segment_id = items.segment_id_of(old)
        raw = open_segment(thread.codec, old)
        if is_index(segment_id) and draw(st.booleans()):
            content = b"".join(_ids(draw, thread, (segment_id,))) + draw(st.sampled_from([b"", b"x"]))
            return thread, old, {**old, items.DATA: {"B": seal_plain(content, sk)}}
        sealed = _sealed(draw, thread.codec, mutated(draw, raw, [raw]), old, items.DATA)
        return thread, old, {**old, items.DATA: {"B": sealed}}
    name, part = draw(st.sampled_from(list(items.parts_of(old))))
    own, refs, sealed = part.own, part.refs, part.sealed
    if draw(st.booleans()):
        own, refs = draw(st.sampled_from([(own, _ids(draw, thread, refs)), (_ids(draw, thread, own), refs)]))
    if sealed:
        raw = open_part(thread.codec, old, name, part, thread.indexes)
        content = draw(st.sampled_from([_changed_packed, lambda draw, raw: mutated(draw, raw, [raw])]))(
            draw, raw
        )
        sealed = _sealed(draw, thread.codec, content, old, name, _expanded(thread, own, refs))
    return thread, old, {**old, name: Part(own, refs, sealed).attribute(sk)}
