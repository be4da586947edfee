"""The terms that clients and service of the gateway share, beside the shapes of their messages (see docs/wire.md)."""

from hashlib import sha256

from .compression import zstd

WIRE_VERSION = 3
"""The version of the wire. `GET /about` tells it. It changes only if a client of today could not go on."""
DIGEST_BYTES = 16
REQUEST_ID_HEADER = "X-Request-Id"
DEADLINE_HEADER = "X-Deadline"
"""Until when the client waits, by the service's clock. The service does not carry out a request that arrives later."""

_LEVEL = 3
# zstd finds what is equal within a window, which therefore has to hold the base and the value. This is the smallest
# one that it knows, and the largest one that a decompressor takes.
_WINDOW_LOG_MIN, _WINDOW_LOG_MAX = 10, 27
# A smaller value is sent whole.
_BYTES_MIN = 2048


def digest_of(data: bytes) -> bytes:
    """Return the digest by which client and service name the data of a value."""
    return sha256(data).digest()[:DIGEST_BYTES]


def delta_of(base: bytes, data: bytes) -> bytes | None:
    """Return the delta of a value to a base: a frame of zstd whose prefix is the base. `None` if it saves nothing."""
    if min(len(base), len(data)) < _BYTES_MIN:
        return None
    parameter = zstd.CompressionParameter
    window_log = (len(base) + len(data)).bit_length()
    options: dict[int, int] = {
        parameter.compression_level: _LEVEL,
        parameter.window_log: min(max(window_log, _WINDOW_LOG_MIN), _WINDOW_LOG_MAX),
        # Otherwise it remembers too few places of a large base.
        parameter.enable_long_distance_matching: 1,
        parameter.checksum_flag: 1,
    }
    delta = zstd.compress(data, options=options, zstd_dict=_prefix(base))
    return delta if len(delta) < len(data) else None


def described_bytes(delta: bytes) -> int:
    """Return the size of the value that a delta describes. A few bytes can describe gigabytes.

    Raises:
        ValueError: It is not a frame of zstd that says its size.
    """
    try:
        size: int | None = zstd.get_frame_info(delta).decompressed_size
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    if size is None:
        raise ValueError("the frame of zstd does not say the size of its content")
    return size


def value_of(base: bytes, delta: bytes) -> bytes:
    """Return the value that a delta describes, which is not larger than `described_bytes` says.

    Raises:
        ValueError: The delta is damaged, or not one to this base.
    """
    decompressor = zstd.ZstdDecompressor(_prefix(base))
    try:
        data = decompressor.decompress(delta, described_bytes(delta) + 1)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("the frame of zstd does not end with the delta")
    return data


def _prefix(base: bytes) -> tuple[zstd.ZstdDict, int]:
    return zstd.ZstdDict(base, is_raw=True).as_prefix
