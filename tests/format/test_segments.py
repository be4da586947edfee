"""Cutting values and naming segments."""

from __future__ import annotations

import json
import os
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._format.items import unpack_ids
from langgraph.checkpoint.dynamodb._format.limits import (
    CUT_RANGE_BYTES,
    HEAD_IDS_MAX,
    INDEX_GROUP,
    LARGE_SEGMENT_BYTES_MIN,
    LARGE_SEGMENTS_MIN,
    PREAMBLE_BYTES,
    SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN,
)
from langgraph.checkpoint.dynamodb._format.segments import (
    Chunk,
    digest,
    expand,
    fold,
    new_id,
    piece,
    split,
)


def _pieces(data: bytes) -> list[bytes]:
    return [each.content for each in split(data, PREAMBLE_BYTES, [])[0]]


def _chunks(data: bytes) -> list[Chunk]:
    return [Chunk.of(each, None) for each in split(data, PREAMBLE_BYTES, [])[0]]


def _text(seed: int, size: int) -> bytes:
    random = Random(seed)
    words = ["".join(random.choices("etaoinshrdlucm", k=random.randint(2, 9))) for _ in range(500)]
    return " ".join(random.choices(words, k=size // 5)).encode()[:size]


def _least(left: int) -> int:
    """Return the least size of the next piece if so many bytes are left to cut."""
    sizes = (SEGMENT_BYTES_MIN << doubled for doubled in range(20))
    fitting = (each for each in sizes if each * LARGE_SEGMENTS_MIN <= left)
    return min(LARGE_SEGMENT_BYTES_MIN, max(fitting, default=SEGMENT_BYTES_MIN))


def _changed(before: list[Chunk], after: bytes) -> tuple[list[int], list[int]]:
    """Return the sizes of the pieces that a change takes from a value, and of those that it adds."""
    pieces, tail = split(after, PREAMBLE_BYTES, before)
    assert after[:PREAMBLE_BYTES] + b"".join(each.content for each in pieces) + tail == after
    assert all(digest(each.content) == each.digest for each in pieces)
    old, now = {each.digest for each in before}, {each.digest for each in pieces}
    gone = [each.length for each in before if each.digest not in now]
    return gone, [len(each.content) for each in pieces if each.digest not in old]


@given(st.binary(max_size=100), st.integers(0, 60_000) | st.integers(60_000, 900_000))
def test_a_split_value_is_the_value(unit: bytes, size: int) -> None:
    data = (unit * (size // max(1, len(unit)) + 1))[:size]
    pieces, tail = split(data, PREAMBLE_BYTES, [])
    assert data[:PREAMBLE_BYTES] + b"".join(each.content for each in pieces) + tail == data
    left = len(data) - PREAMBLE_BYTES
    for each in pieces:
        assert 0 <= len(each.content) - _least(left) <= CUT_RANGE_BYTES
        left -= len(each.content)
    assert len(tail) <= SEGMENT_BYTES_MIN + CUT_RANGE_BYTES


@pytest.mark.parametrize(
    "data",
    [os.urandom(300_000), _text(1, 300_000), os.urandom(150_000).hex().encode()],
    ids=["random", "text", "hexadecimal"],
)
def test_pieces_of_usual_data_lie_between_the_bounds(data: bytes) -> None:
    pieces, left, at_bound = _pieces(data), len(data) - PREAMBLE_BYTES, 0
    for each in pieces:
        at_bound += len(each) == _least(left) + CUT_RANGE_BYTES
        left -= len(each)
    assert at_bound <= len(pieces) / 4


def test_what_is_large_is_cut_into_few_pieces_and_its_end_into_small_ones() -> None:
    pieces = [len(each) for each in _pieces(_text(1, 10_000_000))]
    assert len(pieces) <= 10_000_000 / LARGE_SEGMENT_BYTES_MIN + 30
    assert min(pieces[:200]) >= LARGE_SEGMENT_BYTES_MIN
    assert max(pieces[-5:]) <= SEGMENT_BYTES_MIN + CUT_RANGE_BYTES


def test_an_edit_of_a_large_piece_makes_small_ones_of_it() -> None:
    before, middle = _text(1, 3_000_000), 1_500_000
    once = before[:middle] + b"other" + before[middle + 5 :]
    gone, new = _changed(_chunks(before), once)
    assert max(new) <= max(gone) / 2
    chunks = [Chunk.of(each, None) for each in split(once, PREAMBLE_BYTES, _chunks(before))[0]]
    gone, new = _changed(chunks, once[:middle] + b"again" + once[middle + 5 :])
    assert sum(new) <= 2 * (SEGMENT_BYTES_MIN + CUT_RANGE_BYTES)


@pytest.mark.parametrize("data", [_text(1, 3_000_000), b"u" * 3_000_000], ids=["text", "one byte"])
def test_a_segment_of_any_piece_can_be_opened(data: bytes) -> None:
    at = data.find(data[-1:], 1_500_000)
    for value in (data, data[: at - 5] + b"other" + data[at:]):
        pieces, tail = split(value, PREAMBLE_BYTES, _chunks(data))
        assert max(len(each.content) for each in pieces) + len(tail) <= SEGMENT_BYTES_MAX


def test_equal_parts_of_values_of_other_lengths_are_cut_in_the_same_places() -> None:
    value = _text(1, 400_000)
    longer = _pieces(value + _text(2, 3_000))
    assert len({*_pieces(value)} & {*longer}) >= len(longer) - 4


def test_repeated_changes_in_one_place_do_not_crumble_a_value() -> None:
    value = _text(1, 200_000)
    chunks = _chunks(value)
    for change in range(200):
        value = value[:100_000] + _text(change, 40 + change % 7) + value[100_040:]
        chunks = [Chunk.of(each, None) for each in split(value, PREAMBLE_BYTES, chunks)[0]]
    assert len(chunks) <= len(_chunks(value)) + 3


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
    before = bytes(PREAMBLE_BYTES) + b"".join(records)
    added = list[bytes]()
    for place, removed, inserted in edits:
        new = [_record(kind, count + len(added) + each) for each in range(inserted)]
        records[place : place + removed] = new
        added += new
    after = bytes(PREAMBLE_BYTES) + b"".join(records)
    gone, new_sizes = _changed(_chunks(before), after)
    touched = [len(each) for each in _pieces(before) if each not in after]
    assert gone == touched
    assert sum(new_sizes) <= sum(touched) + len(b"".join(added)) + SEGMENT_BYTES_MIN + CUT_RANGE_BYTES


def test_the_parents_pieces_come_first_even_where_content_would_not_cut() -> None:
    data = _text(1, 30_000)
    sealed_end = piece(data[PREAMBLE_BYTES:9_000])
    pieces, _ = split(data, PREAMBLE_BYTES, [Chunk.of(sealed_end, None)])
    assert pieces[0] == sealed_end


def test_a_run_of_one_byte_is_cut_at_the_upper_bound() -> None:
    assert {len(piece) for piece in _pieces(b"u" * 60_000)} == {SEGMENT_BYTES_MIN + CUT_RANGE_BYTES}


@given(st.integers(0, 5_000), st.sampled_from([INDEX_GROUP, HEAD_IDS_MAX]))
def test_folded_ids_are_few_and_expand_to_what_they_were(count: int, limit: int) -> None:
    random, contents = Random(count), dict[bytes, bytes]()

    def index(content: bytes) -> bytes:
        segment_id = new_id(random, index=True)
        contents[segment_id] = content
        return segment_id

    ids = [new_id(random) for _ in range(count)]
    folded = fold(ids, limit, index)
    assert len(folded) <= limit
    assert expand(folded, contents) == ids
    assert all(INDEX_GROUP // 2 <= len(unpack_ids(each)) <= INDEX_GROUP for each in contents.values())


def test_groups_of_ids_stay_the_same_behind_ids_that_were_added_or_removed_in_front() -> None:
    random, contents = Random(1), dict[bytes, bytes]()

    def index(content: bytes) -> bytes:
        return contents.setdefault(content, new_id(random, index=True))

    ids = [new_id(random) for _ in range(2_000)]
    fold(ids, INDEX_GROUP, index)
    known = len(contents)
    fold([new_id(random), *ids], INDEX_GROUP, index)
    fold(ids[5:], INDEX_GROUP, index)
    # At most some groups at the front are new, and those of groups that they are in.
    assert len(contents) < 1.3 * known
