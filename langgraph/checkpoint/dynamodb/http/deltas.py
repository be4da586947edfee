"""Deltas: a value described by pieces of an earlier value to copy, and new bytes. Pure functions of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

Piece: TypeAlias = tuple[int, int, bytes]
"""From which offset how many bytes of the base are copied, and the bytes that follow them."""

# A smaller value is sent whole.
_VALUE_BYTES_MIN = 2048
# Equal bytes are found by so many of the base's, and copied only if there are this many.
_ANCHOR_BYTES = 32
# How far apart the anchors are that are tried after a difference; each is twice as far as the one before.
_STEPS = (0, *(1 << power for power in range(5, 25)))
_PIECES_MAX = 1000
# How far behind its place in the base an anchor is searched for. Behind a longer insertion, nothing is found.
_SEARCHED_BYTES = 256 << 10


def delta(base: bytes, data: bytes) -> list[Piece] | None:
    """Return the pieces that make data of a base; `None` if it is not worth while."""
    if len(data) < _VALUE_BYTES_MIN or len(base) < _VALUE_BYTES_MIN:
        return None
    pieces, new_bytes, end = list[Piece](), 0, 0
    offset, length = 0, 0
    for start, found_offset, found_length in _equal(base, data):
        between = data[end:start]
        pieces.append((offset, length, between))
        new_bytes += len(between)
        offset, length, end = found_offset, found_length, start + found_length
    pieces.append((offset, length, data[end:]))
    new_bytes += len(data) - end
    if 2 * new_bytes > len(data):
        return None
    # The first one copies nothing, and usually adds nothing.
    return pieces if pieces[0][2] else pieces[1:]


def _equal(base: bytes, data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield stretches of data that the base has: where they begin, where in the base, and how long they are."""
    start, offset = 0, 0
    for _ in range(_PIECES_MAX):
        found = _next(base, data, start, offset)
        if found is None:
            return
        yield found
        start, offset = found[0] + found[2], found[1] + found[2]


def _next(base: bytes, data: bytes, start: int, offset: int) -> tuple[int, int, int] | None:
    """Find the next stretch, from `start` on in the data and from `offset` on in the base."""
    for step in _STEPS:
        anchor = base[offset + step : offset + step + _ANCHOR_BYTES]
        if len(anchor) < _ANCHOR_BYTES:
            return None
        found = data.find(anchor, start, start + step + _SEARCHED_BYTES)
        if found >= 0:
            return _widened(base, data, (found, offset + step), min(step, found - start))
    return None


def _widened(base: bytes, data: bytes, found: tuple[int, int], back_max: int) -> tuple[int, int, int]:
    """Return the whole stretch around a place that was found in the data and in the base."""
    in_data, in_base = found

    def same_before(at: int, end: int) -> bool:
        return data[in_data - end : in_data - at] == base[in_base - end : in_base - at]

    def same_behind(at: int, end: int) -> bool:
        return data[in_data + at : in_data + end] == base[in_base + at : in_base + end]

    back = _count(back_max, same_before)
    length = _count(min(len(data) - in_data, len(base) - in_base), same_behind)
    return in_data - back, in_base - back, back + length


def _count(limit: int, is_equal: Callable[[int, int], bool]) -> int:
    """Return how many bytes are equal, given what compares those between two distances."""
    length, step = 0, _ANCHOR_BYTES
    while length < limit:
        step = min(step, limit - length)
        if is_equal(length, length + step):
            length, step = length + step, 2 * step
        elif step == 1:
            break
        else:
            step = max(1, step // 4)
    return length
