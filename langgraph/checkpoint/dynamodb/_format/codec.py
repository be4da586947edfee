"""Values to bytes and back: the serializer, compression, encryption and checksums of one sealed unit.

A sealed unit is `version, compression, length of the cipher's name, cipher's name, checksum, payload`. Bytes are
compressed, then encrypted. The checksum covers the stored payload and the sort key of its item, so damaged or exchanged
data is found before anything is decrypted or parsed.

Anybody can compute a checksum. So encrypted content is also bound to its place: a digest of the place precedes it, and
is encrypted with it. A cipher that authenticates thus keeps out data that somebody without the key has put there.
"""

import copy
import dataclasses
import json
import math
import secrets
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, TypeAlias

from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import Self

from ..errors import CheckpointCorruptionError, CheckpointerConfigurationError, CheckpointSerializationError
from . import items, limits
from .compression import compress, decompress
from .items import Item

_ENVELOPE = struct.Struct(">BBB")
_NAME_BYTES_MAX = 255
# The versions of a unit: not encrypted; and encrypted, with a digest of its place in front of the content.
_UNBOUND, _BOUND = 1, 2
_BINDING_BYTES = 16
# A checkpoint without its values is plain data, so LangGraph's serializer need not make any type for it.
_STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
# How many elements from each end of a container are sampled for an estimate.
_SAMPLE = 3

Ids: TypeAlias = tuple[Sequence[bytes], Sequence[bytes]]
"""The ids of the segments that hold an attribute's own content, and of those that the content refers to."""


class UnreadableError(CheckpointerConfigurationError):
    """An item is intact, but this saver cannot open it: it has another key, another serializer or a smaller bound."""


class Codec:
    """Encodes and decodes with one serializer. Each call makes a new one, so a changed serializer takes effect."""

    def __init__(
        self,
        serde: SerializerProtocol,
        *,
        bound_to: str = "",
        allow_unencrypted: bool = False,
        bytes_max: int = limits.CHECKPOINT_BYTES_MAX,
    ) -> None:
        """Take the serializer. An `EncryptedSerializer` of LangGraph, not of a subclass, is split into its two parts.

        Args:
            serde: The serializer.
            bound_to: The table that encrypted units are bound to.
            allow_unencrypted: Whether a codec with a cipher opens units that are not encrypted.
            bytes_max: The maximum size of a checkpoint's values together, or of its writes, serialized.
        """
        self._serde = serde
        self._bound_to = bound_to
        self._allow_unencrypted = allow_unencrypted
        self.bytes_max = bytes_max
        self._cipher: CipherProtocol | None = None
        self._overhead_bytes: int | None = None
        if type(serde) is EncryptedSerializer:
            self._serde, self._cipher = serde.serde, serde.cipher
        self.loads_typed = self._serde.loads_typed
        # A subclass of LangGraph's encrypts too, in its own way.
        self.encrypts = isinstance(serde, EncryptedSerializer)
        self._on_open: Callable[[int], None] | None = None

    def counting(self, on_open: Callable[[int], None]) -> Self:
        """Return this codec, which tells `on_open` how many bytes are opened, and joined. `on_open` may raise."""
        counting = copy.copy(self)
        counting._on_open = on_open  # noqa: SLF001 - of the same class.
        return counting

    def dumps(self, value: Any, name: str, path: str = "value") -> tuple[str, bytes]:
        """Serialize a value; raise `CheckpointSerializationError`, which names it, if that fails.

        `path` is how the path of a part that cannot be serialized begins.
        """
        try:
            kind, data = self._serde.dumps_typed(value)
        except Exception as error:
            where, part = unserializable_part(value, path, self._serde.dumps_typed)
            raise CheckpointSerializationError(
                f"{name} cannot be serialized: {where} is a {type(part).__module__}.{type(part).__qualname__}"
                f" ({error}); it was not stored. Keep such objects out of the state, or give the saver a serde that can"
                " write them"
            ) from error
        return kind, bytes(data)

    def loads(self, kind: str, data: bytes, item: Item, *, plain: bool = False) -> Any:
        """Deserialize a value of an item. With `plain`, LangGraph's serializer makes plain data only."""
        is_plain = plain and type(self._serde) is JsonPlusSerializer
        try:
            return (_STRICT.loads_typed if is_plain else self.loads_typed)((kind, data))
        except Exception as error:
            raise UnreadableError(
                f"{items.name_of(item)} is intact, but the saver's serde cannot read its {kind!r} data ({error});"
                " give the saver the serde that the thread was written with"
            ) from error

    def loads_metadata(self, kind: str, data: bytes, item: Item) -> Any:
        """Deserialize metadata that JSON could not represent."""
        return self.loads(kind, data, item)

    def check_size(self, size_bytes: int, item: Item) -> None:
        """Raise if data is larger than a checkpoint may be, before it is stored or read into memory."""
        if size_bytes > self.bytes_max:
            raise UnreadableError(
                f"{items.name_of(item)} needs over {self.bytes_max} bytes of memory, serialized, more than a checkpoint"
                " may. If it is really that large, give the saver a larger checkpoint_bytes_max, or keep less in the"
                " state. Otherwise it is damaged: restore it from a backup or point-in-time recovery"
            )

    def check_joined(self, size_bytes: int, item: Item) -> None:
        """Raise if segments that are about to be joined are too large together. One may be named many times."""
        self.check_size(size_bytes, item)
        if self._on_open is not None:
            self._on_open(size_bytes)

    def seal(
        self, raw: bytes, item: Item, name: str, ids: Ids = ((), ()), *, beside: int | None = None
    ) -> bytes:
        """Compress content if that helps, encrypt it if there is a cipher, and add a checksum for the item.

        Args:
            raw: The content.
            item: The item's key.
            name: The name of the attribute.
            ids: The segments that the attribute names, index segments expanded. Encrypted content is bound to them.
            beside: How many bytes the item has beside the sealed ones, if that is known: padding then costs no unit.
        """
        compression, payload = compress(raw)
        if self._cipher is None:
            return _envelope(_UNBOUND, compression, b"", payload, items.sort_key(item))
        padded = payload + self._padding(len(payload), beside)
        cipher_name, payload = _encrypted(self._cipher, self._binding(compression, item, name, ids) + padded)
        return _envelope(_BOUND, compression, cipher_name, payload, items.sort_key(item))

    def sealed_bytes(self, raw: bytes) -> int:
        """Return how many bytes content has at most, sealed, but for the padding to a whole step."""
        size = len(compress(raw)[1])
        if self._cipher is None:
            return _ENVELOPE.size + items.CHECKSUM_BYTES + size
        return self._overhead(self._cipher) + size + limits.PADDING_RANGE_BYTES

    def _padding(self, size_bytes: int, beside: int | None) -> bytes:
        """Return what follows content before it is encrypted: a one, and zeros up to a step.

        The length of content depends on how it compresses: somebody whose text is compressed with a secret, and who
        sees lengths, could guess the secret piece by piece. Whoever finds where a step ends sees single bytes again, so
        a random part comes first.
        """
        cipher = self._cipher
        start = 1 + secrets.randbelow(limits.PADDING_RANGE_BYTES)
        if cipher is None or beside is None:
            return b"\1" + bytes(start - 1 + -(size_bytes + start) % limits.PADDING_RANGE_BYTES)
        size_bytes += beside + self._overhead(cipher)
        return b"\1" + bytes(start - 1 + -(size_bytes + start) % limits.PADDING_STEP_BYTES)

    def _overhead(self, cipher: CipherProtocol) -> int:
        """Return how many bytes sealing adds to compressed content, without padding."""
        if self._overhead_bytes is None:
            cipher_name, empty = _encrypted(cipher, bytes(_BINDING_BYTES))
            self._overhead_bytes = _ENVELOPE.size + len(cipher_name) + items.CHECKSUM_BYTES + len(empty)
        return self._overhead_bytes

    def open(self, sealed: bytes, item: Item, name: str, ids: Ids = ((), ())) -> bytes:
        """Verify and open the sealed bytes of an item's attribute: the reverse of `seal`."""
        header, payload = _verified(sealed, item)
        version, compression, _ = _ENVELOPE.unpack_from(header)
        if version == _UNBOUND:
            self._check_allowed(item)
        else:
            cipher_name = header[_ENVELOPE.size :].decode(errors="backslashreplace")
            payload = self._decrypt(cipher_name, payload, item)
            binding, payload = payload[:_BINDING_BYTES], payload[_BINDING_BYTES:]
            payload = payload.rstrip(b"\0")[:-1]
            if not compare_digest(binding, self._binding(compression, item, name, ids)):
                raise self._elsewhere(item, name)
        raw = _decompress(compression, payload, item)
        if self._on_open is not None:
            self._on_open(len(raw))
        return raw

    def seal_between(
        self, between: bytes, item: Item, name: str, ids: Ids, *, beside: int | None = None
    ) -> bytes:
        """Seal what lies between the segments of an attribute's content. A cipher authenticates their ids."""
        return (
            self.seal(between, item, name, ids, beside=beside) if between or self._cipher is not None else b""
        )

    def open_between(self, sealed: bytes, item: Item, name: str, ids: Ids) -> bytes:
        """Open the bytes of `seal_between`; raise if the ids are not of the segments that the content is in."""
        if sealed:
            return self.open(sealed, item, name, ids)
        self._check_allowed(item)
        return b""

    def _binding(self, compression: int, item: Item, name: str, ids: Ids) -> bytes:
        """Return the digest of a place, and of how to read the content there."""
        place = (self._bound_to, items.partition_key(item), items.sort_key(item), name)
        parts = [bytes([_BOUND, compression]), *(each.encode() for each in place), *map(b"".join, ids)]
        binding = blake2b(digest_size=_BINDING_BYTES)
        for part in parts:
            binding.update(len(part).to_bytes(8, "big") + part)
        return binding.digest()

    def _check_allowed(self, item: Item) -> None:
        """Raise if the saver has a cipher and must not open data that anybody may have written."""
        if self._cipher is None or self._allow_unencrypted:
            return
        raise UnreadableError(
            f"{items.name_of(item)} is not encrypted, or not for its place, but the saver has a cipher: somebody"
            " without the key may have written it. If the thread was stored before there was a cipher, move it with"
            " a saver that has allow_unencrypted=True (`langgraph-dynamodb docs encrypt`); otherwise restore the item"
            " from a backup"
        )

    def _elsewhere(self, item: Item, name: str) -> CheckpointCorruptionError:
        return CheckpointCorruptionError(
            f"{items.name_of(item)} has in {name} data that was encrypted for another place, or names other"
            " segments than when it"
            " was stored; restore it from a backup or point-in-time recovery. If the whole table was restored or copied"
            f" from a table with another name than {self._bound_to!r}, pass that name as bound_to"
        )

    def _decrypt(self, cipher_name: str, payload: bytes, item: Item) -> bytes:
        if self._cipher is None:
            raise UnreadableError(
                f"{items.name_of(item)} is encrypted with {cipher_name!r}, and the saver has no cipher; give it the"
                " EncryptedSerializer that the thread was written with"
            )
        try:
            return self._cipher.decrypt(cipher_name, payload)
        except Exception as error:
            raise UnreadableError(
                f"{items.name_of(item)} is intact but cannot be decrypted with the saver's key ({error}); give the"
                " saver the key that the thread was written with"
            ) from error


def _encrypted(cipher: CipherProtocol, raw: bytes) -> tuple[bytes, bytes]:
    """Encrypt; return the cipher's name, which a unit has to have, and what was encrypted."""
    name, encrypted = cipher.encrypt(raw)
    try:
        name_bytes = name.encode()
    except UnicodeEncodeError:
        name_bytes = b""
    if not 0 < len(name_bytes) <= _NAME_BYTES_MAX:
        raise CheckpointerConfigurationError(
            f"the cipher of serde calls itself {name!r}, which cannot be stored beside what it encrypts; let its"
            f" encrypt return a name of 1 to {_NAME_BYTES_MAX} bytes"
        )
    return name_bytes, encrypted


def seal_plain(raw: bytes, sk: str) -> bytes:
    """Seal bytes that have to be readable without a key."""
    compression, payload = compress(raw)
    return _envelope(_UNBOUND, compression, b"", payload, sk)


def open_plain(sealed: bytes, item: Item) -> bytes:
    """Verify and open bytes of `seal_plain`, without a key."""
    header, payload = _verified(sealed, item)
    _, compression, name_bytes = _ENVELOPE.unpack_from(header)
    if name_bytes:
        raise items.damaged(item, "it is encrypted, and such items never are")
    return _decompress(compression, payload, item)


def _envelope(version: int, compression: int, cipher_name: bytes, payload: bytes, sk: str) -> bytes:
    header = _ENVELOPE.pack(version, compression, len(cipher_name)) + cipher_name
    return header + items.checksum(sk, header + payload) + payload


def _verified(sealed: bytes, item: Item) -> tuple[bytes, bytes]:
    """Verify sealed bytes of an item, and return their header and payload."""
    if len(sealed) < _ENVELOPE.size:
        raise items.damaged(item, "its data is cut short")
    version, _, name_bytes = _ENVELOPE.unpack_from(sealed)
    if version > _BOUND:
        raise items.newer_format(item, version, _BOUND)
    if version < _UNBOUND or (version == _BOUND) != bool(name_bytes):
        raise items.damaged(item, "its data is sealed in a way that no release knows")
    end = _ENVELOPE.size + name_bytes
    header, payload = sealed[:end], sealed[end + items.CHECKSUM_BYTES :]
    if sealed[end : end + items.CHECKSUM_BYTES] != items.checksum(items.sort_key(item), header + payload):
        raise items.damaged(item, "its checksum does not match")
    return header, payload


def _decompress(compression: int, payload: bytes, item: Item) -> bytes:
    bytes_max = (
        limits.SEGMENT_BYTES_MAX if items.sort_key(item).startswith(items.SEGMENTS) else limits.RAW_BYTES_MAX
    )
    try:
        return decompress(compression, payload, bytes_max)
    except ValueError as error:
        raise items.damaged(item, str(error)) from error


def rough_bytes(value: Any, depth: int = 3) -> int:
    """Estimate the serialized size of a value from a few of its parts, to decide where to serialize it."""
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


# A parser of JSON need not take more.
_LEVELS_MAX = 100


def metadata_json(metadata: Any) -> str | None:
    """Return metadata as readable JSON, or `None` if JSON cannot represent it exactly, or it is nested very deeply.

    Tuples are treated as lists, as in LangGraph's own serializer.
    """
    if not _is_json(metadata, _LEVELS_MAX):
        return None
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))


def _is_json(value: Any, levels: int) -> bool:
    kind = type(value)
    if kind is dict:
        return levels > 0 and all(
            type(name) is str and _is_json(name, 0) and _is_json(each, levels - 1)
            for name, each in value.items()
        )
    if kind in (list, tuple):
        return levels > 0 and all(_is_json(each, levels - 1) for each in value)
    if kind is str:
        return (
            not any("\ud800" <= character <= "\udfff" for character in value) if not value.isascii() else True
        )
    return kind in (int, bool, type(None)) or (kind is float and math.isfinite(value))


def finite(text: str) -> float:
    """Read a number of JSON text with a fraction or an exponent, for `json.loads`.

    Raises:
        ValueError: It is too large, and would silently become infinite.
    """
    value = float(text)
    if math.isinf(value):
        msg = f"the number {text[:20]} is too large"
        raise ValueError(msg)
    return value


def parse_metadata(item: Item, data: str) -> Any:
    """Read metadata that was stored as JSON."""
    try:
        metadata = json.loads(data, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise items.damaged(item, f"its metadata is not JSON ({error})") from error
    if not isinstance(metadata, dict):
        raise items.damaged(item, "its metadata is not a JSON object")
    return metadata


# Which part of a value a serializer cannot write: a path to it, for the error


# A value that contains itself has no last part.
_DEPTH_MAX = 50
# Keys may be of any size.
_PATH_CHARACTERS_MAX = 300


def unserializable_part(value: Any, name: str, dumps: Callable[[Any], object]) -> tuple[str, Any]:
    """Return the path of the innermost part that cannot be serialized, and the part.

    Args:
        value: The value, which `dumps` has refused.
        name: The name of the value, with which the path begins.
        dumps: Serializes a value, or raises.
    """
    path = name
    for _ in range(_DEPTH_MAX):
        found = next((each for each in _parts(value) if _fails(dumps, each[1])), None)
        if found is None:
            break
        step, value = found
        path += step
    return path if len(path) <= _PATH_CHARACTERS_MAX else f"{path[:_PATH_CHARACTERS_MAX]}...", value


def _fails(dumps: Callable[[Any], object], value: Any) -> bool:
    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - it is what is looked for, of any kind.
        return True
    return False


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the parts of a value, each with its step in a path; none if it cannot be taken apart."""
    try:
        if isinstance(value, Mapping):
            return iter([(f"[{key!r}]", each) for key, each in value.items()])
        if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
            return iter([(f"[{position}]", each) for position, each in enumerate(value)])
        if isinstance(value, (set, frozenset)):
            # An element of a set has no place.
            return iter([("{...}", each) for each in value])
        return iter([(f".{name}", each) for name, each in _fields(value).items()])
    except Exception:  # noqa: BLE001 - the value's own code; the error is told without a longer path.
        return iter(())


def _fields(value: Any) -> Mapping[str, Any]:
    """Return the fields of an object as LangGraph's serializer stores them."""
    if isinstance(value, type):
        return {}
    # Pydantic's second and first version, and named tuples.
    for method in ("model_dump", "dict", "_asdict"):
        if callable(getattr(value, method, None)):
            fields = getattr(value, method)()
            return fields if isinstance(fields, Mapping) else {}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {}
