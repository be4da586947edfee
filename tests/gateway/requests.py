"""Requests that an endpoint takes, made from its model, so that a new endpoint is tested without a line about it."""

from __future__ import annotations

import base64
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import MinLen

from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY
from langgraph.checkpoint.dynamodb.gateway.wire import Message

# As many as a digest has.
_BYTES = 16
ODD: list[Any] = [None, True, 0, -1, 1.5, 8.0, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63), 1e308]
ODD += ["", "a", "#", "%", "/", "\x00", "é", "\U0010ffff", "x" * 3000, "AAAA", "A===", "AAAAAAAAAAA=", "1e9"]
ODD += ["msgpack", "keep_last", "delete", "ff" * 8, [], [[]], [["a", 1]], {}, {"": ""}, {"a": 1}, {"S": "a"}]
"""Values that are odd in most places of a request."""


def example(model: type[Message], text: str = "acme/1") -> dict[str, Any]:
    """A request in JSON with a value for every field, and the same one for every text."""
    return {
        name: _value(field.annotation, list(field.metadata), text)
        for name, field in model.model_fields.items()
        # Where a list of threads goes on, the service says.
        if name not in ("before", "plain")
    }


def _value(annotation: Any, metadata: list[Any], text: str) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(arguments[0], [*metadata, *arguments[1:]], text)
    if origin in (Union, types.UnionType):
        return _value(next(each for each in arguments if each is not type(None)), metadata, text)
    if origin is tuple:
        return [_value(each, [], text) for each in arguments]
    if origin is list:
        return [_value(arguments[0], [], text)]
    if origin is dict:
        return {"run_id": text if arguments[1] is Any else _value(arguments[1], [], text)}
    if origin is Literal:
        return arguments[0]
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return example(annotation, text)
    if annotation is Any:
        return text
    if annotation is bytes:
        lengths = (each.min_length for each in metadata if isinstance(each, MinLen))
        return base64.b64encode(bytes(next(lengths, _BYTES))).decode()
    return {str: text, int: 1, float: 1.0, bool: True}[annotation]


def paths_of_texts(request: Any) -> list[tuple[str | int, ...]]:
    """Where a request has texts."""
    return [path for path in places_of_values(request) if isinstance(found(request, path), str)]


def found(request: Any, path: tuple[str | int, ...]) -> Any:
    """What a request has in a place."""
    for part in path:
        request = request[part]
    return request


def replaced(request: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The request with another value in one place, which may be one that it does not have yet."""
    if not path:
        return value
    copy: Any = list(request) if isinstance(request, list) else dict(request)
    copy[path[0]] = value if len(path) == 1 else replaced(request[path[0]], path[1:], value)
    return copy


def places_of_values(request: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a request has values, those that have others in them included."""
    yield path
    if isinstance(request, dict):
        for name, value in request.items():
            yield from places_of_values(value, (*path, name))
    elif isinstance(request, list):
        for position, value in enumerate(request):
            yield from places_of_values(value, (*path, position))


def keys_in(value: Any) -> list[str]:
    """The partition keys of all items and keys in the parameters of a request to DynamoDB."""
    if isinstance(value, dict):
        own = [value[PARTITION_KEY]["S"]] if PARTITION_KEY in value else []
        return own + [each for name in value if name != PARTITION_KEY for each in keys_in(value[name])]
    return [each for inner in value for each in keys_in(inner)] if isinstance(value, list) else []
