"""Which part of a value a serializer cannot write: a path to it, for the error.

It asks the serializer about parts, and then about parts of the part that failed. So it works for every serializer, and
takes time only when a call fails anyway.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# A value that contains itself has no last part.
_DEPTH_MAX = 50
# Keys may be of any size.
_PATH_CHARACTERS_MAX = 300


def unserializable_part(value: Any, name: str, dumps: Callable[[Any], object]) -> tuple[str, Any]:
    """Return the path of the innermost part that cannot be serialized, and the part.

    Args:
        value: The value, which `dumps` has refused.
        name: The name of the value, with which the path begins.
        dumps: Serializes a value, or raises.
    """
    path = name
    for _ in range(_DEPTH_MAX):
        found = next((each for each in _parts(value) if _fails(dumps, each[1])), None)
        if found is None:
            break
        step, value = found
        path += step
    return path if len(path) <= _PATH_CHARACTERS_MAX else f"{path[:_PATH_CHARACTERS_MAX]}...", value


def _fails(dumps: Callable[[Any], object], value: Any) -> bool:
    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - it is what is looked for, of any kind.
        return True
    return False


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the parts of a value, each with its step in a path; none if it cannot be taken apart."""
    try:
        if isinstance(value, Mapping):
            return iter([(f"[{key!r}]", each) for key, each in value.items()])
        if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
            return iter([(f"[{position}]", each) for position, each in enumerate(value)])
        if isinstance(value, (set, frozenset)):
            # An element of a set has no place.
            return iter([("{...}", each) for each in value])
        return iter([(f".{name}", each) for name, each in _fields(value).items()])
    except Exception:  # noqa: BLE001 - the value's own code; the error is told without a longer path.
        return iter(())


def _fields(value: Any) -> Mapping[str, Any]:
    """Return the fields of an object as LangGraph's serializer stores them."""
    if isinstance(value, type):
        return {}
    # Pydantic's second and first version, and named tuples.
    for method in ("model_dump", "dict", "_asdict"):
        if callable(getattr(value, method, None)):
            fields = getattr(value, method)()
            return fields if isinstance(fields, Mapping) else {}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {}
