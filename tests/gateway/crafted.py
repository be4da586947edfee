"""Bodies made to cost as much as they can: 1 KB compressed, and as large, or as full of values, as is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic_core import to_json

from langgraph.checkpoint.dynamodb._format.wire import delta_of
from langgraph.checkpoint.dynamodb.gateway import Limits
from langgraph.checkpoint.dynamodb.gateway.call import VALUES_MAX

LIMITS = Limits()


def _filled(fragment: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """A body of the largest size, of one fragment over and over."""
    room = LIMITS.decompressed_bytes_max - len(before) - len(after)
    return before + fragment * (room // len(fragment)) + after


def _wrong(value: Any) -> dict[str, Any]:
    """A request with as many mistakes as it may have values."""
    count = VALUES_MAX // 3 - 10
    return {"kept": [value] * count, "values": {"x": [value] * count}, "new_versions": [value] * count}


def _large_values() -> dict[str, Any]:
    """A checkpoint as large as is allowed."""
    return _checkpoint_of({str(each): {"type": "bytes", "data": bytes(1 << 20)} for each in range(47)})


def _deltas() -> dict[str, Any]:
    """A checkpoint of deltas, each of which describes as much as is allowed for all."""
    delta = delta_of(bytes(5000), bytes(LIMITS.decompressed_bytes_max))
    value = {"type": "bytes", "base": bytes(16), "data": delta}
    return _checkpoint_of({str(each): value for each in range(2000)})


def _bomb() -> dict[str, Any]:
    """A checkpoint whose metadata is lists in lists: nothing but metadata is read, inside a value may be anything."""
    bomb = b"\xdd\x00\x0f\xff\xff" + bytes((1 << 20) - 1)
    return {**_checkpoint_of({}), "typed_metadata": {"type": "msgpack", "data": bomb}}


def _checkpoint_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"thread_id": "t", "checkpoint": {"id": "1"}, "metadata": {}, "new_versions": {}, "values": values}


def _encoded(document: Any) -> bytes:
    return to_json(document, bytes_mode="base64")


_TEXT = (b'{"thread_id":"', b'"}')

CRAFTED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "quotation marks": ("get-tuple", partial(_filled, b'"')),
    "backslashes": ("get-tuple", partial(_filled, b"\\")),
    "escaped quotation marks": ("get-tuple", partial(_filled, b'\\"', *_TEXT)),
    "escaped characters": ("get-tuple", partial(_filled, b"\\u0041", *_TEXT)),
    "brackets that open": ("get-tuple", partial(_filled, b"[")),
    "brackets that close": ("get-tuple", partial(_filled, b"]")),
    "empty lists": ("get-tuple", partial(_filled, b"[],", b"[", b"0]")),
    "spaces": ("get-tuple", partial(_filled, b" ", b'{"thread_id":"t"', b"}")),
    "digits": ("get-tuple", partial(_filled, b"9", b"[", b"]")),
    "a long text": ("get-tuple", partial(_filled, b"a", *_TEXT)),
    "a long key": ("get-tuple", partial(_filled, b"a", b'{"', b'":1}')),
    "base64": (
        "put-writes",
        partial(
            _filled,
            b"AAAA",
            b'{"thread_id":"t","checkpoint_id":"1","task_id":"t","writes":[["x",{"type":"bytes","data":"',
            b'"}]]}',
        ),
    ),
    "mistakes": ("put", lambda: json.dumps(_wrong(0)).encode()),
    "mistakes of objects": ("put", lambda: json.dumps(_wrong({})).encode()),
    "values of channels": ("put", lambda: _encoded(_large_values())),
    "deltas": ("put", lambda: _encoded(_deltas())),
    "typed metadata": ("put", lambda: _encoded(_bomb())),
}
"""By what they are full of: the endpoint, and what makes the body, which is many megabytes."""
