"""Values to bytes and back: the serializer, compression, encryption and checksums of one sealed unit.

A sealed unit is `version, compression, length of the cipher's name, cipher's name, checksum, payload`.
Bytes are compressed, then encrypted. The checksum covers the payload as it is stored and the sort key of the
item that it belongs to, so damaged or exchanged data is found before anything is decrypted or parsed.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from typing import Any

from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb._format.dictionary import DICTIONARY
from langgraph.checkpoint.dynamodb._format.items import (
    CHECKSUM_BYTES,
    FORMAT_VERSION,
    SEGMENTS,
    Item,
    checksum,
    damaged,
    name_of,
    newer_format,
    sort_key,
)
from langgraph.checkpoint.dynamodb._format.limits import RAW_BYTES_MAX
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerConfigurationError,
    CheckpointSerializationError,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_ENVELOPE = struct.Struct(">BBB")
_STORED, _ZSTD = 0, 1
_ZSTD_LEVEL = 3
_ZSTD_DICTIONARY = zstd.ZstdDict(DICTIONARY, is_raw=True)
# No segment holds more before compression; an item may name very many of them.
_SEGMENT_RAW_BYTES_MAX = 64 * 1024
# How many parts from each end of a container stand for all of them.
_SAMPLE = 3
# The decompressor refuses a frame that asks for a larger window than what a sealed unit may hold.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: RAW_BYTES_MAX.bit_length()}


class Codec:
    """Encodes with one serializer; made for each call, so that a changed serializer is never bypassed."""

    def __init__(self, serde: SerializerProtocol) -> None:
        """Take the serializer, and the cipher of exactly LangGraph's `EncryptedSerializer` apart from it."""
        self._serde = serde
        self._cipher: CipherProtocol | None = None
        if type(serde) is EncryptedSerializer:
            self._serde, self._cipher = serde.serde, serde.cipher

    def dumps(self, value: Any, name: str) -> tuple[str, bytes]:
        """Serialize a value, or raise `CheckpointSerializationError`, which names it."""
        try:
            kind, data = self._serde.dumps_typed(value)
        except Exception as error:
            msg = (
                f"{name} cannot be serialized: {error}; it was not stored. Keep such objects out of the state,"
                " or give the saver a serde that can write them"
            )
            raise CheckpointSerializationError(msg) from error
        return kind, bytes(data)

    def loads(self, kind: str, data: bytes, item: Item) -> Any:
        """Deserialize a value that an item holds."""
        try:
            return self._serde.loads_typed((kind, data))
        except Exception as error:
            msg = (
                f"{name_of(item)} is intact, but the saver's serde cannot read its {kind!r} data ({error}); give the"
                " saver the serde that the thread was written with"
            )
            raise CheckpointerConfigurationError(msg) from error

    def seal(self, raw: bytes, sk: str) -> bytes:
        """Compress where that helps, encrypt where the serializer does, and add a checksum for the item."""
        compression, payload = _compress(raw)
        name = b""
        if self._cipher is not None:
            cipher_name, payload = self._cipher.encrypt(payload)
            name = cipher_name.encode()
        return _envelope(compression, name, payload, sk)

    def open(self, sealed: bytes, item: Item) -> bytes:
        """Undo `seal` for bytes of the item, verifying them."""
        header, payload = _verified(sealed, item)
        _, compression, name_bytes = _ENVELOPE.unpack_from(header)
        if name_bytes:
            payload = self._decrypt(header[_ENVELOPE.size :].decode(errors="backslashreplace"), payload, item)
        return _decompress(compression, payload, item)

    def _decrypt(self, cipher_name: str, payload: bytes, item: Item) -> bytes:
        if self._cipher is None:
            msg = (
                f"{name_of(item)} is encrypted with {cipher_name!r}, and the saver has no cipher; give it the"
                " EncryptedSerializer that the thread was written with"
            )
            raise CheckpointerConfigurationError(msg)
        try:
            return self._cipher.decrypt(cipher_name, payload)
        except Exception as error:
            msg = (
                f"{name_of(item)} is intact but cannot be decrypted with the saver's key ({error}); give the saver"
                " the key that the thread was written with"
            )
            raise CheckpointerConfigurationError(msg) from error


def seal_plain(raw: bytes, sk: str) -> bytes:
    """Seal bytes that are to be readable without a key."""
    compression, payload = _compress(raw)
    return _envelope(compression, b"", payload, sk)


def reseal(sealed: bytes, item: Item, sk: str) -> bytes:
    """Sealed bytes of an item as they are for another one; needs no key."""
    header, payload = _verified(sealed, item)
    return header + checksum(sk, header + payload) + payload


def _envelope(compression: int, cipher_name: bytes, payload: bytes, sk: str) -> bytes:
    header = _ENVELOPE.pack(FORMAT_VERSION, compression, len(cipher_name)) + cipher_name
    return header + checksum(sk, header + payload) + payload


def _verified(sealed: bytes, item: Item) -> tuple[bytes, bytes]:
    """The header and the payload of sealed bytes, if they are what was written for the item."""
    if len(sealed) < _ENVELOPE.size:
        raise damaged(item, "its data is cut short")
    version, _, name_bytes = _ENVELOPE.unpack_from(sealed)
    if version > FORMAT_VERSION:
        raise newer_format(item, version)
    end = _ENVELOPE.size + name_bytes
    header, payload = sealed[:end], sealed[end + CHECKSUM_BYTES :]
    if sealed[end : end + CHECKSUM_BYTES] != checksum(sort_key(item), header + payload):
        raise damaged(item, "its checksum does not match")
    return header, payload


def _compress(raw: bytes) -> tuple[int, bytes]:
    compressed = zstd.compress(raw, _ZSTD_LEVEL, zstd_dict=_ZSTD_DICTIONARY)
    return (_ZSTD, compressed) if len(compressed) < len(raw) else (_STORED, raw)


def _decompress(compression: int, payload: bytes, item: Item) -> bytes:
    if compression == _STORED:
        return payload
    if compression != _ZSTD:
        raise damaged(item, f"its compression {compression} is unknown")
    bytes_max = _SEGMENT_RAW_BYTES_MAX if sort_key(item).startswith(SEGMENTS) else RAW_BYTES_MAX
    try:
        decompressor = zstd.ZstdDecompressor(_ZSTD_DICTIONARY, _ZSTD_OPTIONS)
        raw = decompressor.decompress(payload, bytes_max + 1)
    except zstd.ZstdError as error:
        raise damaged(item, f"it cannot be decompressed ({error})") from error
    if not decompressor.eof or len(raw) > bytes_max:
        raise damaged(item, "its compressed data has no end within bounds")
    return raw


def rough_bytes(value: Any, depth: int = 3) -> int:
    """About how large a value will be, from a few of its parts: enough to decide where to serialize it."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, dict):
        parts: list[Any] = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        parts = list(value)
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    if depth == 0 or not parts:
        return 16
    sample = parts if len(parts) <= 2 * _SAMPLE else parts[:_SAMPLE] + parts[-_SAMPLE:]
    return sum(rough_bytes(part, depth - 1) for part in sample) * len(parts) // len(sample)


# Metadata


def metadata_json(metadata: Any) -> str | None:
    """Metadata as readable JSON, or None where JSON cannot carry it exactly.

    Tuples count as lists, as they do in LangGraph's own serializer.
    """
    if not _is_json(metadata):
        return None
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))


def _is_json(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return all(type(name) is str and _is_json(name) and _is_json(each) for name, each in value.items())
    if kind in (list, tuple):
        return all(map(_is_json, value))
    if kind is str:
        return (
            not any("\ud800" <= character <= "\udfff" for character in value) if not value.isascii() else True
        )
    return kind in (int, bool, type(None)) or (kind is float and math.isfinite(value))


def parse_metadata(item: Item, data: str) -> Any:
    """Read metadata that was stored as JSON."""
    try:
        metadata = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise damaged(item, f"its metadata is not JSON ({error})") from error
    if not isinstance(metadata, dict):
        raise damaged(item, "its metadata is not a JSON object")
    return metadata
