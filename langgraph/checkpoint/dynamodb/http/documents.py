"""The wire format: documents in msgpack, and streams of them. It knows neither HTTP nor the meaning of documents.

In a stream, each document is preceded by its length in four bytes. The last document has only a `cursor`, and `units`
if they were asked for, or a `problem` if the service failed on the way. A stream without it is incomplete.
"""

from __future__ import annotations

import json
from typing import Any

import ormsgpack

from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

MEDIA_TYPE = "application/vnd.langgraph-dynamodb.v1+msgpack"
STREAM_MEDIA_TYPE = f"{MEDIA_TYPE}-seq"

_LENGTH_BYTES = 4


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


def unpacked_stream(data: bytes) -> list[dict[str, Any]]:
    """Decode the documents of a stream, ignoring anything behind the last one.

    Raises:
        CutOffError: The stream ends before its last document.
        BadDocumentError: The bytes are not a stream of documents.
    """
    documents: list[dict[str, Any]] = []
    start = 0
    while not documents or documents[-1].keys() - {"units"} not in ({"cursor"}, {"problem"}):
        begin = start + _LENGTH_BYTES
        end = begin + int.from_bytes(data[start:begin], "big")
        if len(data) < max(begin, end):
            raise CutOffError("the stream ends before its last document")
        document = unpacked(data[begin:end])
        if not isinstance(document, dict):
            raise BadDocumentError("the stream contains something that is not a document")
        documents.append(document)
        start = end
    return documents
