"""Requests that nobody would send: good ones with values, bytes, encodings and headers exchanged, by a seed."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import sys
import uuid
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import ormsgpack
from pydantic import ValidationError

from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS, Endpoint
from langgraph.checkpoint.dynamodb.gateway.media import JSON, MSGPACK, Media
from tests.gateway.requests import example, places_of_values, replaced

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    2**64 - 1,
    -(2**63),
    1.5,
    float("inf"),
    float("nan"),
    1e308,
]
_ODD += [
    "",
    "a",
    "#",
    "%",
    "/",
    "\x00",
    "é",
    "\U0010ffff",
    "x" * 3000,
    "AAAAAAAAAAA=",
    "1e9",
    "msgpack",
    "keep_last",
    "delete",
]
_ODD += [
    "ff" * 8,
    b"",
    b"\x00",
    b"\xff" * 8,
    bytes(100),
    bytes(5000),
    [],
    [[]],
    {},
    {"": ""},
    {"S": "a"},
    {"N": "x"},
]
# Msgpack has no such numbers.
_ODD_IN_JSON = [2**64, 10**30, -(10**30)]
_HEADERS = ["x-request-id", "accept", "accept-encoding", "content-encoding", "content-type", "authorization"]
_WORDS = [
    "gzip",
    "zstd",
    "identity",
    "*/*",
    "*",
    JSON.name,
    MSGPACK.name,
    MSGPACK.stream_name,
    "",
    ",,;q=",
    "\xff",
]
# What a parser may take longer over than over the bytes around it.
_FRAGMENTS = [
    b'"',
    b"\\",
    b'\\"',
    b"[",
    b"]",
    b"[]",
    b"[],",
    b"{",
    b"}",
    b'{"":',
    b",",
    b":",
    b" ",
    b"9",
    b"-",
    b".",
]
_FRAGMENTS += [
    b'"",',
    b'"a":[],',
    b"\\u0041",
    b"\\ud83d\\ude00",
    b"1e9,",
    b"\x90",
    b"\x91",
    b"\x80",
    b"\xa0",
    b"\xc0",
]


Bulk: TypeAlias = Literal["text", "values", "too many", "bytes"]
# How a small request may be large once it is decompressed, and the statuses that it may have: by a text in a good
# place, by values within all limits or beyond them, or by bytes that may be anything.
BULKS: dict[Bulk, set[int]] = {
    "text": {200},
    "values": {200, 400},
    "too many": {413},
    "bytes": {200, 400, 413},
}
# How long lists in each other are, from the inside, for as many values as are allowed and for too many.
_COUNTS = ((9_999,), (9_900, 9), (99, 99, 9))
_COUNTS_TOO_MANY = ((9_900, 11), (99, 99, 11))
# What a request has beside its large text.
_REST_BYTES = 4096


@dataclass
class Post:
    """A request as it goes over the wire."""

    endpoint: Endpoint
    body: bytes
    headers: list[tuple[bytes, bytes]]
    decompressed_bytes: int


def make_post(rng: random.Random, recorded: Mapping[str, Sequence[Any]]) -> Post:
    """Make a request that is a little, or very, wrong; sometimes it is good.

    Args:
        rng: The source of all choices.
        recorded: Good requests by endpoint. Others are made from the endpoints' models.
    """
    endpoint = rng.choice(ENDPOINTS)
    media = rng.choice((JSON, MSGPACK))
    # Few threads, so that requests meet what others have stored.
    document = example(endpoint.model, f"fuzz/{rng.randrange(3)}")
    if rng.random() < 0.7:
        document = rng.choice(recorded.get(endpoint.name, [document]))
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        document = _exchanged(document, rng.choice(_ODD if media is MSGPACK else _ODD + _ODD_IN_JSON), rng)
    body = _encoded(document, media, rng)
    if rng.random() < 0.3:
        body = _damaged(body, rng)
    headers = {"content-type": media.name, "x-request-id": uuid.UUID(int=rng.getrandbits(128)).hex}
    decompressed_bytes = len(body)
    if rng.random() < 0.2:
        headers["content-encoding"], body = _compressed(body, rng)
    if rng.random() < 0.1:
        headers[rng.choice(_HEADERS)] = rng.choice(_WORDS)
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return Post(endpoint, body, sent, decompressed_bytes)


def make_bulky_post(rng: random.Random, kind: Bulk, bytes_max: int) -> Post:
    """Make a request of a few hundred bytes that is large once it is decompressed, or has very many values."""
    media = rng.choice((JSON, MSGPACK))
    if kind == "text":
        endpoint, document = _with_a_text(rng, bytes_max)
        return _bulky_post(endpoint, media, _encoded(document, media, rng))
    endpoint = rng.choice(ENDPOINTS)
    document = example(endpoint.model)
    if kind in ("values", "too many"):
        # Lists in each other, none of which is too long.
        odd: Any = rng.choice(
            [each for each in _ODD if not isinstance(each, (list, dict)) and len(str(each)) < 30]
        )
        for count in rng.choice(_COUNTS if kind == "values" else _COUNTS_TOO_MANY):
            odd = [odd] * count
        document = replaced(document, rng.choice(list(places_of_values(document))), odd)
        return _bulky_post(endpoint, media, _encoded(document, media, rng))
    body = _encoded(document, media, rng)
    fragment = rng.choice(_FRAGMENTS) if rng.random() < 0.7 else rng.randbytes(rng.choice((1, 2, 5)))
    at = rng.randrange(len(body) + 1)
    body = body[:at] + fragment * ((bytes_max - len(body)) // len(fragment)) + body[at:]
    return _bulky_post(endpoint, media, body)


def _with_a_text(rng: random.Random, bytes_max: int) -> tuple[Endpoint, Any]:
    """Make a good request with a text that takes nearly all of the room, in one of the places where any text may be."""
    text = "x" * (bytes_max - _REST_BYTES)
    documents = [(each, example(each.model)) for each in ENDPOINTS]
    places = [(*each, place) for each in documents for place in places_of_values(each[1])]
    while True:
        endpoint, document, place = rng.choice(places)
        document = replaced(document, place, text)
        with contextlib.suppress(ValidationError):
            endpoint.model.model_validate(document)
            return endpoint, document


def _bulky_post(endpoint: Endpoint, media: Media, body: bytes) -> Post:
    headers = [(b"content-type", media.name.encode()), (b"content-encoding", b"zstd")]
    return Post(endpoint, zstd.compress(body), headers, len(body))


def _exchanged(document: Any, odd: Any, rng: random.Random) -> Any:
    """An odd value for one of the document's."""
    return replaced(document, rng.choice(list(places_of_values(document))), odd)


def _encoded(document: Any, media: Media, rng: random.Random) -> bytes:
    if media is MSGPACK:
        return ormsgpack.packb(document)
    return json.dumps(
        document, default=lambda value: b64encode(value).decode(), ensure_ascii=rng.random() < 0.5
    ).encode()


def _damaged(body: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 8))):
        start = rng.randrange(len(damaged) + 1)
        end = min(len(damaged), start + rng.choice((0, 1, 1, 4, 50)))
        damaged[start:end] = rng.randbytes(rng.choice((0, 1, 1, 4))) * rng.choice((1, 1, 1, 500))
    return bytes(damaged)


def _compressed(body: bytes, rng: random.Random) -> tuple[str, bytes]:
    name = rng.choice(("gzip", "zstd"))
    compressed = (gzip.compress if name == "gzip" else zstd.compress)(body)
    return name, _damaged(compressed, rng) if rng.random() < 0.5 else compressed
