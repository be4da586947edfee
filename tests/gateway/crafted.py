"""Bodies made to cost as much as they can: 1 KB compressed, and as large, or as full of values, as is allowed."""

from __future__ import annotations

import json
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


_TEXT = (b'{"thread_id":"', b'"}')
_CHECKPOINT = {"thread_id": "t", "checkpoint": {"id": "1"}, "metadata": {}, "new_versions": {}}
_VALUES = {
    **_CHECKPOINT,
    "values": {str(each): {"type": "bytes", "data": bytes(1 << 20)} for each in range(63)},
}
# Each delta describes as much as is allowed for all.
_DELTA = delta_of(bytes(5000), bytes(LIMITS.decompressed_bytes_max))
_DELTAS = {
    **_CHECKPOINT,
    "values": {str(each): {"type": "bytes", "base": bytes(16), "delta": _DELTA} for each in range(2000)},
}
# Inside a value there may be anything: nothing but metadata is read.
_BOMB = b"\xdd\x00\x0f\xff\xff" + bytes((1 << 20) - 1)
_METADATA = {**_CHECKPOINT, "values": {}, "typed_metadata": {"type": "msgpack", "data": _BOMB}}

CRAFTED: dict[str, tuple[str, Media, bytes]] = {
    "JSON: quotation marks": ("get-tuple", JSON, _filled(b'"')),
    "JSON: backslashes": ("get-tuple", JSON, _filled(b"\\")),
    "JSON: escaped quotation marks": ("get-tuple", JSON, _filled(b'\\"', *_TEXT)),
    "JSON: escaped characters": ("get-tuple", JSON, _filled(b"\\u0041", *_TEXT)),
    "JSON: brackets that open": ("get-tuple", JSON, _filled(b"[")),
    "JSON: brackets that close": ("get-tuple", JSON, _filled(b"]")),
    "JSON: empty lists": ("get-tuple", JSON, _filled(b"[],", b"[", b"0]")),
    "JSON: spaces": ("get-tuple", JSON, _filled(b" ", b'{"thread_id":"t"', b"}")),
    "JSON: digits": ("get-tuple", JSON, _filled(b"9", b"[", b"]")),
    "JSON: a long text": ("get-tuple", JSON, _filled(b"a", *_TEXT)),
    "JSON: a long key": ("get-tuple", JSON, _filled(b"a", b'{"', b'":1}')),
    "JSON: base64": (
        "put-writes",
        JSON,
        _filled(
            b"AAAA",
            b'{"thread_id":"t","checkpoint_id":"1","task_id":"t","writes":[["x",{"type":"bytes","data":"',
            b'"}]]}',
        ),
    ),
    "JSON: mistakes": ("put", JSON, json.dumps(_wrong(0)).encode()),
    "msgpack: empty lists": ("get-tuple", MSGPACK, _filled(b"\x90", b"\xdd\xff\xff\xff\xff")),
    "msgpack: values": ("get-tuple", MSGPACK, ormsgpack.packb([[]] * (VALUES_MAX - 10))),
    "msgpack: mistakes": ("put", MSGPACK, ormsgpack.packb(_wrong({}))),
    "msgpack: a long text": (
        "get-tuple",
        MSGPACK,
        ormsgpack.packb({"thread_id": "a" * (LIMITS.decompressed_bytes_max - 100)}),
    ),
    "msgpack: values of channels": ("put", MSGPACK, ormsgpack.packb(_VALUES)),
    "msgpack: deltas": ("put", MSGPACK, ormsgpack.packb(_DELTAS)),
    "msgpack: typed metadata": ("put", MSGPACK, ormsgpack.packb(_METADATA)),
}
"""By what they are full of: the endpoint, the encoding and the body before compression."""
