"""Cutting values and naming segments."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._format.items import unpack_ids
from langgraph.checkpoint.dynamodb._format.limits import (
    HEAD_IDS_MAX,
    INDEX_GROUP,
    PREAMBLE_BYTES,
    SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN,
)
from langgraph.checkpoint.dynamodb._format.segments import (
    Chunk,
    cut,
    digest,
    expand,
    fold,
    is_index,
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


@given(st.binary(max_size=100), st.integers(0, 60_000))
def test_a_split_value_is_the_value(unit: bytes, size: int) -> None:
    data = (unit * (size // max(1, len(unit)) + 1))[:size]
    pieces, tail = split(data, PREAMBLE_BYTES, [])
    assert data[:PREAMBLE_BYTES] + b"".join(each.content for each in pieces) + tail == data
    assert all(SEGMENT_BYTES_MIN <= len(each.content) <= SEGMENT_BYTES_MAX for each in pieces)
    assert len(tail) <= SEGMENT_BYTES_MAX


@pytest.mark.parametrize(
    "data",
    [os.urandom(300_000), _text(1, 300_000), os.urandom(150_000).hex().encode()],
    ids=["random", "text", "hexadecimal"],
)
def test_pieces_of_usual_data_lie_between_the_bounds(data: bytes) -> None:
    sizes = [len(piece) for piece in _pieces(data)]
    assert sum(size == SEGMENT_BYTES_MAX for size in sizes) <= len(sizes) / 4


def test_a_value_that_grew_keeps_its_pieces() -> None:
    before, after = _text(1, 200_000), _text(1, 200_000) + _text(2, 9_000)
    assert _pieces(after)[: len(_pieces(before))] == _pieces(before)


def _kept(before: bytes, after: bytes) -> tuple[int, int, int]:
    """How many pieces a value has before a change, and of those after it how many are old and new."""
    chunks = _chunks(before)
    pieces, tail = split(after, PREAMBLE_BYTES, chunks)
    assert after[:PREAMBLE_BYTES] + b"".join(each.content for each in pieces) + tail == after
    assert all(digest(each.content) == each.digest for each in pieces)
    old = {each.digest for each in chunks}
    return (
        len(chunks),
        sum(each.digest in old for each in pieces),
        sum(each.digest not in old for each in pieces),
    )


@pytest.mark.parametrize("trimmed", [1, 7_777, 100_000, 390_000])
def test_a_value_whose_front_was_trimmed_keeps_all_pieces_behind(trimmed: int) -> None:
    before = _text(1, 400_000)
    count, old, new = _kept(before, before[trimmed:])
    assert old >= count * (400_000 - trimmed) / 400_000 - 3
    assert new <= 2


@pytest.mark.parametrize("size", [0, 15, 5_000, 50_000])
def test_a_change_in_the_middle_changes_little_more_than_what_changed(size: int) -> None:
    before = _text(1, 400_000)
    count, old, new = _kept(before, before[:200_000] + _text(2, size) + before[200_010:])
    assert old >= count - 2
    assert new <= 2 + size / SEGMENT_BYTES_MIN


def test_many_changes_change_a_piece_or_two_each() -> None:
    after = bytearray(_text(1, 400_000))
    for position in range(30_000, 400_000, 60_000):
        after[position : position + 5] = b"other"
    count, old, new = _kept(_text(1, 400_000), bytes(after))
    assert old >= count - 14
    assert new <= 14


def test_repeated_changes_in_one_place_do_not_crumble_a_value() -> None:
    value = _text(1, 200_000)
    chunks = _chunks(value)
    for change in range(200):
        value = value[:100_000] + _text(change, 40 + change % 7) + value[100_040:]
        chunks = [Chunk.of(each, None) for each in split(value, PREAMBLE_BYTES, chunks)[0]]
    assert len(chunks) <= len(_chunks(value)) + 3


def test_another_value_has_nothing_of_the_parents() -> None:
    _, old, _ = _kept(_text(1, 300_000), _text(2, 300_000))
    assert old == 0


@given(st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 9_000), st.integers(0, 9_000)), max_size=4))
def test_what_is_kept_and_what_is_new_are_the_value(changes: list[tuple[int, int, int]]) -> None:
    before = after = _text(1, 60_000)
    for position, removed, added in changes:
        after = after[:position] + _text(added, added) + after[position + removed :]
    _kept(before, after)


def test_the_parents_pieces_come_first_even_where_content_would_not_cut() -> None:
    data = _text(1, 30_000)
    sealed_end = piece(data[PREAMBLE_BYTES:9_000])
    pieces, _ = split(data, PREAMBLE_BYTES, [Chunk.of(sealed_end, None)])
    assert pieces[0] == sealed_end


def test_a_run_of_one_byte_is_cut_at_the_upper_bound() -> None:
    assert {len(piece) for piece in _pieces(b"u" * 100_000)} == {SEGMENT_BYTES_MAX}


def test_cut_ends_ascend_and_stay_inside() -> None:
    data = _text(3, 50_000)
    ends = list(cut(data, 100, len(data)))
    assert ends == sorted(set(ends))
    assert ends[-1] <= len(data)


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


def test_ids_say_what_they_name() -> None:
    random = Random(1)
    assert all(is_index(new_id(random, index=True)) for _ in range(100))
    assert not any(is_index(new_id(random)) for _ in range(100))
    assert len({new_id(random) for _ in range(10_000)}) == 10_000
