"""Media types: the two encodings of a document."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ormsgpack
from pydantic_core import from_json

from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.size_limits import check_json, count_msgpack


@dataclass(frozen=True)
class Media:
    """An encoding of documents.

    Args:
        name: The media type.
        decode: Makes a document of bytes; raises `ValueError` if they are none.
        encode: Makes bytes of a document.
        check: Refuses a body that is too deep or too large to be decoded.
    """

    name: str
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    check: Callable[[bytes], object]

    def document(self, body: bytes) -> Any:
        """Decode a body.

        Raises:
            ProblemError: It is too deep or too large, or not what its Content-Type says.
        """
        self.check(body)
        try:
            return self.decode(body)
        except ValueError as error:
            # Parsers quote at most one character of the body, which may hold anything.
            raise ProblemError(400, f"the body is not {self.name}: {str(error)[:200]}") from None


def _encode_json(document: Any) -> bytes:
    # In ASCII: an item may hold half a surrogate pair, which is not valid UTF-8.
    text = json.dumps(document, default=lambda data: b64encode(data).decode(), separators=(",", ":"))
    return text.encode()


def _encode_msgpack(document: Any) -> bytes:
    try:
        return ormsgpack.packb(document)
    except ormsgpack.MsgpackEncodeError:
        return ormsgpack.packb(_valid(document))


def _valid(value: Any) -> Any:
    """Return a value as msgpack can hold it.

    Metadata may have whole numbers of more than 64 bits, which become text. Plain JSON may have halves of surrogate
    pairs, where JavaScript has cut a text; a replacement character takes the place of each.
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_valid(name): _valid(each) for name, each in value.items()}
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return str(value)
    return list(map(_valid, value)) if isinstance(value, list) else value


JSON = Media(
    "application/json",
    # NaN and the infinities are not JSON, and DynamoDB does not store them.
    lambda body: from_json(body, allow_inf_nan=False),
    _encode_json,
    check_json,
)
MSGPACK = Media(
    "application/vnd.msgpack",
    ormsgpack.unpackb,
    _encode_msgpack,
    count_msgpack,
)
MEDIA = (JSON, MSGPACK)
_WANTED = f"{JSON.name} or {MSGPACK.name}"


def media_of(content_type: str) -> Media:
    """Return the encoding that a Content-Type names. The answer has the same.

    Raises:
        ProblemError: It is not an encoding of this service; a 415.
    """
    name, _, parameters = content_type.lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "").partition("charset=")[2]
    found = next((each for each in MEDIA if each.name == name.strip()), None)
    if found is None or charset not in ("", "utf-8"):
        raise ProblemError(
            415,
            f"Content-Type must be {_WANTED}, in UTF-8",
            headers={"Accept-Post": _WANTED.replace(" or ", ", ")},
        )
    return found
