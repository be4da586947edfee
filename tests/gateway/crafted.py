"""Bodies made to cost as much as they can: 1 KB compressed, and as large, or as full of values, as is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import ormsgpack

from langgraph.checkpoint.dynamodb._format.wire import delta_of
from langgraph.checkpoint.dynamodb.gateway import Limits
from langgraph.checkpoint.dynamodb.gateway.media import JSON, MSGPACK, Media
from langgraph.checkpoint.dynamodb.gateway.size_limits import VALUES_MAX

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
    return _checkpoint_of({str(each): {"type": "bytes", "data": bytes(1 << 20)} for each in range(63)})


def _deltas() -> dict[str, Any]:
    """A checkpoint of deltas, each of which describes as much as is allowed for all."""
    delta = delta_of(bytes(5000), bytes(LIMITS.decompressed_bytes_max))
    value = {"type": "bytes", "base": bytes(16), "delta": delta}
    return _checkpoint_of({str(each): value for each in range(2000)})


def _bomb() -> dict[str, Any]:
    """A checkpoint whose metadata is lists in lists: nothing but metadata is read, inside a value may be anything."""
    bomb = b"\xdd\x00\x0f\xff\xff" + bytes((1 << 20) - 1)
    return {**_checkpoint_of({}), "typed_metadata": {"type": "msgpack", "data": bomb}}


def _checkpoint_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"thread_id": "t", "checkpoint": {"id": "1"}, "metadata": {}, "new_versions": {}, "values": values}


def _long_text() -> dict[str, Any]:
    return {"thread_id": "a" * (LIMITS.decompressed_bytes_max - 100)}


_TEXT = (b'{"thread_id":"', b'"}')

CRAFTED: dict[str, tuple[str, Media, Callable[[], bytes]]] = {
    "JSON: quotation marks": ("get-tuple", JSON, partial(_filled, b'"')),
    "JSON: backslashes": ("get-tuple", JSON, partial(_filled, b"\\")),
    "JSON: escaped quotation marks": ("get-tuple", JSON, partial(_filled, b'\\"', *_TEXT)),
    "JSON: escaped characters": ("get-tuple", JSON, partial(_filled, b"\\u0041", *_TEXT)),
    "JSON: brackets that open": ("get-tuple", JSON, partial(_filled, b"[")),
    "JSON: brackets that close": ("get-tuple", JSON, partial(_filled, b"]")),
    "JSON: empty lists": ("get-tuple", JSON, partial(_filled, b"[],", b"[", b"0]")),
    "JSON: spaces": ("get-tuple", JSON, partial(_filled, b" ", b'{"thread_id":"t"', b"}")),
    "JSON: digits": ("get-tuple", JSON, partial(_filled, b"9", b"[", b"]")),
    "JSON: a long text": ("get-tuple", JSON, partial(_filled, b"a", *_TEXT)),
    "JSON: a long key": ("get-tuple", JSON, partial(_filled, b"a", b'{"', b'":1}')),
    "JSON: base64": (
        "put-writes",
        JSON,
        partial(
            _filled,
            b"AAAA",
            b'{"thread_id":"t","checkpoint_id":"1","task_id":"t","writes":[["x",{"type":"bytes","data":"',
            b'"}]]}',
        ),
    ),
    "JSON: mistakes": ("put", JSON, lambda: json.dumps(_wrong(0)).encode()),
    "msgpack: empty lists": ("get-tuple", MSGPACK, partial(_filled, b"\x90", b"\xdd\xff\xff\xff\xff")),
    "msgpack: values": ("get-tuple", MSGPACK, lambda: ormsgpack.packb([[]] * (VALUES_MAX - 10))),
    "msgpack: mistakes": ("put", MSGPACK, lambda: ormsgpack.packb(_wrong({}))),
    "msgpack: a long text": (
        "get-tuple",
        MSGPACK,
        lambda: ormsgpack.packb(_long_text()),
    ),
    "msgpack: values of channels": ("put", MSGPACK, lambda: ormsgpack.packb(_large_values())),
    "msgpack: deltas": ("put", MSGPACK, lambda: ormsgpack.packb(_deltas())),
    "msgpack: typed metadata": ("put", MSGPACK, lambda: ormsgpack.packb(_bomb())),
}
"""By what they are full of: the endpoint, the encoding, and what makes the body, which is many megabytes."""
