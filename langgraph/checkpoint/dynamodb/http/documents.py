"""The documents that travel, as msgpack: bodies, and streams of them. It knows neither HTTP nor what they say.

In a stream each document has its length in front, in four bytes. The last one has a `cursor` and nothing else, or a
`problem` where the service failed on the way; a stream without it is not complete.
"""

from __future__ import annotations

import json
from typing import Any

import ormsgpack

MEDIA_TYPE = "application/vnd.langgraph-dynamodb.v1+msgpack"
STREAM_MEDIA_TYPE = f"{MEDIA_TYPE}-seq"

_LENGTH_BYTES = 4


class BadDocumentError(ValueError):
    """What came is no document."""


class CutOffError(BadDocumentError):
    """What came is not all of an answer."""


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


def unpacked(data: bytes) -> Any:
    """Decode a document."""
    try:
        return ormsgpack.unpackb(data)
    except ormsgpack.MsgpackDecodeError as error:
        raise BadDocumentError("it is no msgpack") from error


def unpacked_stream(data: bytes) -> list[dict[str, Any]]:
    """Decode the documents of a stream; what comes behind the last one is of no use.

    Raises:
        CutOffError: The stream ends before its last document.
        BadDocumentError: It is no stream of documents.
    """
    documents: list[dict[str, Any]] = []
    start = 0
    while not documents or documents[-1].keys() not in ({"cursor"}, {"problem"}):
        begin = start + _LENGTH_BYTES
        end = begin + int.from_bytes(data[start:begin], "big")
        if len(data) < max(begin, end):
            raise CutOffError("the stream ends before its last document")
        document = unpacked(data[begin:end])
        if not isinstance(document, dict):
            raise BadDocumentError("the stream has something that is no document")
        documents.append(document)
        start = end
    return documents
