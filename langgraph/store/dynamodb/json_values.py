"""Values of memories as plain JSON data, and the filters of a search.

A filter never fails because of stored data: what cannot be compared does not match.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, CheckpointSerializationError

NESTING_MAX = 255
"""How many lists and dicts of a value may be within each other: as many as LangGraph's serializer writes."""
# A match needs up to three frames of Python's stack for each level, and a thousand is all that there are.
_FILTER_NESTING_MAX = 64


def plain(value: Any, name: str) -> Any:
    """Return a copy of a value as JSON has it: mappings as dicts, tuples as lists.

    Raises:
        CheckpointSerializationError: A part of it is not JSON data, when the message names the part, or it is nested
            too deeply.
    """
    try:
        return _copy(value, name, NESTING_MAX)
    except RecursionError:
        msg = f"{name} is nested deeper than {NESTING_MAX} lists and dicts; nothing of the call was stored"
        raise CheckpointSerializationError(msg) from None


def _copy(value: Any, path: str, levels: int) -> Any:
    """Copy a part of a value, which may have so many levels of lists and dicts."""
    if isinstance(value, str):
        # Also a member of an enumeration of texts, which is stored as the text.
        return _text(str.__str__(value), path)
    if value is None or type(value) in (int, float, bool):
        return value
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if not isinstance(value, (Mapping, list, tuple)):
        raise _no_json(path, value)
    if levels == 0:
        raise RecursionError
    if isinstance(value, Mapping):
        copied = {}
        for name, each in value.items():
            if not isinstance(name, str):
                raise _no_json(f"{path} has the key {name!r}, which", name)
            copied[_text(name, path)] = _copy(each, f"{path}.{name}", levels - 1)
        return copied
    return [_copy(each, f"{path}[{position}]", levels - 1) for position, each in enumerate(value)]


def _text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        msg = f"{path} has a lone surrogate, which is not valid Unicode; nothing of the call was stored"
        raise CheckpointSerializationError(msg) from None
    return text


def _no_json(path: str, value: Any) -> CheckpointSerializationError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return CheckpointSerializationError(
        f"{path} is a {kind}, which is not JSON data; nothing of the call was stored. Convert it first, for example"
        " with model_dump(mode='json') or isoformat()"
    )


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS = ("$eq", "$ne", *_ORDERS)


def checked_filter(wanted: Any) -> dict[str, Any] | None:
    """Return a filter as plain JSON data: a copy, since its caller may change it between two pages.

    Raises:
        CheckpointerInputError: It is no JSON data, has an unknown operator, or is nested too deeply. The error is a
            `ValueError`, as LangGraph's stores raise.
    """
    if wanted is None:
        return None
    if not isinstance(wanted, Mapping) or not all(isinstance(name, str) for name in wanted):
        msg = f"filter is a {type(wanted).__name__}; give a dict of keys and the values that they must have"
        raise CheckpointerInputError(msg)
    if _is_deeper(wanted, _FILTER_NESTING_MAX):
        msg = f"filter is nested deeper than {_FILTER_NESTING_MAX} lists and dicts; ask for less of the value"
        raise CheckpointerInputError(msg)
    try:
        copied: dict[str, Any] = plain(wanted, "filter")
    except CheckpointSerializationError as error:
        raise CheckpointerInputError(str(error)) from None
    for condition in copied.values():
        _check_condition(condition)
    return copied


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, (Mapping, list, tuple)):
        return False
    parts = value.values() if isinstance(value, Mapping) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in parts)


def _check_condition(condition: Any) -> None:
    if not isinstance(condition, Mapping):
        return
    if not _has_operators(condition):
        for each in condition.values():
            _check_condition(each)
        return
    for name in condition:
        if name not in _OPERATORS:
            msg = f"filter has no operator {name!r}; use one of {', '.join(_OPERATORS)}"
            raise CheckpointerInputError(msg)


def _has_operators(condition: Mapping[Any, Any]) -> bool:
    return any(isinstance(name, str) and name.startswith("$") for name in condition)


def matches(value: Any, wanted: Mapping[str, Any] | None) -> bool:
    """Tell whether a value has what a filter wants. A key that is missing counts as None."""
    return all(_holds(_at(value, name), condition) for name, condition in (wanted or {}).items())


def _at(value: Mapping[str, Any], name: str) -> Any:
    """Return what is under a key; under a path of dots, as SQLite's store has them, if there is no such key."""
    if name in value or "." not in name:
        return value.get(name)
    found: Any = value
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _holds(found: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping):
        return _equal(found, condition)
    if _has_operators(condition):
        return all(_compared(found, name, operand) for name, operand in condition.items())
    # A mapping without operators has to be part of the stored one.
    return isinstance(found, dict) and matches(found, condition)


def _compared(found: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return _equal(found, operand)
    if name == "$ne":
        return not _equal(found, operand)
    comparable = (_is_number(found) and _is_number(operand)) or (
        isinstance(found, str) and isinstance(operand, str)
    )
    return comparable and _ORDERS[name](found, operand)


def _equal(found: Any, wanted: Any) -> bool:
    """Compare as JSON does: True is not 1, 1 is 1.0, and a tuple is a list."""
    if isinstance(found, list) and isinstance(wanted, (list, tuple)):
        return len(found) == len(wanted) and all(map(_equal, found, wanted))
    if isinstance(found, dict) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_equal(found[name], wanted[name]) for name in found)
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
