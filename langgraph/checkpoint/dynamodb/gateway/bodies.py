"""Bodies: receiving requests within their limits, and sending responses, compressed by gzip or zstd."""

import asyncio
import gzip
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from .._format.compression import zstd
from .._format.wire import described_bytes
from .limits import Limits, Shares
from .problems import ProblemError
from .serving import Principal

T = TypeVar("T")

MEDIA_TYPE = "application/json"

# Anything larger is decoded, or encoded, in a worker.
_THREADED_BYTES = 64 << 10
_WORKERS = 2
# How long a body may take to arrive, or a reader to take a response: this, and a second more for each 16 KiB.
_STALL_SECONDS = 20.0
_BYTES_PER_SECOND_MIN = 16 << 10
_GZIP_SIZE_BYTES = 4
# The longest header of a frame.
_ZSTD_HEADER_BYTES = 18
# Anything smaller is not worth compressing.
_COMPRESSED_BYTES_MIN = 1 << 10
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
    """A body as it was received, and how large it says to be once it is decompressed."""

    data: bytes
    encoding: str
    size_bytes: int

    def read(self, decode: Callable[[bytes], T]) -> T:
        """Decompress and decode the body."""
        return decode(decompressed(self.data, self.encoding, self.size_bytes))


class Workers:
    """The OS threads that decode bodies and encode responses, so that neither blocks the event loop for long.

    A tenant has half of them. After its work a worker rests for as long as it worked, since what decodes holds the
    interpreter's lock most of the time.
    """

    def __init__(self) -> None:
        """Start with all of them free."""
        self._shares = Shares(_WORKERS)

    async def run(self, who: Principal, size_bytes: int, function: Callable[[], T]) -> T:
        """Call a function, in a worker if it works on much."""
        if size_bytes < _THREADED_BYTES:
            return function()
        await self._shares.enter(who)
        began = time.perf_counter()
        try:
            return await to_thread.run_sync(function)
        finally:
            worked = time.perf_counter() - began
            asyncio.get_running_loop().call_later(worked, self._shares.leave, who)


def announced_length(headers: Headers, limits: Limits) -> int:
    """Return how many bytes of a body will come."""
    _check_media_type(headers.get("content-type", ""))
    content_encoding(headers.get("content-encoding", ""))
    announced = headers.get("content-length", "")
    if not (announced.isascii() and announced.isdecimal()):
        raise ProblemError(411, "send the body with its Content-Length, so that there is room for it")
    length = int(announced[:20])
    if length > limits.body_bytes_max:
        raise ProblemError(413, f"the body is over {limits.body_bytes_max:,} bytes; send less in one request")
    return length


async def receive(request: Request, length: int, limits: Limits) -> RequestBody:
    """Receive a request's body, of which so many bytes will come."""
    data = bytearray()
    try:
        with anyio.fail_after(patience_seconds(length)):
            async for piece in request.stream():
                data += piece
                if len(data) > length:
                    break
    except TimeoutError:
        says = f"the body took longer than {patience_seconds(length):.0f} s to arrive; send it faster, or in parts"
        raise ProblemError(408, says, headers={"Connection": "close"}) from None
    if len(data) != length:
        raise ProblemError(400, "the body is not as long as its Content-Length says")
    encoding = content_encoding(request.headers.get("content-encoding", ""))
    size = announced_bytes(data, encoding)
    if size > limits.decompressed_bytes_max:
        over = f"the body is over {limits.decompressed_bytes_max:,} bytes once it is decompressed"
        raise ProblemError(413, f"{over}; send less in one request")
    return RequestBody(bytes(data), encoding, size)


def patience_seconds(size_bytes: int) -> float:
    """Return how long so many bytes may take to arrive, or to be read."""
    return _STALL_SECONDS + size_bytes / _BYTES_PER_SECOND_MIN


def announced_bytes(data: bytes | bytearray, encoding: str) -> int:
    """Return how large a body says to be once it is decompressed: the end of gzip says it, and the header of zstd."""
    if encoding == "gzip":
        return int.from_bytes(data[-_GZIP_SIZE_BYTES:], "little")
    if not encoding:
        return len(data)
    try:
        return described_bytes(bytes(data[:_ZSTD_HEADER_BYTES]))
    except ValueError as error:
        says = f"the body is not a frame of zstd that says the size of its content ({error}); compress it at once"
        raise ProblemError(400, says) from None


def _check_media_type(content_type: str) -> None:
    name, _, parameters = content_type.lower().partition(";")
    charset = parameters.replace(" ", "").replace('"', "").partition("charset=")[2]
    if name.strip() != MEDIA_TYPE or charset not in ("", "utf-8"):
        raise ProblemError(
            415, f"Content-Type must be {MEDIA_TYPE}, in UTF-8", headers={"Accept-Post": MEDIA_TYPE}
        )


def response(encode: Callable[[], bytes], accept_encoding: str) -> Response:
    """Return the response with what is encoded, compressed if the client accepts that."""
    body, encoding, headers = encode(), chosen_encoding(accept_encoding), dict[str, str]()
    if encoding is not None and len(body) >= _COMPRESSED_BYTES_MIN:
        headers["Content-Encoding"] = encoding
        body = compressed(body, encoding)
    return Response(body, media_type=MEDIA_TYPE, headers=headers)


def content_encoding(header: str) -> str:
    """Return the encoding that a Content-Encoding header names, or the empty text for none."""
    name = header.strip().lower()
    if name not in ("", "identity", *ENCODINGS):
        says = (
            f"Content-Encoding must be {' or '.join(ENCODINGS)}; leave it out if the body is not compressed"
        )
        raise ProblemError(415, says, headers={"Accept-Encoding": ", ".join(ENCODINGS)})
    return "" if name == "identity" else name


def decompressed(data: bytes, encoding: str, size_bytes: int) -> bytes:
    """Decompress a whole body, which has the size that it says. Of a larger one, no more is decompressed."""
    if not encoding:
        return data
    decompressor = _DECOMPRESSORS[encoding]()
    try:
        # One byte more shows that there is more, and lets the end be read.
        content: bytes = decompressor.decompress(data, size_bytes + 1)
    except (zlib.error, zstd.ZstdError):
        msg = "the body is not compressed as its Content-Encoding says, or with too large a window"
        raise ProblemError(400, msg) from None
    if decompressor.unused_data:
        raise ProblemError(400, "something follows the end of the compressed body")
    if not decompressor.eof or len(content) != size_bytes:
        raise ProblemError(400, "the compressed body is not complete, or not as large as it says")
    return content


def compressed(data: bytes, encoding: str) -> bytes:
    """Compress a response."""
    if encoding == "gzip":
        return gzip.compress(data, _GZIP_LEVEL)
    return zstd.compress(data, _ZSTD_LEVEL)


def chosen_encoding(accept_encoding: str) -> str | None:
    """Return the fastest encoding that a client names, or None. One with a weight is left out: it may be refused."""
    named = [each.strip() for each in accept_encoding.lower().split(",")]
    return next((each for each in reversed(ENCODINGS) if each in named), None)
