"""What is built is read back equal, and stored content is named again instead of written again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._format import content, items, limits
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Part
from langgraph.checkpoint.dynamodb._format.pricing import WRITE_UNIT_BYTES, item_bytes, write_units
from langgraph.checkpoint.dynamodb._format.segments import StoredValue, expand, inline_bytes, is_index, split
from langgraph.checkpoint.dynamodb._operations.compose import ItemBuilder
from langgraph.checkpoint.dynamodb._operations.reads import open_segments
from langgraph.checkpoint.dynamodb._runtime.storage import CachedCheckpoint, Storage
from tests.support.checkpoints import noise
from tests.support.harness import CODEC, ENCRYPTED, THREAD, Harness

AT = items.partition_of(THREAD)
SK = items.checkpoint_prefix("1")
HEAD = items.key(AT.pk, SK)
BIG = noise(100_000)
# The largest piece of a value that is not large.
_CUT_BYTES_MAX = limits.SEGMENT_BYTES_MIN + limits.CUT_RANGE_BYTES


def _storage(codec: Codec = CODEC) -> Storage:
    return Harness().process(codec=codec).storage


def _builder(storage: Storage, base: CachedCheckpoint | None = None) -> ItemBuilder:
    return ItemBuilder(storage, AT, items.key(AT.pk, SK), base)


def _stored(builder: ItemBuilder, values: Mapping[str, StoredValue]) -> CachedCheckpoint:
    """Return the checkpoint that a builder has made, as its child knows it."""
    return CachedCheckpoint(b"epoch", {}, values, builder.chunks, {})


def _contents(codec: Codec, *builders: ItemBuilder) -> dict[bytes, bytes]:
    """Open all segments that builders have made."""
    return open_segments(codec, [each for builder in builders for each in builder.segments.values()])


def _value(builder: ItemBuilder, data: bytes, before: StoredValue | None = None) -> StoredValue:
    return builder.value("bytes", data, before, inline=False)


# Values


@pytest.mark.parametrize("is_before_known", [True, False], ids=["same channel", "another channel"])
def test_a_value_that_grew_names_what_is_stored_and_stores_what_is_new(*, is_before_known: bool) -> None:
    storage = _storage()
    first = _builder(storage)
    before = _value(first, BIG)
    then = _builder(storage, _stored(first, {"x": before}))
    grown = BIG + noise(5_000, 1)
    value = _value(then, grown, before if is_before_known else None)
    assert value.segments[: len(before.segments)] == before.segments
    assert sum(map(len, _contents(CODEC, then).values())) + inline_bytes([value]) < 5_000 + 2 * _CUT_BYTES_MAX
    assert value.join(_contents(CODEC, first, then)) == grown
    # All that it names is known to the next step, too.
    assert {*value.segments} <= then.chunks.keys()


@pytest.mark.parametrize("shares", [True, False])
def test_equal_values_of_one_item_are_stored_once_unless_that_is_to_be_hidden(*, shares: bool) -> None:
    builder = _builder(replace(_storage(), share_equal_pieces=shares))
    values = [_value(builder, BIG) for _ in range(2)]
    assert (values[0] == values[1]) == shares
    assert len(builder.segments) == len({*values[0].segments, *values[1].segments})


def test_nothing_is_found_by_its_digest_if_pieces_are_not_to_be_shared() -> None:
    storage = replace(_storage(), share_equal_pieces=False)
    first = _builder(storage)
    before = first.seal_inline(_value(first, BIG[:50_000]))
    then, alone = _builder(storage, _stored(first, {"x": before})), _builder(storage)
    value = _value(then, BIG, before)
    assert not {*value.segments} & {*before.segments}
    assert {*value.segments} == then.segments.keys()
    # Nor is it cut where the value before was.
    _value(alone, BIG)
    assert [*_contents(CODEC, then).values()] == [*_contents(CODEC, alone).values()]
    # What the step left alone is inherited all the same.
    assert then.inherit(before) == before
    assert {*before.segments} <= then.chunks.keys()


def test_pieces_that_compress_are_packed_and_cost_fewer_units() -> None:
    text = b"".join(b"the same line again, number %d\n" % (number % 7) for number in range(3_000))
    storage = _storage()
    builder = _builder(storage)
    value = _value(builder, text)
    sizes = [len(each) for each in _contents(CODEC, builder).values()]
    assert _CUT_BYTES_MAX < max(sizes) <= limits.SEGMENT_BYTES_MAX
    # Each piece by itself would cost one.
    units = sum(write_units(item_bytes(each)) for each in builder.segments.values())
    assert units <= len(split(text, limits.PREAMBLE_BYTES, ())[0]) / 2
    # What was packed is found again as it is.
    then = _builder(storage, _stored(builder, {"x": value}))
    assert _value(then, text, value) == value
    assert not then.segments


# What is inline moves to segments


@pytest.mark.parametrize("codec", [CODEC, ENCRYPTED], ids=["plain", "encrypted"])
@pytest.mark.parametrize("thread_id", [THREAD, "t" * 100, "t" * 930, "t" * 1500])
def test_a_tail_fills_whole_units_and_a_small_rest_stays_inline(codec: Codec, thread_id: str) -> None:
    partition = items.partition_of(thread_id)
    rests = set[bool]()
    for size in range(1000, 4000, 100):
        builder = ItemBuilder(_storage(codec), partition, items.key(partition.pk, SK), None)
        data = noise(limits.PREAMBLE_BYTES + size)
        sealed = builder.seal_inline(builder.value("bytes", data, None, inline=True))
        assert sealed.join(_contents(codec, builder)) == data
        (segment,) = builder.segments.values()
        stored = items.with_expiry(items.created(segment, 1e9), 10**9)
        spare_bytes = -item_bytes(stored) % WRITE_UNIT_BYTES
        rest_bytes = inline_bytes([sealed]) - limits.PREAMBLE_BYTES
        rests.add(rest_bytes > 0)
        if rest_bytes:
            # What is cut off is found to a sixteenth of a unit.
            assert rest_bytes < WRITE_UNIT_BYTES * 9 // 16
            assert spare_bytes < WRITE_UNIT_BYTES // 16
        else:
            with_no_data = items.with_expiry(items.created({**segment, items.DATA: {"B": b""}}, 1e9), 10**9)
            is_first_unit = write_units(item_bytes(stored)) == write_units(item_bytes(with_no_data))
            assert is_first_unit or spare_bytes <= WRITE_UNIT_BYTES // 2
    assert rests == {True, False}


# Parts


def _read(codec: Codec, part: Part, contents: Mapping[bytes, bytes], name: str = items.BODY) -> bytes:
    return content.part_content(codec, HEAD, name, part, contents)


@pytest.mark.parametrize("codec", [CODEC, ENCRYPTED], ids=["plain", "encrypted"])
@pytest.mark.parametrize(
    ("size", "is_inline"), [(limits.BODY_BYTES_MAX - 200, True), (limits.BODY_BYTES_MAX + 1, False)]
)
def test_content_is_in_its_item_up_to_a_size_and_beyond_in_segments(
    codec: Codec, size: int, *, is_inline: bool
) -> None:
    builder = _builder(_storage(codec))
    raw = noise(size)
    part = builder.part(items.BODY, raw, limits.BODY_BYTES_MAX)
    assert (not part.own) == (not builder.segments) == is_inline
    assert len(part.sealed) <= limits.BODY_BYTES_MAX
    assert _read(codec, part, _contents(codec, builder)) == raw


def test_content_that_is_mostly_stored_names_the_segments() -> None:
    """Also where it would fit into its item."""
    storage = _storage()
    first = _builder(storage)
    before = _value(first, BIG[:50_000])
    then = _builder(storage, _stored(first, {"x": before}))
    raw = b"before" + BIG[:50_000]
    part = then.part(items.WRITES, raw, limits.WRITES_BYTES_MAX, before=[before])
    assert {*part.own} >= {*before.segments}
    assert not then.segments
    assert _read(CODEC, part, _contents(CODEC, first), items.WRITES) == raw
    # Without `before` it shares nothing.
    alone = _builder(storage, _stored(first, {"x": before}))
    assert alone.part(items.WRITES, raw, limits.WRITES_BYTES_MAX).own == ()


@pytest.mark.parametrize(
    ("new", "is_inline"), [(b"compresses " * 2_000, True), (noise(_CUT_BYTES_MAX + 1, 1), False)]
)
def test_new_content_beside_stored_content_is_inline_if_it_takes_at_most_one_unit(
    new: bytes, *, is_inline: bool
) -> None:
    storage = _storage()
    first = _builder(storage)
    before = first.seal_inline(_value(first, BIG))
    then = _builder(storage, _stored(first, {"x": before}))
    part = then.part(items.WRITES, BIG + new, limits.WRITES_BYTES_MAX, before=[before])
    assert (not then.segments) == is_inline
    assert not is_inline or len(part.sealed) <= WRITE_UNIT_BYTES
    assert _read(CODEC, part, _contents(CODEC, first, then), items.WRITES) == BIG + new


# Index segments


def test_long_lists_of_ids_move_to_index_segments_which_need_no_key() -> None:
    storage = _storage(ENCRYPTED)
    first = _builder(storage)
    raw = noise(2 * limits.INDEX_GROUP * limits.LARGE_SEGMENT_BYTES_MIN)
    part = first.part(items.BODY, raw, limits.BODY_BYTES_MAX)
    contents = _contents(ENCRYPTED, first)
    assert len(part.own) <= limits.INDEX_GROUP < len(expand(part.own, contents))
    indexes = [each for each in part.own if is_index(each)]
    assert open_segments(None, [first.segments[each] for each in indexes]) == {
        each: contents[each] for each in indexes
    }
    assert _read(ENCRYPTED, part, contents) == raw


def test_values_of_many_segments_are_named_by_index_segments_which_the_next_step_names_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LARGE_SEGMENT_BYTES_MIN", limits.SEGMENT_BYTES_MIN)
    storage = _storage()
    first = _builder(storage)
    many = noise((limits.HEAD_IDS_MAX + 5 * limits.INDEX_GROUP) * _CUT_BYTES_MAX)
    value = _value(first, many)
    part = first.part(items.BODY, b"body", limits.BODY_BYTES_MAX, [value])
    contents = _contents(CODEC, first)
    assert len(part.refs) <= limits.HEAD_IDS_MAX < len(value.segments)
    assert expand(part.refs, contents) == [*value.segments]
    base = _stored(first, {"x": value})
    then = _builder(storage, base)
    again = then.part(items.BODY, b"body", limits.BODY_BYTES_MAX, [then.inherit(value)])
    assert again.refs == part.refs
    assert not then.segments


# All of it

_Block = tuple[bool, int, int]
blocks = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 30_000)), max_size=5)


def _data(some: Sequence[_Block]) -> bytes:
    """Return data of blocks of which some compress, and which other data have as well."""
    return b"".join(
        noise(size, seed) if is_noise else b"%d " % seed * (size // 2) for is_noise, seed, size in some
    )


@given(
    steps=st.lists(st.dictionaries(st.sampled_from("xyz"), blocks, min_size=1), min_size=1, max_size=3),
    encrypts=st.booleans(),
    seals=st.booleans(),
    shares=st.booleans(),
)
def test_what_is_built_is_read_back_equal(
    steps: list[dict[str, list[_Block]]], *, encrypts: bool, seals: bool, shares: bool
) -> None:
    """Build a few checkpoints, each with the segments of the one before it."""
    codec = ENCRYPTED if encrypts else CODEC
    storage = replace(_storage(codec), share_equal_pieces=shares)
    base: CachedCheckpoint | None = None
    builders = list[ItemBuilder]()
    for step in steps:
        builder = _builder(storage, base)
        data = {name: _data(some) for name, some in step.items()}
        before = {} if base is None else base.values
        values = {name: _value(builder, each, before.get(name)) for name, each in data.items()}
        if seals:
            values = {name: builder.seal_inline(each) for name, each in values.items()}
        raw = b"".join((b"body", *data.values()))
        part = builder.part(items.BODY, raw, limits.BODY_BYTES_MAX, values.values(), list(before.values()))
        builders.append(builder)
        contents = _contents(codec, *builders)
        assert {name: each.join(contents) for name, each in values.items()} == data
        assert _read(codec, part, contents) == raw
        named = {*expand(part.ids, contents), *part.ids}
        assert named >= {each for value in values.values() for each in value.segments}
        # The child, and whoever extends them, know all that is named, and nothing is stored that is not.
        assert builder.segments.keys() <= builder.chunks.keys() == named
        base = _stored(builder, values)
