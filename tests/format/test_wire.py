"""Deltas: whatever the two values are, the delta makes the new one of the old one, and has little but what is new."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph.checkpoint.dynamodb._format.wire import delta_of, described_bytes, digest_of, value_of
from tests.support.checkpoints import noise

BASE = noise(50_000)
LARGE = noise(12 << 20)
EDITS = st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 3000), st.binary(max_size=300)), max_size=8)


@given(EDITS)
def test_an_edited_value_is_made_of_the_old_one(edits: list[tuple[int, int, bytes]]) -> None:
    data = BASE
    for start, removed, added in edits:
        data = data[:start] + added + data[start + removed :]
    delta = delta_of(BASE, data)
    assert delta is not None
    assert len(delta) < 400 * (1 + len(edits))
    assert (value_of(BASE, delta), described_bytes(delta)) == (data, len(data))


@pytest.mark.parametrize(
    "data",
    [LARGE + b"new", LARGE[7_000_000:], LARGE[:5000] + b"new" + LARGE[5000:], LARGE[:9000] + LARGE[90_000:]],
    ids=["appended", "removed in front", "between", "removed between"],
)
def test_little_more_than_what_is_new_of_a_large_value_is_sent(data: bytes) -> None:
    delta = delta_of(LARGE, data)
    assert delta is not None
    assert len(delta) < len(data) // 200
    assert value_of(LARGE, delta) == data


@pytest.mark.parametrize("data", [noise(50_000, 9), b"", b"small", BASE[:1000]])
def test_what_has_little_in_common_is_sent_whole(data: bytes) -> None:
    assert delta_of(BASE, data) is None
    assert delta_of(data[:100], BASE) is None


def test_a_delta_that_is_not_one_to_its_base_is_refused() -> None:
    delta = delta_of(BASE, BASE + b"more")
    assert delta is not None
    for base, wrong in ((BASE[1:], delta), (BASE, delta[:-1]), (BASE, delta[:-1] + b"x")):
        with pytest.raises(ValueError, match=r"^[A-Zt]"):
            value_of(base, wrong)
    with pytest.raises(ValueError, match=r"^the frame of zstd does not end with the delta"):
        value_of(BASE, delta + b"x")
    with pytest.raises(ValueError, match=r"^the frame of zstd does not say the size"):
        # A frame of one byte without its size, as RFC 8878 has it.
        described_bytes(bytes.fromhex("28b52ffd0000090000") + b"x")
    with pytest.raises(ValueError, match=r"^[A-Zt]"):
        described_bytes(b"x")


@pytest.mark.parametrize(("size", "is_sent"), [(2047, False), (2048, True)])
def test_a_small_value_is_sent_whole(size: int, *, is_sent: bool) -> None:
    assert (delta_of(BASE[:2048], BASE[:size]) is not None) == is_sent
    assert (delta_of(BASE[:size], BASE[:2048]) is not None) == is_sent
    assert digest_of(BASE) == sha256(BASE).digest()[:16]
