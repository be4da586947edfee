"""The documents that travel, as msgpack: bodies, and streams of them. It knows neither HTTP nor what they say.

In a stream each document has its length in front, in four bytes. The last one has a `cursor` and nothing else, or a
`problem` where the service failed on the way; a stream without it is not complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import ormsgpack

MEDIA_TYPE = "application/vnd.langgraph-dynamodb.v1+msgpack"
STREAM_MEDIA_TYPE = f"{MEDIA_TYPE}-seq"

_LENGTH_BYTES = 4


class BadDocumentError(ValueError):
    """What came is no document, or not all of one."""


def packed(document: Any) -> bytes:
    """Encode a document."""
    return ormsgpack.packb(document)


def can_be_packed(document: Any) -> bool:
    """Whether there is an encoding of a document: of sets and numbers of more than 64 bits there is none."""
    try:
        packed(document)
    except ormsgpack.MsgpackEncodeError:
        return False
    return True


def parsed(data: bytes) -> Any:
    """Decode a document in JSON, as which the gateway tells of itself."""
    try:
        return json.loads(data)
    except ValueError as error:
        raise BadDocumentError("it is no JSON") from error


def unpacked(data: bytes | bytearray) -> Any:
    """Decode a document."""
    try:
        return ormsgpack.unpackb(data)
    except ormsgpack.MsgpackDecodeError as error:
        raise BadDocumentError("it is no msgpack") from error


class Frames:
    """Takes a stream apart, in whatever pieces it comes."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest = bytearray()
        self.has_ended = False

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take the next piece and give the documents that are complete with it; an empty piece is the end.

        Raises:
            BadDocumentError: The stream ends before its last document, or is no stream of documents.
        """
        self._rest += data
        while (document := self._next()) is not None:
            yield document
        if not data and not self.has_ended:
            raise BadDocumentError("the stream ends before its last document")

    def _next(self) -> Any:
        end = _LENGTH_BYTES + int.from_bytes(self._rest[:_LENGTH_BYTES], "big")
        if self.has_ended or len(self._rest) < max(end, _LENGTH_BYTES + 1):
            return None
        document = unpacked(self._rest[_LENGTH_BYTES:end])
        del self._rest[:end]
        if not isinstance(document, dict):
            raise BadDocumentError("the stream has something that is no document")
        self.has_ended = document.keys() in ({"cursor"}, {"problem"})
        return document
