"""Content-Encoding: gzip and zstd, with a bound that holds while something is decompressed."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# What zstd may look back to is what a decompressor keeps in memory; its senders' own default is 2 MiB.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
_ZSTD_LEVEL = 3
_GZIP_LEVEL = 6
# zlib's number for a window of 32 KiB inside of gzip's own format.
_GZIP_WINDOW = 31


class Decompressor(Protocol):
    """What zlib and zstd have in common."""

    @property
    def eof(self) -> bool:
        """Whether what is compressed is complete."""

    @property
    def unused_data(self) -> bytes:
        """What came behind it."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return up to so many bytes of what has come so far."""


_DECOMPRESSORS: Mapping[str, Callable[[], Decompressor]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP_WINDOW),
    "zstd": lambda: zstd.ZstdDecompressor(options=_ZSTD_OPTIONS),
}
ENCODINGS = tuple(_DECOMPRESSORS)


class Inflow:
    """A body as it comes in: decompressed where it is compressed, and never larger than it may be."""

    def __init__(self, encoding: str, sent_bytes_max: int, bytes_max: int) -> None:
        """Take the value of Content-Encoding, and how many bytes are allowed before and after.

        Raises:
            ProblemError: The encoding is unknown, or there are several.
        """
        name = encoding.strip().lower()
        if name not in ("", "identity", *_DECOMPRESSORS):
            says = f"Content-Encoding has to be one of {', '.join(ENCODINGS)}, or not there"
            raise ProblemError(415, says, headers={"Accept-Encoding": ", ".join(ENCODINGS)})
        self._decompressor = _DECOMPRESSORS[name]() if name in _DECOMPRESSORS else None
        self._sent_bytes_max = sent_bytes_max
        self._bytes_max = bytes_max
        self._sent_bytes = 0
        self._content = bytearray()

    def add(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            ProblemError: There are too many, before or after decompression, or they are not compressed as was said.
        """
        self._sent_bytes += len(data)
        if self._sent_bytes > self._sent_bytes_max:
            raise too_large(self._sent_bytes_max)
        self._content += data if self._decompressor is None else self._decompressed(self._decompressor, data)
        if len(self._content) > self._bytes_max:
            msg = f"the body is over {self._bytes_max:,} bytes once it is decompressed; send it in parts"
            raise ProblemError(413, msg)

    def content(self) -> bytes:
        """Return the whole body.

        Raises:
            ProblemError: What was compressed is not complete.
        """
        if self._decompressor is not None and not self._decompressor.eof:
            raise ProblemError(400, "the compressed body is not complete")
        return bytes(self._content)

    def _decompressed(self, decompressor: Decompressor, data: bytes) -> bytes:
        if not data:
            return b""
        if decompressor.eof:
            raise _trailing()
        try:
            # One byte more than is allowed tells that there is more; so nothing is ever left over.
            piece = decompressor.decompress(data, self._bytes_max - len(self._content) + 1)
        except (zlib.error, zstd.ZstdError):
            msg = "the body is not compressed as its Content-Encoding says, or with too large a window"
            raise ProblemError(400, msg) from None
        if decompressor.unused_data:
            raise _trailing()
        return piece


def too_large(bytes_max: int) -> ProblemError:
    """The problem of a body that is too large as it is sent."""
    return ProblemError(413, f"the body is over {bytes_max:,} bytes; send it in parts")


def _trailing() -> ProblemError:
    return ProblemError(400, "something follows the end of the compressed body")


class Outflow:
    """An answer as it goes out, piece by piece; each piece can be read as soon as it is there."""

    def __init__(self, encoding: str) -> None:
        """Take one of the encodings."""
        self._compress: Callable[[bytes], bytes]
        if encoding == "gzip":
            gzip = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_WINDOW)
            self._compress = gzip.compress
            self._flush = partial(gzip.flush, zlib.Z_SYNC_FLUSH)
            self.end = partial(gzip.flush, zlib.Z_FINISH)
        else:
            frame = zstd.ZstdCompressor(_ZSTD_LEVEL)
            self._compress = frame.compress
            self._flush = partial(frame.flush, frame.FLUSH_BLOCK)
            self.end = partial(frame.flush, frame.FLUSH_FRAME)

    def piece(self, data: bytes) -> bytes:
        """Compress a piece that is to be read at once."""
        return self._compress(data) + self._flush()


def chosen_encoding(accept_encoding: str) -> str | None:
    """The encoding that a client takes and that is the quickest; None where it takes neither."""
    weights: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        name, _, parameters = part.partition(";")
        weights[name.strip()] = _weight(parameters)
    taken = [each for each in reversed(ENCODINGS) if weights.get(each, weights.get("*", 0)) > 0]
    return taken[0] if taken else None


def _weight(parameters: str) -> float:
    """The q of an Accept header; what cannot be read counts as not wanted."""
    name, _, value = parameters.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
