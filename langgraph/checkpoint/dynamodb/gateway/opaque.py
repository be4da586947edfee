"""Opaque values: the service stores typed bytes as the client's serializer made them, and never opens them.

The ordinary operations run with this codec: they cut, compress, encrypt and read values as always, and only the
serializer is missing. Metadata is the exception: lists filter by it, so it is read as inert data, as far as it is
small and not encrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import override

from .._format.codec import Codec, rough_bytes
from .._format.inert import LookingSerializer, Stored
from .._format.items import Item
from .._format.plain import as_json
from .._format.wire import digest_of
from .._operations.list import has_values
from .._runtime.storage import Storage
from ..errors import CheckpointerConfigurationError
from .messages import Value
from .problems import ProblemError
from .size_limits import check_json, count_msgpack

if TYPE_CHECKING:
    from ..saver import DynamoDBSaver

# Larger typed metadata is not read: a byte of it can become a list of 56 bytes in memory.
_METADATA_BYTES_MAX = 64 << 10
_LOOKING = LookingSerializer()


class OpaqueValue(NamedTuple):
    """A value as a serializer returned it."""

    type: str
    data: bytes


class OpaqueMetadata(dict[str, Any]):
    """Metadata that JSON could not represent: its typed bytes, and what could be read of it as inert data."""

    def __init__(self, typed: OpaqueValue, readable: Mapping[str, Any] | None) -> None:
        """Take the bytes, and the inert data; `None` if they cannot be read."""
        super().__init__(readable or {})
        self.typed = typed
        self.is_readable = readable is not None


class OpaqueCodec(Codec):
    """A codec that hands typed values through."""

    @override
    def dumps(self, value: Any, name: str, path: str = "value") -> tuple[str, bytes]:
        if isinstance(value, OpaqueValue):
            return value
        # The checkpoint without its values, or metadata: both come as JSON.
        return super().dumps(value, name, path)

    @override
    def loads(self, kind: str, data: bytes, item: Item, *, plain: bool = False) -> Any:
        return super().loads(kind, data, item, plain=True) if plain else OpaqueValue(kind, data)

    @override
    def loads_metadata(self, kind: str, data: bytes, item: Item) -> Any:
        return OpaqueMetadata(OpaqueValue(kind, data), _inert_metadata(kind, data))


def _inert_metadata(kind: str, data: bytes) -> Mapping[str, Any] | None:
    """Return metadata as inert data; `None` if it is not LangGraph's, encrypted, too large or too deep."""
    if len(data) > _METADATA_BYTES_MAX:
        return None
    try:
        if kind == "msgpack":
            count_msgpack(data)
        elif kind == "json":
            check_json(data)
        found = _LOOKING.loads_typed((kind, data))
    except (ProblemError, ValueError, RecursionError):
        return None
    is_object = isinstance(found, dict) and all(isinstance(each, str) for each in found)
    return found if is_object else None


def may_match(metadata: Mapping[str, Any], metadata_filter: Mapping[str, Any]) -> bool:
    """Tell whether metadata has the values of a filter. What only its client can read, its client has to compare."""
    if not isinstance(metadata, OpaqueMetadata):
        return has_values(metadata, metadata_filter)
    # An object may equal anything: the client's serializer makes it.
    compared = {name: each for name, each in metadata_filter.items() if not _has_objects(metadata.get(name))}
    return not metadata.is_readable or has_values(metadata, compared)


def _has_objects(value: Any) -> bool:
    """Tell whether inert data has an object in it."""
    if isinstance(value, (dict, list, tuple)):
        return any(map(_has_objects, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Stored)


def opaque_storage(saver: DynamoDBSaver) -> Storage:
    """Return a saver's storage for opaque values: its cipher stays, and its serializer is not used.

    Clients say who owns a thread, so the saver's own way to find an owner is not used either.

    Raises:
        CheckpointerConfigurationError: The saver has a subclass of `EncryptedSerializer`, whose cipher may not be all.
    """
    serde = inert_serde(saver)
    return replace(saver.storage_with(OpaqueCodec, serde), owner_from=None)


def inert_serde(saver: DynamoDBSaver) -> SerializerProtocol:
    """Return a serializer that makes no object of what it reads, with a saver's cipher.

    Raises:
        CheckpointerConfigurationError: The saver has a subclass of `EncryptedSerializer`, whose cipher may not be all.
    """
    if isinstance(saver.serde, EncryptedSerializer):
        if type(saver.serde) is not EncryptedSerializer:
            raise CheckpointerConfigurationError(
                f"the gateway's saver has a {type(saver.serde).__name__}, and only the cipher of LangGraph's own"
                " EncryptedSerializer can encrypt values that the clients serialize; give it that one"
            )
        return EncryptedSerializer(saver.serde.cipher, _LOOKING)
    return _LOOKING


def values_for(have: Collection[bytes], bytes_max: int) -> Callable[[OpaqueValue], Value]:
    """Return a function that makes the values of one answer.

    Args:
        have: The digests of values that the client has.
        bytes_max: How many bytes of values fit. One value fits in any case.
    """
    size = 0

    def shown(value: OpaqueValue) -> Value:
        nonlocal size
        is_left = bool(size) and size + len(value.data) > bytes_max
        digest = digest_of(value.data) if have or is_left else b""
        if is_left or digest in have:
            return Value(value.type, None, digest)
        size += len(value.data)
        return Value(value.type, value.data)

    return shown


def size_of(found: CheckpointTuple) -> int:
    """Return how many bytes the values, writes and metadata of a checkpoint have, about."""
    metadata: Any = found.metadata
    typed = [metadata.typed] if isinstance(metadata, OpaqueMetadata) else []
    writes = [value for _, _, value in found.pending_writes or ()]
    values = [*found.checkpoint["channel_values"].values(), *writes, *typed]
    return rough_bytes(metadata) + sum(len(each.data) for each in values)


def shown_metadata(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], Value | None]:
    """Return metadata as an answer has them, and their typed bytes if not all of them can be sent as they are."""
    sent = as_json(metadata)
    if isinstance(metadata, OpaqueMetadata):
        return {name: each for name, each in sent.items() if _fits({name: each})}, Value(*metadata.typed)
    return sent, None


def _fits(entry: dict[str, Any]) -> bool:
    """Tell whether UTF-8 can hold an entry: no half a surrogate pair."""
    try:
        to_json(entry)
    except PydanticSerializationError:
        return False
    return True
