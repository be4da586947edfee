"""Compression of what is sealed: zstd with the dictionary, where it helps."""

from __future__ import annotations

import sys

from .dictionary import DICTIONARY
from .limits import RAW_BYTES_MAX

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STORED, _ZSTD = 0, 1
_ZSTD_LEVEL = 3
# The decompressor refuses a frame that asks for a larger window than the maximum size of a sealed unit.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: RAW_BYTES_MAX.bit_length()}


def compress(raw: bytes) -> tuple[int, bytes]:
    """Compress bytes if that makes them shorter; return how, a number below 256, and the result."""
    # As a prefix, it costs less to set up and the result is smaller; a reader sees no difference.
    compressed = zstd.compress(raw, _ZSTD_LEVEL, zstd_dict=_dictionary().as_prefix)
    return (_ZSTD, compressed) if len(compressed) < len(raw) else (_STORED, raw)


def decompress(compression: int, payload: bytes, bytes_max: int) -> bytes:
    """Undo `compress`.

    Raises:
        ValueError: The bytes are damaged, or decompress to more than `bytes_max`.
    """
    if compression == _STORED:
        return payload
    if compression != _ZSTD:
        raise ValueError(f"its compression {compression} is unknown")
    try:
        decompressor = zstd.ZstdDecompressor(_dictionary(), _ZSTD_OPTIONS)
        raw = decompressor.decompress(payload, bytes_max + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"it cannot be decompressed ({error})") from error
    if not decompressor.eof or len(raw) > bytes_max:
        raise ValueError("its compressed data is larger, decompressed, than it may be")
    return raw


def _dictionary() -> zstd.ZstdDict:
    """Return the dictionary, for one use: its lock must not be copied by a fork while another OS thread holds it."""
    return zstd.ZstdDict(DICTIONARY, is_raw=True)
