"""Cutting values and naming segments."""

import json
import re
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError
from langgraph.checkpoint.dynamodb._format import items, limits, segments
from langgraph.checkpoint.dynamodb._format.segments import Chunk, StoredValue


def _pieces(data: bytes) -> list[bytes]:
    return [each.content for each in segments.split(data, limits.PREAMBLE_BYTES, [])[0]]


def _chunks(data: bytes) -> list[Chunk]:
    return [Chunk.of(each, None) for each in segments.split(data, limits.PREAMBLE_BYTES, [])[0]]


def _text(seed: int, size: int) -> bytes:
    random = Random(seed)
    words = ["".join(random.choices("etaoinshrdlucm", k=random.randint(2, 9))) for _ in range(500)]
    return " ".join(random.choices(words, k=size // 5)).encode()[:size]


def _least(left: int) -> int:
    """Return the least size of the next piece if so many bytes are left to cut."""
    sizes = (limits.SEGMENT_BYTES_MIN << doubled for doubled in range(20))
    fitting = (each for each in sizes if each * limits.LARGE_SEGMENTS_MIN <= left)
    return min(limits.LARGE_SEGMENT_BYTES_MIN, max(fitting, default=limits.SEGMENT_BYTES_MIN))


def _changed(before: list[Chunk], after: bytes) -> tuple[list[int], list[int]]:
    """Return the sizes of the pieces that a change takes from a value, and of those that it adds."""
    pieces, tail = segments.split(after, limits.PREAMBLE_BYTES, before)
    assert after[: limits.PREAMBLE_BYTES] + b"".join(each.content for each in pieces) + tail == after
    assert all(segments.digest(each.content) == each.digest for each in pieces)
    old, now = {each.digest for each in before}, {each.digest for each in pieces}
    gone = [each.length for each in before if each.digest not in now]
    return gone, [len(each.content) for each in pieces if each.digest not in old]


def test_an_edit_of_a_large_piece_makes_small_ones_of_it() -> None:
    before, middle = _text(1, 3_000_000), 1_500_000
    once = before[:middle] + b"other" + before[middle + 5 :]
    gone, new = _changed(_chunks(before), once)
    assert max(new) <= max(gone) / 2
    chunks = [
        Chunk.of(each, None) for each in segments.split(once, limits.PREAMBLE_BYTES, _chunks(before))[0]
    ]
    gone, new = _changed(chunks, once[:middle] + b"again" + once[middle + 5 :])
    assert sum(new) <= 2 * (limits.SEGMENT_BYTES_MIN + limits.CUT_RANGE_BYTES)


def _record(kind: str, number: int) -> bytes:
    """Return one of a list's records, most of whose bytes are those of each other one."""
    random = Random(f"{kind}/{number}")
    text = {
        "rows": "",
        "messages": " ".join(random.choices(["to", "be", "or", "not"], k=random.randint(9, 90))),
    }
    fields = {
        "id": f"{random.getrandbits(64):016x}",
        "content": text[kind],
        "metadata": {"model_name": "a-model-of-2026", "provider": "a-provider", "finish_reason": "stop"},
        "usage": {"input_tokens": random.randint(100, 900), "details": {"audio": 0, "cache_read": 0}},
    }
    return json.dumps(fields).encode()


@pytest.mark.parametrize("kind", ["rows", "messages"])
@given(
    st.integers(20, 600),
    st.lists(st.tuples(st.integers(0, 600), st.integers(0, 3), st.integers(0, 3)), max_size=12),
)
def test_an_edited_list_keeps_each_piece_that_no_edit_touches(
    kind: str, count: int, edits: list[tuple[int, int, int]]
) -> None:
    records = [_record(kind, number) for number in range(count)]
    before = bytes(limits.PREAMBLE_BYTES) + b"".join(records)
    added = list[bytes]()
    for place, removed, inserted in edits:
        new = [_record(kind, count + len(added) + each) for each in range(inserted)]
        records[place : place + removed] = new
        added += new
    after = bytes(limits.PREAMBLE_BYTES) + b"".join(records)
    gone, new_sizes = _changed(_chunks(before), after)
    touched = [len(each) for each in _pieces(before) if each not in after]
    assert gone == touched
    assert (
        sum(new_sizes)
        <= sum(touched) + len(b"".join(added)) + limits.SEGMENT_BYTES_MIN + limits.CUT_RANGE_BYTES
    )


@given(st.permutations(range(8)), st.integers(0, 6_000))
@example([1, 2, 3, 4, 5, 6, 7, 0], 40)
def test_pieces_in_any_other_order_are_cut(order: list[int], new: int) -> None:
    """The first one may come behind all that is looked at first."""
    contents = [_text(each, 25_000) for each in range(8)]
    before = [Chunk.of(segments.piece(each), None) for each in contents]
    gone, _ = _changed(
        before, bytes(limits.PREAMBLE_BYTES + new) + b"".join(contents[each] for each in order)
    )
    assert len(gone) < 8


@given(st.integers(0, 5_000), st.sampled_from([limits.INDEX_GROUP, limits.HEAD_IDS_MAX]))
def test_folded_ids_are_few_and_expand_to_what_they_were(count: int, limit: int) -> None:
    random, contents = Random(count), dict[bytes, bytes]()

    def index(content: bytes) -> bytes:
        segment_id = segments.new_id(random, index=True)
        contents[segment_id] = content
        return segment_id

    ids = [segments.new_id(random) for _ in range(count)]
    folded = segments.fold(ids, limit, index)
    assert len(folded) <= limit
    assert segments.expand(folded, contents) == ids
    assert all(
        limits.INDEX_GROUP // 2 <= len(items.unpack_ids(each)) <= limits.INDEX_GROUP
        for each in contents.values()
    )


# A byte after which a cut is possible, before one that is none.
_PLACE = re.compile(
    rb"[u7yKT\x05\x15\x85\x95\xa5\xb5\xc5\xd5\xe5\xf5](?![u7yKT\x05\x15\x85\x95\xa5\xb5\xc5\xd5\xe5\xf5])"
)


def _cut_as_documented(data: bytes, start: int, stop: int, large: int) -> list[int]:
    """Cut as docs/design.md says: place by place, without what makes it fast."""
    ends = list[int]()
    while stop - start > limits.SEGMENT_BYTES_MIN:
        least = max(limits.SEGMENT_BYTES_MIN, min(large, _least(stop - start)))
        last = start + least + limits.CUT_RANGE_BYTES
        places = (match.end() for match in _PLACE.finditer(data, start + least, min(last, stop)))
        end = next((each for each in places if zlib.crc32(data[each - 32 : each]) % 128 == 0), last)
        if end > stop:
            break
        ends.append(end)
        start = end
    return ends


@pytest.mark.parametrize("large", [limits.SEGMENT_BYTES_MIN, limits.LARGE_SEGMENT_BYTES_MIN])
@pytest.mark.parametrize(
    ("start", "size"),
    [(0, 4096), (0, 4097), (16, 60_000), (16, 65_552), (0, 131_071), (0, 131_072), (7, 700_000)],
)
@pytest.mark.parametrize("unit", [_text(3, 700_000), b"u" * 700_000, b"u-" * 350_000])
def test_a_value_is_cut_where_its_own_bytes_say(unit: bytes, start: int, size: int, large: int) -> None:
    ends = list(segments.cut(unit, start, size, large))
    assert ends == _cut_as_documented(unit, start, size, large)
    pieces, tail = segments.cut_pieces(unit[:size], start, large)
    assert [each.content for each in pieces] == [
        unit[begin:end] for begin, end in zip([start, *ends], ends, strict=False)
    ]
    assert tail == unit[[start, *ends][-1] : size]


def test_a_piece_is_found_where_it_is_and_nowhere_else() -> None:
    content, other = _text(4, 5_000), _text(5, 5_000)
    chunk = Chunk.of(segments.piece(content), 9)
    assert chunk == Chunk(segments.digest(content), 5_000, chunk.anchor, chunk.anchor_offset, 9)
    # Bytes that occur once in it, not at its front.
    assert chunk.anchor_offset >= 2_484
    assert content[chunk.anchor_offset :].startswith(chunk.anchor)
    assert (len(chunk.anchor), content.count(chunk.anchor)) == (32, 1)
    for before, after in ((0, 0), (3, 0), (0, 3), (5_000, 5_000)):
        data = other[:before] + content + other[:after]
        assert chunk.find(data, 0, len(data)) == before
        assert chunk.find(data, before, before + 5_000) == before
        assert chunk.find(data, before + 1, len(data)) is None
        assert chunk.find(data, 0, before + 4_999) is None
        assert chunk.piece_at(data, before) == segments.piece(content)
        assert chunk.piece_at(data, before + 1) is None
    assert chunk.find(other + content, 0, 56) is None
    # Its anchor alone is not it; of two places, the first counts.
    mid = chunk.anchor_offset
    data = b"".join((content[: mid + 32], other, content, content))
    assert chunk.find(data, 0, len(data)) == mid + 32 + 5_000
    changed = content[:-1] + b"\0"
    assert chunk.piece_at(changed, 0) is None
    assert chunk.find(changed * 40 + content, 0, 41 * 5_000) is None


@pytest.mark.parametrize("content", [b"", b"a", b"a" * 40, b"ab" * 500])
def test_a_piece_without_bytes_of_its_own_is_found_too(content: bytes) -> None:
    chunk = Chunk.of(segments.piece(content), None)
    assert (chunk.anchor_offset, chunk.anchor) == (0, content[:32])
    assert chunk.find(content, 0, len(content)) == 0


def test_small_new_bytes_before_a_kept_piece_join_the_piece_before() -> None:
    kept = segments.piece(_text(6, 9_000))
    chunks = [Chunk.of(kept, None)]
    for size in (100, limits.SEGMENT_BYTES_MIN, 3 * (limits.SEGMENT_BYTES_MIN + limits.CUT_RANGE_BYTES)):
        new = _text(7, size)
        pieces, tail = segments.split(bytes(16) + new + kept.content + b"end", 16, chunks)
        assert b"".join(each.content for each in pieces[:-1]) == new
        assert (pieces[-1], tail) == (kept, b"end")
        assert len(pieces) == 2 or min(len(each.content) for each in pieces) >= limits.SEGMENT_BYTES_MIN


def test_values_are_joined_from_segments_and_what_is_between() -> None:
    contents = [b"1", b"22", b"333"]
    assert segments.join(contents, ()) == b"122333"
    assert segments.join(contents, ((0, b"a"), (2, b"b"), (3, b"c"))) == b"a122b333c"
    assert segments.join(contents, ((1, b"a"), (1, b"b"))) == b"1ab22333"
    ids = [bytes([each] * 8) for each in range(3)]
    chunks = {
        each: Chunk.of(segments.piece(content), None) for each, content in zip(ids, contents, strict=True)
    }
    values = [StoredValue("x", (ids[0], ids[2]), ((0, b"ab"), (2, b"c"))), StoredValue("x", (ids[1],), ())]
    assert (segments.inline_bytes(values), segments.bytes_of(values, chunks)) == (3, 9)
    assert values[0].join(dict(zip(ids, contents, strict=True))) == b"ab1333c"


ONE, OTHER, INDEX, OUTER = bytes(8), b"\2" * 8, b"\1" * 8, b"\3" * 8


@pytest.mark.parametrize("follow", [segments.expand, segments.reach])
@pytest.mark.parametrize("content", [b"", b"1234567", b"123456789"])
def test_an_index_that_is_no_list_of_ids_is_named(
    follow: Callable[..., Iterable[bytes]], content: bytes
) -> None:
    with pytest.raises(
        CheckpointCorruptionError, match=r"^segment SK='S#0101.*' is damaged: its content is not a"
    ):
        list(follow([ONE, INDEX], {INDEX: content}))


def test_indexes_lead_to_what_they_name() -> None:
    contents = {INDEX: ONE + OTHER, OUTER: INDEX + ONE, ONE: b"content"}
    assert segments.expand([OTHER, OUTER], contents) == [OTHER, ONE, OTHER, ONE]
    assert segments.reach([OUTER], contents) == {OUTER, INDEX, ONE, OTHER}
    assert segments.expand([OUTER], {}) == [OUTER]
    assert segments.reach([OUTER], {}) == {OUTER}
    with pytest.raises(
        CheckpointCorruptionError, match=r"^segment SK='S#0101.*' is damaged: it is nested too deeply"
    ):
        segments.expand([INDEX], {INDEX: INDEX})
    assert segments.reach([INDEX], {INDEX: INDEX}) == {INDEX}
    chain = [bytes([1, level] + [0] * 6) for level in range(22)]
    nested = dict(pairwise(chain))
    assert segments.expand(chain[1:2], nested) == chain[-1:]
    with pytest.raises(CheckpointCorruptionError, match="nested too deeply"):
        segments.expand(chain[:1], nested)
    with pytest.raises(
        CheckpointCorruptionError, match=r"^segment SK='S#0101.*' is damaged: it leads to more ids"
    ):
        segments.expand([INDEX] * 129, {INDEX: ONE * 2048})
    assert len(segments.expand([INDEX] * 128, {INDEX: ONE * 2048})) == 1 << 18


def test_an_id_tells_whether_it_is_an_indexs() -> None:
    for index in (False, True):
        made = [segments.new_id(Random(seed), index=index) for seed in range(20)]
        assert {len(each) for each in made} == {8}
        assert [segments.is_index(each) for each in made] == [index] * 20
        copies = [segments.derived_id(seed, made[0]) for seed in (b"a", b"b")]
        assert [segments.is_index(each) for each in copies] == [index] * 2
        assert len({*copies, made[0]}) == 3
        assert copies[0] == segments.derived_id(b"a", made[0])


@pytest.mark.parametrize(("last", "sizes"), [(1, [32, 32]), (8, [16, 16, 16, 16])])
def test_a_group_ends_at_an_id_that_says_so_or_when_it_is_full(last: int, sizes: list[int]) -> None:
    contents = dict[bytes, bytes]()

    def index(content: bytes) -> bytes:
        return contents.setdefault(content, bytes([1, len(contents)] + [0] * 6))

    ids = [bytes([0, number] + [0] * 5 + [last]) for number in range(70)]
    folded = segments.fold(ids, 69, index)
    assert [len(each) // 8 for each in contents] == sizes
    assert folded == (*contents.values(), *ids[sum(sizes) :])
    assert segments.fold(ids, 70, index) == tuple(ids)
