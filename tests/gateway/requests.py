"""Requests that an endpoint takes, made from its description, so that a new one is tested without a line about it."""

import base64
import re
from collections.abc import Iterator
from typing import Any

from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint

# As many as a digest has.
_BYTES = 16
ODD: list[Any] = [None, True, 0, -1, 1.5, 8.0, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63), 1e308]
ODD += ["", "a", "#", "%", "/", "\x00", "é", "\U0010ffff", "x" * 3000, "AAAA", "A===", "AAAAAAAAAAA=", "1e9"]
ODD += ["msgpack", "keep_last", "delete", "ff" * 8, [], [[]], [["a", 1]], {}, {"": ""}, {"a": 1}, {"S": "a"}]
"""Values that are odd in most places of a request."""
NOTHING = object()
"""Takes a value out of a request."""


def example(endpoint: Endpoint[Any], text: str = "acme/1") -> dict[str, Any]:
    """A request in JSON with a value for every field, and the same one for every text."""
    schema = endpoint.arguments.model_json_schema()
    # Where a list of threads goes on, the service says.
    request: dict[str, Any] = _example(schema, schema.get("$defs", {}), text)
    request.pop("before", None)
    return request


def _example(schema: Any, definitions: Any, text: str) -> Any:
    if "$ref" in schema:
        return _example(definitions[schema["$ref"].rpartition("/")[2]], definitions, text)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            inner = next(each for each in schema[several] if each.get("type") != "null")
            return _example(
                {**inner, **{name: schema[name] for name in schema if name != several}}, definitions, text
            )
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if schema.get("contentEncoding") == "base64":
        digits = re.search(r"^\^\[[^]]*\]\{(\d+)\}", schema["pattern"])
        return base64.b64encode(bytes(_BYTES if digits is None else (int(digits[1]) + 1) * 6 // 8)).decode()
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        return {name: _example(each, definitions, text) for name, each in schema["properties"].items()}
    if kind == "object":
        inner = schema.get("additionalProperties")
        return {"run_id": _example(inner, definitions, text) if isinstance(inner, dict) else text}
    if kind == "array":
        inners = schema.get("prefixItems") or [schema["items"]]
        return [_example(each, definitions, text) for each in inners]
    if kind == "string":
        return "ff" * 8 if "pattern" in schema else text
    return {"integer": 1, "number": 1.0, "boolean": True}.get(str(kind), text)


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
    if len(path) == 1 and value is NOTHING:
        del copy[path[0]]
    else:
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
