"""Size limits: how deep and how large a document is, determined from its bytes, before it is decoded.

A byte of msgpack can become a list of 56 bytes in memory, so a small body can be a bomb without any compression.
"""

from __future__ import annotations

from itertools import accumulate

from .problems import ProblemError

NESTING_MAX = 32
"""How deeply lists and mappings may be nested."""
VALUES_MAX = 100_000
"""How many values, lists, mappings and their keys a document may have in all."""
MARKS_MAX = 1_000_000
"""How many brackets, commas, colons, quotation marks and escapes a text may have: to decode them holds the
interpreter's lock."""

# Objects in objects are copied with what is around them.
_COPIES_MAX = 4
_COPIED_BYTES_MIN = 64 << 10

_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# Between two strides, the interpreter's lock may go to another OS thread.
_STRIDE = 1 << 20
_MARKS = b'[]{},:"\\'
_OTHERS = bytes(set(range(256)) - set(_MARKS))


def check_json(body: bytes, nesting_max: int = NESTING_MAX, values_max: int = VALUES_MAX) -> int:
    """Return how many values JSON text has, if it is neither too deep nor too large. Its parser checks the rest.

    Every pass over the body runs in C, and copies only its marks. Only what `VALUES_MAX` bounds is walked one by one.

    Raises:
        ProblemError: The text is over a limit, or closes something that it never opened.
    """
    _check_marks(body)
    # A backslash escapes the next character. Without both, each quotation mark begins or ends a text.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    unescaped = b"".join(
        unescaped[start : start + _STRIDE].translate(None, _OTHERS)
        for start in range(0, len(unescaped), _STRIDE)
    )
    _check_values(unescaped.count(b'"') // 2, values_max)
    outside = b"".join(unescaped.split(b'"')[::2])
    opened, closed = (sum(map(outside.count, marks)) for marks in ((b"[", b"{"), (b"]", b"}")))
    values = 1 + opened + outside.count(b",") + outside.count(b":")
    _check_values(values, values_max)
    if closed > opened:
        raise ProblemError(400, "the body is not JSON: it closes more lists and mappings than it opens")
    depths = (_STEPS.get(each, 0) for each in outside)
    _check_depth(max(accumulate(depths), default=0), nesting_max)
    return values


def _check_marks(body: bytes) -> None:
    marks = 0
    for start in range(0, len(body), _STRIDE):
        marks += sum(body.count(each, start, start + _STRIDE) for each in _MARKS)
        if marks > MARKS_MAX:
            says = f"the body has more than {MARKS_MAX:,} marks and escapes; send it in several requests"
            raise ProblemError(413, says)


def count_msgpack(body: bytes, values_max: int = VALUES_MAX) -> int:
    """Return how many values msgpack has. Whether it is msgpack at all, its parser checks.

    Raises:
        ProblemError: The body is too deep, has too many values, or is followed by more bytes.
    """
    counter = _Counter(values_max, max(_COPIES_MAX * len(body), _COPIED_BYTES_MIN))
    counter.count(body, 0)
    return counter.values


class _Counter:
    """Counts the values of msgpack, and the bytes that a parser copies for them."""

    def __init__(self, values_max: int, copied_max: int) -> None:
        self.values = 0
        self._values_max = values_max
        self._copied_left = copied_max

    def count(self, body: bytes, depth: int) -> None:
        # How many values are still to come in each of the open containers.
        open_: list[int] = []
        position = 0
        while position < len(body):
            while open_ and not open_[-1]:
                open_.pop()
            if open_:
                open_[-1] -= 1
            elif position:
                # The parser would ignore it silently.
                raise ProblemError(400, "something follows the end of the body's document")
            self.values += 1
            kind = body[position]
            inner, size = _msgpack_extent(kind, body, position + 1)
            _check_values(self.values, self._values_max)
            if kind in _EXTENSION_HEADERS:
                self._count_extension(
                    body[position + _EXTENSION_HEADERS[kind] : position + 1 + size], depth + len(open_) + 1
                )
            position += 1 + size
            if inner is not None:
                open_.append(inner)
            _check_depth(depth + len(open_), NESTING_MAX)

    def _count_extension(self, content: bytes, depth: int) -> None:
        """Count what is in an extension: LangGraph's serializer writes each object as msgpack in one."""
        _check_depth(depth, NESTING_MAX)
        self._copied_left -= len(content)
        if self._copied_left < 0:
            raise ProblemError(413, "the body has too many objects in each other")
        self.count(content, depth)


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
# How many bytes precede the content of an extension.
_EXTENSION_HEADERS = {0xC7: 3, 0xC8: 4, 0xC9: 6, **dict.fromkeys(range(0xD4, 0xD9), 2)}


def _check_depth(depth: int, nesting_max: int) -> None:
    if depth > nesting_max:
        raise ProblemError(400, f"the body is nested deeper than {nesting_max} lists and mappings")


def _check_values(values: int, values_max: int) -> None:
    if values > values_max:
        raise ProblemError(413, f"the body has more than {values_max:,} values; send it in several requests")
