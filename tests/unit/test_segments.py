"""Cutting values and naming segments."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._items import unpack_ids
from langgraph.checkpoint.dynamodb._limits import (
    HEAD_IDS_MAX,
    INDEX_GROUP,
    PREAMBLE_BYTES,
    SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN,
)
from langgraph.checkpoint.dynamodb._segments import Chunk, cut, digest, expand, fold, is_index, new_id, split


def _unknown(_: bytes) -> bool:
    return False


def _pieces(data: bytes) -> list[bytes]:
    return split(data, [], _unknown)[1]


def _text(seed: int, size: int) -> bytes:
    random = Random(seed)
    words = ["".join(random.choices("etaoinshrdlucm", k=random.randint(2, 9))) for _ in range(500)]
    return " ".join(random.choices(words, k=size // 5)).encode()[:size]


@given(st.binary(max_size=100), st.integers(0, 60_000))
def test_a_split_value_is_the_value(unit: bytes, size: int) -> None:
    data = (unit * (size // max(1, len(unit)) + 1))[:size]
    preamble, pieces, tail = split(data, [], _unknown)
    assert preamble + b"".join(pieces) + tail == data
    assert len(preamble) <= PREAMBLE_BYTES
    assert all(SEGMENT_BYTES_MIN <= len(piece) <= SEGMENT_BYTES_MAX for piece in pieces)
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


def test_a_value_whose_front_was_trimmed_keeps_most_pieces() -> None:
    before = _text(1, 400_000)
    kept = set(_pieces(before)) & set(_pieces(before[7_777:]))
    assert len(kept) >= len(_pieces(before)) * 0.8


def test_a_change_in_the_middle_changes_few_pieces() -> None:
    before = _text(1, 400_000)
    after = before[:200_000] + b"another element" + before[200_000:]
    assert len(set(_pieces(after)) - set(_pieces(before))) <= 3


def test_the_parents_pieces_come_first_even_where_content_would_not_cut() -> None:
    data = _text(1, 30_000)
    sealed_end = data[PREAMBLE_BYTES:9_000]
    before = [Chunk(digest(sealed_end), len(sealed_end), None)]
    _, pieces, _ = split(data, before, {before[0].digest}.__contains__)
    assert pieces[0] == sealed_end


def test_a_run_of_one_byte_is_cut_at_the_upper_bound() -> None:
    assert {len(piece) for piece in _pieces(b"u" * 100_000)} == {SEGMENT_BYTES_MAX}


def test_cut_ends_ascend_and_stay_inside() -> None:
    data = _text(3, 50_000)
    ends = list(cut(data, 100))
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
    assert all(len(unpack_ids(content)) == INDEX_GROUP for content in contents.values())


def test_ids_say_what_they_name() -> None:
    random = Random(1)
    assert all(is_index(new_id(random, index=True)) for _ in range(100))
    assert not any(is_index(new_id(random)) for _ in range(100))
    assert len({new_id(random) for _ in range(10_000)}) == 10_000
