"""Opaque values: the service stores typed bytes as the client's serializer made them, and never opens them.

The ordinary operations run with this codec: they cut, compress, encrypt and read values as always, and only the
serializer is missing. Metadata is the exception: lists filter by it, so it is read as inert data, as far as it is
small, JSON can hold it, and it is not encrypted.

A value may come as a delta, its difference to the one of the parent checkpoint. A few bytes can describe gigabytes, so
`check_deltas` bounds what they describe before anything is built.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from typing_extensions import override

from .._format import codec, inert, wire
from .._format.items import Item, Partition
from .._format.segments import StoredValue
from .._operations import get, reads
from .._operations.list import has_values
from .._runtime.steps import Op, work
from .._runtime.storage import CachedCheckpoint, Storage
from ..errors import CheckpointerConfigurationError, CheckpointerInputError
from . import call, problems

if TYPE_CHECKING:
    from ..saver import DynamoDBSaver

# Larger typed metadata is not read: a byte of it can become a list of 56 bytes in memory.
_METADATA_BYTES_MAX = 64 << 10
_LOOKING = inert.LookingSerializer()


class OpaqueValue(NamedTuple):
    """A value as a serializer returned it."""

    type: str
    data: bytes


class OpaqueMetadata(dict[str, Any]):
    """Metadata that a client has serialized: the typed bytes, and the same as data, if JSON can hold them."""

    def __init__(self, typed: OpaqueValue) -> None:
        """Take the bytes."""
        readable = _inert_metadata(*typed)
        super().__init__(readable or {})
        self.typed = typed
        self.is_readable = readable is not None


@dataclass(frozen=True)
class SentValue(call.Argument):
    """A value to store, as LangGraph's serializer returns it.

    With a `base`, the digest of the parent's data in the same channel, `data` is the difference to these: a frame of
    zstd whose prefix they are, and which says its size.
    """

    type: str
    data: call.Bytes
    base: call.Digest | None = None

    @property
    def size_bytes(self) -> int:
        """The size of the whole value. A few bytes can describe gigabytes."""
        return len(self.data) if self.base is None else wire.described_bytes(self.data)


@dataclass(frozen=True)
class Value(call.Response):
    """A value as LangGraph's serializer returned it.

    One without `data` is among those that the client has, or did not fit into the response: the same request brings it,
    with the digests of what came.
    """

    type: str
    data: call.Bytes | None = None
    digest: call.Digest | None = None


class OpaqueCodec(codec.Codec):
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
        return OpaqueMetadata(OpaqueValue(kind, data))


def _inert_metadata(kind: str, data: bytes) -> Mapping[str, Any] | None:
    """Return metadata as JSON data; `None` if it is not LangGraph's, encrypted, too large, or has objects in it."""
    if len(data) > _METADATA_BYTES_MAX:
        return None
    try:
        found = _LOOKING.loads_typed((kind, data))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and codec.metadata_json(found) is not None else None


def may_match(metadata: Mapping[str, Any], metadata_filter: Mapping[str, Any]) -> bool:
    """Tell whether metadata has the values of a filter. What only its client can read, its client has to compare."""
    is_unreadable = isinstance(metadata, OpaqueMetadata) and not metadata.is_readable
    return is_unreadable or has_values(metadata, metadata_filter)


def opaque_storage(saver: DynamoDBSaver) -> Storage:
    """Return a saver's storage for opaque values: its cipher stays, and its serializer is not used.

    Clients say who owns a thread, so the saver's own way to find an owner is not used either.
    """
    serde = inert_serde(saver)
    return replace(saver.storage_with(OpaqueCodec, serde), owner_from=None)


def inert_serde(saver: DynamoDBSaver) -> SerializerProtocol:
    """Return a serializer that makes no object of what it reads, with a saver's cipher."""
    if isinstance(saver.serde, EncryptedSerializer):
        if type(saver.serde) is not EncryptedSerializer:
            raise CheckpointerConfigurationError(
                f"the gateway's saver has a {type(saver.serde).__name__}, and only the cipher of LangGraph's own"
                " EncryptedSerializer can encrypt values that the clients serialize; give it that one"
            )
        return EncryptedSerializer(saver.serde.cipher, _LOOKING)
    return _LOOKING


def values_for(have: Collection[bytes], bytes_max: int) -> Callable[[OpaqueValue], Value]:
    """Return a function that makes the values of one response, of which one fits in any case.

    A value without its data stands for those that the client `have`, and those that do not fit.
    """
    size = 0

    def shown(value: OpaqueValue) -> Value:
        nonlocal size
        is_left = bool(size) and size + len(value.data) > bytes_max
        digest = wire.digest_of(value.data) if have or is_left else b""
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
    return codec.rough_bytes(metadata) + sum(len(each.data) for each in values)


# Deltas


def check_deltas(deltas: Mapping[str, SentValue], bytes_max: int) -> int:
    """Return how many bytes deltas describe."""
    try:
        size = sum(each.size_bytes for each in deltas.values())
    except ValueError as error:
        raise CheckpointerInputError(
            f"a delta cannot be read ({error}); send it as a frame of zstd with its content size"
        ) from None
    if size > bytes_max:
        msg = (
            f"the deltas of values describe {size:,} bytes, and {bytes_max:,} are allowed; keep"
            " less in the state, or raise decompressed_bytes_max in the gateway's limits"
        )
        raise problems.ProblemError(413, msg)
    return size


def rebuilt(
    storage: Storage, partition: Partition, parent_id: str | None, deltas: Mapping[str, SentValue]
) -> Op[Mapping[str, OpaqueValue]]:
    """Return the values that came as deltas, as far as the parent has what they are based on."""
    if not deltas or parent_id is None:
        return {}
    entry = storage.cache.checkpoint(partition.pk, parent_id)
    if entry is None:
        entry = yield from get.read_entry(storage, partition, parent_id)
        if entry is None:
            return {}
        # The put needs it, too.
        storage.cache.remember_checkpoint(partition.pk, parent_id, replace(entry, contents={}))
    size = sum(each.size_bytes for each in deltas.values())
    return (yield from work(partial(_rebuilt, storage, partition, deltas, entry), size))


def _rebuilt(
    storage: Storage, partition: Partition, deltas: Mapping[str, SentValue], entry: CachedCheckpoint
) -> dict[str, OpaqueValue]:
    found: dict[str, OpaqueValue] = {}
    for name, delta in deltas.items():
        stored = entry.values.get(name)
        base = None if stored is None else _base(storage, partition, entry, stored)
        if base is not None and wire.digest_of(base) == delta.base:
            found[name] = OpaqueValue(delta.type, _applied(delta, base, name))
    return found


def _base(
    storage: Storage, partition: Partition, entry: CachedCheckpoint, stored: StoredValue
) -> bytes | None:
    """Return a value of the parent, from what was just read or from cached segments; `None` if some are not cached."""
    contents = entry.contents or reads.open_cached(storage, partition, entry.epoch, stored.segments)
    return stored.join(contents) if contents.keys() >= set(stored.segments) else None


def _applied(delta: SentValue, base: bytes, name: str) -> bytes:
    try:
        return wire.value_of(base, delta.data)
    except ValueError as error:
        raise CheckpointerInputError(
            f"the delta of channel {name!r} is damaged ({error}); send the value whole"
        ) from error
