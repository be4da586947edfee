"""Attribute values as DynamoDB sees them: what is valid, how large it is, how it sorts.

Values keep boto3's low-level form (`{"S": "text"}`). A value that has passed through `canonical` is equal to another
exactly when DynamoDB calls the two equal, so the rest of the model compares values with `==`.
"""

import marshal
import re
from decimal import Context, Decimal
from typing import Any, TypeAlias

AttributeValue: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, AttributeValue]
# What stands behind a type letter: a str, bytes, bool, list or dict, by the letter.
Content: TypeAlias = Any

NUMBER_DIGITS_MAX = 38
NUMBER_EXPONENT_MAX = 125
NUMBER_EXPONENT_MIN = -130

SET_KINDS = {"SS": "S", "NS": "N", "BS": "B"}
# The package stores none of these: they are neither looked into nor measured.
_OPAQUE_KINDS = frozenset({"L", "M", "NULL"})
SORTABLE_KINDS = frozenset({"S", "N", "B"})

# The format of `marshal` that keeps nothing of which object is there twice: equal values are mostly equal bytes.
MARSHAL_WITHOUT_REFERENCES = 2

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_EXACT = Context(prec=400)


class Refusal(Exception):
    """A request that DynamoDB answers with an error; the model turns it into a `ClientError`."""

    def __init__(self, message: str, code: str = "ValidationException", item: Item | None = None) -> None:
        """Keep the error's message and code, and the item that a failed condition may return."""
        super().__init__(message)
        self.message = message
        self.code = code
        self.item = item


def kind_of(value: AttributeValue) -> str:
    """Return the type letter of a value."""
    return next(iter(value))


def canonical(value: AttributeValue) -> AttributeValue:
    """Validate a value and return a copy of it in the form in which DynamoDB returns it."""
    if len(value) != 1:
        raise Refusal("Supplied AttributeValue must contain exactly one of the supported datatypes")
    kind, content = next(iter(value.items()))
    # The kind that comes most first.
    if kind == "S":
        return {"S": content}
    if kind in SET_KINDS:
        return {kind: _canonical_set(SET_KINDS[kind], content)}
    return {kind: _canonical_scalar(kind, content)}


def _canonical_scalar(kind: str, content: Content) -> Content:
    if kind == "N":
        return number_text(parse_number(content))
    if kind == "B":
        return bytes(content)
    if kind in _OPAQUE_KINDS:
        return copied(content)
    if kind not in {"S", "BOOL"}:
        raise Refusal(f"{kind} is not a supported datatype")
    return content


def _canonical_set(kind: str, elements: list[Content]) -> list[Content]:
    if not elements:
        raise Refusal("One or more parameter values were invalid: A set may not be empty")
    members = [_canonical_scalar(kind, element) for element in elements]
    if len(set(members)) != len(members):
        raise Refusal("Input collection contains duplicates")
    return sorted(members, key=lambda member: sort_key({kind: member}))


def parse_number(text: str) -> Decimal:
    """Read a number within DynamoDB's 38 digits and its range of magnitudes."""
    if not _NUMBER.fullmatch(text):
        raise Refusal("A value provided cannot be converted into a number")
    number = _EXACT.normalize(Decimal(text))
    if len(number.as_tuple().digits) > NUMBER_DIGITS_MAX:
        raise Refusal("DynamoDB only supports precision up to 38 digits")
    if number and not NUMBER_EXPONENT_MIN <= number.adjusted() <= NUMBER_EXPONENT_MAX:
        raise Refusal("Attempting to store a number with magnitude out of the supported range")
    return number


def number_text(number: Decimal) -> str:
    """Write a number as DynamoDB returns it: no exponent, no trailing zeros, no negative zero."""
    return format(_EXACT.normalize(number), "f") if number else "0"


def sort_key(value: AttributeValue) -> Content:
    """Return what a sortable value compares by: strings by their UTF-8 bytes, as DynamoDB documents."""
    kind, content = next(iter(value.items()))
    if kind == "S":
        return content.encode()
    return Decimal(content) if kind == "N" else content


def item_bytes(item: Item) -> int:
    """Return the size of an item: its attribute names and its values."""
    total = 0
    for name, value in item.items():
        total += _text_bytes(name)
        # The kinds that come most first, and without a further call.
        if "B" in value:
            total += len(value["B"])
        else:
            total += _text_bytes(value["S"]) if "S" in value else value_bytes(value)
    return total


def copied(content: Content) -> Content:
    """Return a copy of values, items and lists of them: by way of bytes, which is faster than to walk through them."""
    return marshal.loads(marshal.dumps(content, MARSHAL_WITHOUT_REFERENCES))  # noqa: S302 - written just now.


def value_bytes(value: AttributeValue) -> int:
    """Return the size of a canonical value as AWS documents it."""
    kind, content = next(iter(value.items()))
    if kind in SET_KINDS:
        return sum(_scalar_bytes(SET_KINDS[kind], element) for element in content)
    return _scalar_bytes(kind, content)


def _scalar_bytes(kind: str, content: Content) -> int:
    if kind == "S":
        return _text_bytes(content)
    if kind == "B":
        return len(content)
    return _number_bytes(content) if kind == "N" else 1


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _number_bytes(text: str) -> int:
    """Return one byte, one more for every two significant digits, and one for a sign."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    return 1 + (len(digits) + 1) // 2 + text.startswith("-")
