"""Deltas: whatever the two values are, the pieces make the new one of the old one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb.http.deltas import Piece, delta
from tests.support.checkpoints import noise


def applied(base: bytes, pieces: list[Piece]) -> bytes:
    """What the service makes of a delta."""
    return b"".join(base[offset : offset + length] + data for offset, length, data in pieces)


def new_bytes(pieces: list[Piece] | None) -> int:
    """How many bytes a delta sends."""
    assert pieces is not None
    return sum(len(data) for _, _, data in pieces)


BASE = noise(50_000)
EDITS = st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 3000), st.binary(max_size=300)), max_size=8)


@given(EDITS)
def test_an_edited_value_is_made_of_the_old_one(edits: list[tuple[int, int, bytes]]) -> None:
    data = BASE
    for start, removed, added in edits:
        data = data[:start] + added + data[start + removed :]
    pieces = delta(BASE, data)
    assert pieces is None or applied(BASE, pieces) == data


@given(st.integers(0, 5000), st.integers(1, 60), st.sampled_from([b"a", b"ab", b"\0" * 33, noise(40)]))
def test_values_that_repeat_themselves_are_made_of_each_other(shift: int, times: int, part: bytes) -> None:
    base, data = part * 4000, noise(shift) + part * (3000 + times)
    pieces = delta(base, data)
    assert pieces is None or applied(base, pieces) == data


@pytest.mark.parametrize(
    ("data", "bytes_max"),
    [
        (BASE, 0),
        (BASE + b"new", 3),
        (b"new" + BASE, 3),
        (BASE[:25_000] + b"new" + BASE[25_000:], 100),
        (BASE[7000:], 100),
        (BASE[:9000] + BASE[9700:], 100),
        (b"\xdc\x00\x11" + BASE[1:30_000] + noise(500, 1) + BASE[30_000:] + noise(700, 2), 1500),
    ],
    ids=["same", "appended", "in front", "between", "removed in front", "removed between", "several"],
)
def test_little_more_than_what_is_new_is_sent(data: bytes, bytes_max: int) -> None:
    pieces = delta(BASE, data)
    assert new_bytes(pieces) <= bytes_max
    assert applied(BASE, pieces or []) == data


@pytest.mark.parametrize("data", [noise(50_000, 9), b"", b"small", BASE[:1000]])
def test_what_has_little_in_common_is_sent_whole(data: bytes) -> None:
    assert delta(BASE, data) is None
    assert delta(data[:100], BASE) is None


def test_a_delta_has_a_bounded_number_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.http.deltas._PIECES_MAX", 3)
    edited = b"new".join(BASE[start : start + 9000] for start in range(0, len(BASE), 9000))
    pieces = delta(BASE, edited)
    assert pieces is not None
    assert len(pieces) <= 4
    assert applied(BASE, pieces) == edited


def test_a_base_is_not_searched_for_ever() -> None:
    assert delta(bytes(18 << 20), noise(4000, 9)) is None
