"""Requests that nobody would send: good ones with values, bytes, encodings and headers exchanged, by a seed."""

from __future__ import annotations

import gzip
import json
import random
import sys
import uuid
from dataclasses import dataclass
from typing import Any

import ormsgpack

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
    "checked",
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


@dataclass
class Post:
    """A request as it goes over the wire."""

    endpoint: Endpoint
    body: bytes
    headers: list[tuple[bytes, bytes]]
    decompressed_bytes: int


def make_post(rng: random.Random) -> Post:
    """Make a request that is a little, or very, wrong; sometimes it is good."""
    endpoint = rng.choice(ENDPOINTS)
    media = rng.choice((JSON, MSGPACK))
    # Few threads, so that requests meet what others have stored.
    document: Any = example(endpoint.model, f"fuzz/{rng.randrange(3)}")
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


def make_bulky_post(rng: random.Random, bytes_max: int) -> Post:
    """Make a request of a few hundred bytes that is large once it is decompressed, or has very many values."""
    endpoint = rng.choice(ENDPOINTS)
    media = rng.choice((JSON, MSGPACK))
    document: Any = example(endpoint.model)
    place = rng.choice(list(places_of_values(document)))
    if rng.random() < 0.5:
        # Good syntax: a long text, or lists of very many odd values in each other.
        odd: Any = rng.choice(_ODD)
        for count in rng.choice(((9_999,), (9_900, 9), (99, 99, 9))):
            odd = [odd] * count
        document = replaced(document, place, rng.choice((odd, "x" * bytes_max)))
        body = _encoded(document, media, rng)
    else:
        body = _encoded(document, media, rng)
        fragment = rng.choice(_FRAGMENTS) if rng.random() < 0.7 else rng.randbytes(rng.choice((1, 2, 5)))
        at = rng.randrange(len(body) + 1)
        body = body[:at] + fragment * ((bytes_max - len(body)) // len(fragment)) + body[at:]
    body = body[:bytes_max]
    headers = [(b"content-type", media.name.encode()), (b"content-encoding", b"zstd")]
    return Post(endpoint, zstd.compress(body), headers, len(body))


def _exchanged(document: Any, odd: Any, rng: random.Random) -> Any:
    """An odd value for one of the document's."""
    return replaced(document, rng.choice(list(places_of_values(document))), odd)


def _encoded(document: Any, media: Media, rng: random.Random) -> bytes:
    if media is MSGPACK:
        return ormsgpack.packb(document)
    return json.dumps(document, default=lambda value: value.hex(), ensure_ascii=rng.random() < 0.5).encode()


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
