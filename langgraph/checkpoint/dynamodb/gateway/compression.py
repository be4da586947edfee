"""Content-Encoding: gzip and zstd, with a size limit that is enforced during decompression."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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


def too_large(bytes_max: int) -> ProblemError:
    """Return the problem for a body that is too large as it is sent."""
    return ProblemError(413, f"the body is over {bytes_max:,} bytes; send less in one request")


def compressed(data: bytes, encoding: str) -> bytes:
    """Compress an answer."""
    if encoding == "gzip":
        return gzip.compress(data, _GZIP_LEVEL)
    return zstd.compress(data, _ZSTD_LEVEL)


def chosen_encoding(accept_encoding: str) -> str | None:
    """Return the fastest encoding that a client names, or None. One with a weight is left out: it may be refused."""
    named = [each.strip() for each in accept_encoding.lower().split(",")]
    return next((each for each in reversed(ENCODINGS) if each in named), None)
