"""Size limits: how deep and how large a document is, determined from its bytes, before it is decoded.

A byte of msgpack can become a list of 56 bytes in memory, so a small body can be a bomb without any compression.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

# A key of the body that an answer quotes is cut to this length: a client may choose one of 16 MiB.
NAME_CHARACTERS_MAX = 100

_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHER_MARKS = bytes(set(range(256)) - _STEPS.keys())


def check_json(body: bytes, limits: Limits) -> None:
    """Refuse JSON text that is too deep or has too many values. Whether it is JSON at all, its parser checks.

    Every pass over the body runs in C. Only what `values_max` bounds is walked one by one.

    Raises:
        ProblemError: The text is over a limit, or closes something that it never opened.
    """
    # A backslash escapes the next character. Without both, each quotation mark begins or ends a text.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    _check_values(unescaped.count(b'"') // 2, limits.values_max)
    outside = b"".join(unescaped.split(b'"')[::2])
    opened, closed = (sum(map(outside.count, marks)) for marks in ((b"[", b"{"), (b"]", b"}")))
    _check_values(1 + opened + outside.count(b",") + outside.count(b":"), limits.values_max)
    if closed > opened:
        raise ProblemError(400, "the body is not JSON: it closes more lists and mappings than it opens")
    brackets = outside.translate(None, _OTHER_MARKS)
    _check_depth(max(accumulate(map(_STEPS.__getitem__, brackets)), default=0), limits.nesting_max)


def check_msgpack(body: bytes, limits: Limits) -> None:
    """Refuse msgpack that is too deep or has too many values. Whether it is msgpack at all, its parser checks.

    Raises:
        ProblemError: The body is over a limit.
    """
    count_msgpack(body, limits.nesting_max, limits.values_max)


def count_msgpack(body: bytes, nesting_max: int, values_max: int) -> int:
    """Return how many values msgpack has. The inside of an extension is not counted.

    Raises:
        ProblemError: The body is too deep, has too many values, or is followed by more bytes.
    """
    # How many values are still to come in each of the open containers.
    open_: list[int] = []
    values, position = 0, 0
    while position < len(body):
        while open_ and not open_[-1]:
            open_.pop()
        if open_:
            open_[-1] -= 1
        elif values:
            # The parser would ignore it silently.
            raise ProblemError(400, "something follows the end of the body's document")
        values += 1
        kind = body[position]
        inner, size = _msgpack_extent(kind, body, position + 1)
        position += 1 + size
        if inner is not None:
            open_.append(inner)
        _check_depth(len(open_), nesting_max)
        _check_values(values, values_max)
    return values


def _msgpack_extent(kind: int, body: bytes, offset: int) -> tuple[int | None, int]:
    """Return how many values a container holds (None for a scalar), and how many bytes follow before the next value."""
    if kind < 0x80 or kind >= 0xE0:
        return None, 0
    if kind < 0x90:
        return 2 * (kind & 0x0F), 0
    if kind < 0xA0:
        return kind & 0x0F, 0
    if kind < 0xC0:
        return None, kind & 0x1F
    if kind in _COUNTED:
        count_bytes, each = _COUNTED[kind]
        return each * int.from_bytes(body[offset : offset + count_bytes], "big"), count_bytes
    if kind in _MEASURED:
        length_bytes, more = _MEASURED[kind]
        return None, length_bytes + more + int.from_bytes(body[offset : offset + length_bytes], "big")
    return None, _FIXED.get(kind, 0)


# From msgpack's specification. Arrays and maps: bytes of the count, and values for each.
_COUNTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
# Bytes and extensions from 0xC4, texts from 0xD9: bytes of the length, and extra bytes.
_MEASURED = dict(enumerate(((1, 0), (2, 0), (4, 0), (1, 1), (2, 1), (4, 1)), start=0xC4))
_MEASURED |= dict(enumerate(((1, 0), (2, 0), (4, 0)), start=0xD9))
# Numbers, and extensions of a fixed length: the kinds from 0xCA to 0xD8.
_FIXED = dict(enumerate((4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17), start=0xCA))


def check_items(document: Any, limits: Limits) -> None:
    """Refuse a document in which a list, or a mapping, has too many items.

    Raises:
        ProblemError: One has; the message names it.
    """
    for name, size in _sizes(document) if isinstance(document, (dict, list)) else ():
        if size > limits.items_max:
            says = f"has {size:,} items, and {limits.items_max:,} are allowed; send them in several requests"
            raise ProblemError(413, f"{name[:NAME_CHARACTERS_MAX]} {says}")


def _sizes(document: Any) -> Iterator[tuple[str, int]]:
    found = [("the body", document)]
    while found:
        name, value = found.pop()
        yield name, len(value)
        inner = value.items() if isinstance(value, dict) else ((name, each) for each in value)
        found.extend((key, each) for key, each in inner if each and isinstance(each, (dict, list)))


def _check_depth(depth: int, nesting_max: int) -> None:
    if depth > nesting_max:
        raise ProblemError(400, f"the body is nested deeper than {nesting_max} lists and mappings")


def _check_values(values: int, values_max: int) -> None:
    if values > values_max:
        raise ProblemError(413, f"the body has more than {values_max:,} values; send it in several requests")
