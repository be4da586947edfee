"""The wire format: documents in msgpack. It knows neither HTTP nor the meaning of documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import ormsgpack

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Document: TypeAlias = dict[str, Any]

MEDIA_TYPE = "application/vnd.msgpack"
ENCODING = "zstd"

_ZSTD_LEVEL = 3


@dataclass(frozen=True)
class Reply:
    """A response as it was received."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes
    """Compressed as its Content-Encoding says: with zstd, or not at all."""

    @property
    def content(self) -> bytes:
        """The decompressed body.

        Raises:
            CutOffError: The body is not complete.
            BadDocumentError: It is compressed in another way.
        """
        encoding = self.headers.get("Content-Encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return self.body
        if encoding != ENCODING:
            raise BadDocumentError(f"it is compressed as {encoding}")
        try:
            return zstd.decompress(self.body)
        except zstd.ZstdError as error:
            raise CutOffError(f"its compressed body is not complete ({error})") from error


class BadDocumentError(ValueError):
    """The received bytes are not a document."""


class CutOffError(BadDocumentError):
    """The received bytes are only a part of the response."""


def packed(document: Any) -> bytes:
    """Encode a document.

    Raises:
        CheckpointerInputError: It has half a surrogate pair, a number of more than 64 bits, or another type.
    """
    try:
        return ormsgpack.packb(document)
    except ormsgpack.MsgpackEncodeError as error:
        msg = f"an argument cannot be sent to the gateway: {error}; use valid Unicode, and numbers of 64 bits"
        raise CheckpointerInputError(msg) from error


def compressed(data: bytes) -> bytes:
    """Compress a body for the service."""
    return zstd.compress(data, _ZSTD_LEVEL)


def parsed(data: bytes) -> Any:
    """Decode a document in JSON, the format in which the gateway describes itself."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadDocumentError("it is not JSON") from error


def unpacked(data: bytes) -> Any:
    """Decode a document."""
    try:
        return ormsgpack.unpackb(data)
    except ormsgpack.MsgpackDecodeError as error:
        raise BadDocumentError("it is not msgpack") from error


def size_of(document: Any) -> int:
    """Return how many bytes the values of a document have, to decide where to encode it."""
    if isinstance(document, (bytes, str)):
        return len(document)
    if isinstance(document, (dict, list, tuple)):
        return sum(map(size_of, document.values() if isinstance(document, dict) else document))
    return 1
