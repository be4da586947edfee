"""The wire format: documents in msgpack. It knows neither HTTP nor the meaning of documents."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ormsgpack

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MEDIA_TYPE = "application/vnd.msgpack"

_ZSTD_LEVEL = 3
# zlib's number for a window of 32 KiB inside gzip's own format.
_GZIP_WINDOW = 31
# By encoding, what makes a decompressor. Those of zlib and zstd have the same methods.
_DECOMPRESSORS: Mapping[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP_WINDOW),
    "zstd": zstd.ZstdDecompressor,
}


@dataclass(frozen=True)
class Reply:
    """A response as it was received."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes
    """Compressed as its Content-Encoding says."""

    @property
    def content(self) -> bytes:
        """The decompressed body.

        Raises:
            BadDocumentError: It is not what its Content-Encoding says.
        """
        return decompressed(self.body, self.headers.get("Content-Encoding", ""))


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


def can_be_packed(document: Any) -> bool:
    """Tell whether a document can be encoded. Sets and numbers of more than 64 bits cannot."""
    try:
        packed(document)
    except CheckpointerInputError:
        return False
    return True


def compressed(data: bytes) -> bytes:
    """Compress a body for the service."""
    return zstd.compress(data, _ZSTD_LEVEL)


def decompressed(data: bytes, encoding: str) -> bytes:
    """Decompress a body of the service, given its Content-Encoding.

    Raises:
        CutOffError: The body ends too early.
        BadDocumentError: It is not what its encoding says.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return data
    if name not in _DECOMPRESSORS:
        raise BadDocumentError(f"it is compressed as {encoding}")
    decompressor = _DECOMPRESSORS[name]()
    try:
        content: bytes = decompressor.decompress(data)
    except (zlib.error, zstd.ZstdError) as error:
        raise BadDocumentError(f"it is not compressed as {encoding}: {error}") from error
    if not decompressor.eof:
        raise CutOffError("the compressed body is not complete")
    return content


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
