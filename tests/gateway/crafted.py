"""Bodies made to cost as much as they can: 1 KB compressed, and as large, or as full of values, as is allowed."""

from __future__ import annotations

import json
from typing import Any

import ormsgpack

from langgraph.checkpoint.dynamodb.gateway import Limits
from langgraph.checkpoint.dynamodb.gateway.media import JSON, MSGPACK, Media

LIMITS = Limits()


def _filled(fragment: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """A body of the largest size, of one fragment over and over."""
    room = LIMITS.decompressed_bytes_max - len(before) - len(after)
    return before + fragment * (room // len(fragment)) + after


def _wrong(value: Any) -> dict[str, Any]:
    """A request with as many mistakes as it may have values."""
    return {"segments": [value] * 9_900, "reused": [value] * 9_900, "parts": {"writes": [value] * 9_900}}


_TEXT = (b'{"thread_id":"', b'"}')
_SEGMENTS = {
    "thread_id": "t",
    "thread": {"epoch": b"epoch"},
    "segments": [{"id": bytes(8), "data": bytes(128 << 10)}] * 127,
}

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
        "put-segments",
        JSON,
        _filled(
            b"A",
            b'{"thread_id":"t","thread":{"epoch":"AAAA"},"segments":[{"id":"AAAAAAAAAAA=","data":"',
            b'"}]}',
        ),
    ),
    "JSON: mistakes": ("put-writes", JSON, json.dumps(_wrong(0)).encode()),
    "msgpack: empty lists": ("get-tuple", MSGPACK, _filled(b"\x90", b"\xdd\xff\xff\xff\xff")),
    "msgpack: values": ("get-tuple", MSGPACK, ormsgpack.packb([[[]] * 9_999] * 9)),
    "msgpack: mistakes": ("put-writes", MSGPACK, ormsgpack.packb(_wrong({}))),
    "msgpack: a long text": (
        "get-tuple",
        MSGPACK,
        ormsgpack.packb({"thread_id": "a" * (16 << 20)})[: 16 << 20],
    ),
    "msgpack: segments": ("put-segments", MSGPACK, ormsgpack.packb(_SEGMENTS)),
}
"""By what they are full of: the endpoint, the encoding and the body before compression."""
