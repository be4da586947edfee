"""Bodies: receiving requests within their limits, and sending answers, compressed by gzip or zstd."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter, to_thread
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.media import Media, media_of
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.shares import Held
from langgraph.checkpoint.dynamodb.gateway.wire import Message

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Anything larger is decoded in a thread, so that the event loop is not blocked.
_THREADED_BYTES = 64 << 10
# Anything smaller is not worth compressing.
_COMPRESSED_BYTES_MIN = 1 << 10
# How many mistakes of a request are named. Describing one takes microseconds, and a body of a hundred bytes can have a
# hundred thousand, so beyond a bound they are only counted.
_MISTAKES_MAX = 5
_MISTAKES_DESCRIBED_MAX = 1000
# A key of the body that an answer quotes is cut to this length: a client may choose one of 16 MiB.
_NAME_CHARACTERS_MAX = 100
# A decompressor keeps zstd's window in memory. The senders' own default is 2 MiB.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
_ZSTD_LEVEL = 3
_GZIP_LEVEL = 6
# zlib's number for a window of 32 KiB inside gzip's own format.
_GZIP_WINDOW = 31
# By encoding, what makes a decompressor. Those of zlib and zstd have the same methods.
_DECOMPRESSORS: Mapping[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP_WINDOW),
    "zstd": lambda: zstd.ZstdDecompressor(options=_ZSTD_OPTIONS),
}
ENCODINGS = tuple(_DECOMPRESSORS)


@dataclass(frozen=True)
class RequestBody:
    """A body as it was received. It is decompressed and decoded once its request has a place."""

    data: bytes
    encoding: str
    media: Media
    decompressed_bytes_max: int

    async def message(self, model: type[Message], held: Held, limiter: CapacityLimiter) -> Message:
        """Decode the body into a message.

        Args:
            model: The message's model.
            held: Counts the bytes of the decompressed body.
            limiter: Lets one large body be decoded at a time, since each takes several times its size in memory.

        Raises:
            ProblemError: The body is not a message of the model, or over a limit, or there is no room for it.
        """
        if not self.encoding and len(self.data) < _THREADED_BYTES:
            return _message(self.data, self.media, model)
        content, message = await to_thread.run_sync(self._decoded, model, limiter=limiter)
        if self.encoding:
            held.add(len(content))
        return message

    def _decoded(self, model: type[Message]) -> tuple[bytes, Message]:
        content = decompressed(self.data, self.encoding, self.decompressed_bytes_max)
        return content, _message(content, self.media, model)


async def receive(request: Request, limits: Limits, held: Held) -> RequestBody:
    """Receive a request's body.

    Raises:
        ProblemError: The body is too large, or its headers say that it is no message, or there is no room for it.
    """
    media = media_of(request.headers.get("content-type", ""))
    encoding = content_encoding(request.headers.get("content-encoding", ""))
    announced = request.headers.get("content-length", "")
    _check_size(int(announced[:20]) if announced.isdecimal() else 0, limits)
    data = bytearray()
    async for piece in request.stream():
        _check_size(len(data) + len(piece), limits)
        held.add(len(piece))
        data += piece
    return RequestBody(bytes(data), encoding, media, limits.decompressed_bytes_max)


def _check_size(size_bytes: int, limits: Limits) -> None:
    if size_bytes > limits.body_bytes_max:
        msg = f"the body is over {limits.body_bytes_max:,} bytes; send less in one request"
        raise ProblemError(413, msg)


def _message(body: bytes, media: Media, model: type[Message]) -> Message:
    document = media.document(body)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ProblemError(400, _mistakes(error)) from None


def _mistakes(error: ValidationError) -> str:
    if error.error_count() > _MISTAKES_DESCRIBED_MAX:
        return f"the body has {error.error_count():,} mistakes; compare it with /openapi.json"
    # The input may be a state, so it is not even asked for.
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{_place(each['loc']) or 'the body'}: {each['msg']}" for each in found[:_MISTAKES_MAX]]
    return "; ".join(named) + (
        f"; and {len(found) - _MISTAKES_MAX} more" if len(found) > _MISTAKES_MAX else ""
    )


def _place(loc: Iterable[int | str]) -> str:
    return ".".join(str(each)[:_NAME_CHARACTERS_MAX] for each in loc)


async def answer(media: Media, accept_encoding: str, document: Any) -> Response:
    """Return the response for a document, compressed if the client accepts that."""
    # A large document would block the event loop.
    return await to_thread.run_sync(_response, media, chosen_encoding(accept_encoding), document)


def _response(media: Media, encoding: str | None, document: Any) -> Response:
    body, headers = media.encode(document), dict[str, str]()
    if encoding is not None and len(body) >= _COMPRESSED_BYTES_MIN:
        headers["Content-Encoding"] = encoding
        body = compressed(body, encoding)
    return Response(body, media_type=media.name, headers=headers)


def content_encoding(header: str) -> str:
    """Return the encoding that a Content-Encoding header names, or the empty text for none.

    Raises:
        ProblemError: The encoding is unknown, or there are several.
    """
    name = header.strip().lower()
    if name not in ("", "identity", *ENCODINGS):
        says = (
            f"Content-Encoding must be {' or '.join(ENCODINGS)}; leave it out if the body is not compressed"
        )
        raise ProblemError(415, says, headers={"Accept-Encoding": ", ".join(ENCODINGS)})
    return "" if name == "identity" else name


def decompressed(data: bytes, encoding: str, bytes_max: int) -> bytes:
    """Decompress a whole body, but stop when it exceeds the limit.

    Raises:
        ProblemError: It is too large, not complete, or not compressed as its encoding says.
    """
    # One byte above the limit shows that there is more.
    content = _decompressed(data, encoding, bytes_max + 1) if encoding else data
    if len(content) > bytes_max:
        msg = f"the body is over {bytes_max:,} bytes once it is decompressed; send less in one request"
        raise ProblemError(413, msg)
    return content


def _decompressed(data: bytes, encoding: str, bytes_max: int) -> bytes:
    decompressor = _DECOMPRESSORS[encoding]()
    try:
        content: bytes = decompressor.decompress(data, bytes_max)
    except (zlib.error, zstd.ZstdError):
        msg = "the body is not compressed as its Content-Encoding says, or with too large a window"
        raise ProblemError(400, msg) from None
    if decompressor.unused_data:
        raise ProblemError(400, "something follows the end of the compressed body")
    if not decompressor.eof and len(content) < bytes_max:
        raise ProblemError(400, "the compressed body is not complete")
    return content


def compressed(data: bytes, encoding: str) -> bytes:
    """Compress an answer."""
    if encoding == "gzip":
        return gzip.compress(data, _GZIP_LEVEL)
    return zstd.compress(data, _ZSTD_LEVEL)


def chosen_encoding(accept_encoding: str) -> str | None:
    """Return the fastest encoding that a client names, or None. One with a weight is left out: it may be refused."""
    named = [each.strip() for each in accept_encoding.lower().split(",")]
    return next((each for each in reversed(ENCODINGS) if each in named), None)
