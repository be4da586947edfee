"""Savers as endpoints of a migration, their checkpoints as records, and values that pass through them unread.

`SaverEndpoint` needs only LangGraph's interface. The endpoints of known savers read ids and positions of
writes directly from their tables, which is cheaper and exact.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from .._operations.entries import ThreadDescription
from ..base_saver import TableSaver
from .record import Record, Ref, WritePosition, calls_of, guessed_positions, record_of

_PLAIN_KINDS = ("null", "bytes", "bytearray")
KINDS = (*_PLAIN_KINDS, "msgpack", "json", "pickle")
"""The types that LangGraph's serializer returns with serialized values."""
_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)
# How often a checkpoint is read again because its writes seem to be arriving.
_ATTEMPTS_MAX = 3


@dataclass(frozen=True)
class KeptObject:
    """An object within a value, as the bytes that it is made of."""

    code: int
    data: bytes


@dataclass(frozen=True)
class PassedValue:
    """A whole value that is not deserialized at all."""

    kind: str
    data: bytes


class PassthroughSerializer(SerializerProtocol):
    """Reads and writes the formats of LangGraph's serializer without making objects.

    LangGraph's serializer makes objects of the classes that the stored bytes name. If one cannot be imported, it
    returns what the object was made of, which would then be stored in its place. So while threads are moved, savers use
    this serializer instead: it reads plain data, and keeps everything else as the stored bytes. None of the tenants'
    code runs.
    """

    def __init__(self, serde: JsonPlusSerializer) -> None:
        """Store the serializer that it replaces, which serializes objects that a saver made itself."""
        self._serde = serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value as LangGraph's serializer would have."""
        if isinstance(obj, PassedValue):
            return obj.kind, obj.data
        if obj is None or isinstance(obj, (bytes, bytearray)):
            return self._serde.dumps_typed(obj)
        try:
            return "msgpack", self._pack(obj)
        except ormsgpack.MsgpackEncodeError:
            # An object that was read from a pickle, and becomes one again, or one that LangGraph cannot serialize
            # either.
            return self._serde.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value, but not the objects in it."""
        kind, content = data
        if kind in _PLAIN_KINDS or (kind == "pickle" and self._serde.pickle_fallback):
            return self._serde.loads_typed(data)
        if kind == "msgpack":
            return _unpack(content)
        return _kept_json(content) if kind == "json" else PassedValue(kind, content)

    def _pack(self, obj: Any) -> bytes:
        return ormsgpack.packb(obj, default=self._default, option=_OPTIONS)

    def _default(self, obj: Any) -> Any:
        if isinstance(obj, KeptObject):
            return ormsgpack.Ext(obj.code, obj.data)
        if isinstance(obj, _DeltaSnapshot):
            return ormsgpack.Ext(EXT_DELTA_SNAPSHOT, self._pack(obj.value))
        kind, data = self._serde.dumps_typed(obj)
        if kind != "msgpack":
            raise TypeError
        # LangGraph's serializer turns any such object into one extension.
        return ormsgpack.unpackb(data, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)


def _unpack(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_keep, option=ormsgpack.OPT_NON_STR_KEYS)


def _keep(code: int, data: bytes) -> Any:
    # Savers treat the snapshots of delta channels in their own ways.
    return _DeltaSnapshot(_unpack(data)) if code == EXT_DELTA_SNAPSHOT else KeptObject(code, data)


def _kept_json(data: bytes) -> Any:
    """Keep a value of LangGraph's first format as it is; of a whole checkpoint, each channel's value."""
    value = json.loads(data)
    if not isinstance(value, Mapping) or "channel_values" not in value:
        return PassedValue("json", data)
    values = {
        name: PassedValue("json", json.dumps(each).encode()) for name, each in value["channel_values"].items()
    }
    return {**value, "channel_values": values}


def can_pass_through(serde: SerializerProtocol) -> bool:
    """Tell whether a serializer is LangGraph's own, encrypted or not. How others work is not known."""
    inner = serde.serde if type(serde) is EncryptedSerializer else serde
    return type(inner) in (JsonPlusSerializer, PassthroughSerializer)


def passthrough(serde: SerializerProtocol) -> SerializerProtocol:
    """Return the serializer to move values with, instead of one that `can_pass_through`."""
    if type(serde) is EncryptedSerializer:
        return EncryptedSerializer(serde.cipher, passthrough(serde.serde))
    return PassthroughSerializer(serde) if isinstance(serde, JsonPlusSerializer) else serde


def unencrypted(serde: SerializerProtocol) -> SerializerProtocol:
    """Return the serializer without its cipher."""
    return serde.serde if type(serde) is EncryptedSerializer else serde


class SaverEndpoint:
    """Any saver, by LangGraph's interface alone."""

    knows_positions = False
    """Whether the positions of writes are read from the tables, and not guessed."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        """Store a saver whose blocking methods can be called."""
        self.saver = saver
        # The saver that reads and writes. LangGraph itself copies a saver to give it another serializer.
        self.mover = saver

    # Values

    def can_pass_through(self) -> bool:
        """Tell whether values can be moved without making the objects in them."""
        return can_pass_through(self.saver.serde)

    def keep_values(self) -> None:
        """Return and accept values with the objects in them as they are stored, from now on."""
        self.mover = copy.copy(self.saver)
        self.mover.serde = passthrough(self.saver.serde)

    def dumps(self, value: Any) -> tuple[str, bytes]:
        """Serialize a value as the saver does, but without encryption."""
        return unencrypted(self.mover.serde).dumps_typed(value)

    def same(self, one: Any, other: Any) -> bool:
        """Tell whether two values are equal: as bytes or, if objects are made, as objects."""
        if self.dumps(one) == self.dumps(other):
            return True
        # Equal objects may be serialized differently, as by pickle. Values that are kept as they are may not.
        return self.mover is self.saver and is_equal(one, other)

    def loads(self, value: tuple[str, bytes]) -> Any:
        """Deserialize a value."""
        return unencrypted(self.mover.serde).loads_typed(value)

    # Reading

    def thread_ids(self) -> Iterator[str]:
        """Yield the ids of all threads, each once."""
        return each_once(str(found.config["configurable"]["thread_id"]) for found in self.mover.list(None))

    def refs(self, thread_id: str) -> list[Ref]:
        """Return a thread's checkpoints in all namespaces, oldest first."""
        return sorted(
            Ref(each["checkpoint_id"], each.get("checkpoint_ns", ""))
            for each in (found.config["configurable"] for found in self.mover.list(_config(thread_id)))
        )

    def records(self, thread_id: str, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Read checkpoints of a thread one after the other. Yield None for one that is no longer there."""
        for ref in refs:
            yield self._record(thread_id, ref)

    def _record(self, thread_id: str, ref: Ref, attempts_left: int = _ATTEMPTS_MAX) -> Record | None:
        found = self.mover.get_tuple(_config(thread_id, ref.namespace, ref.checkpoint_id))
        if found is None:
            return None
        writes = found.pending_writes or []
        positions = self._positions(thread_id, ref, writes)
        if positions is not None:
            return record_of(found, positions)
        if attempts_left > 1:
            return self._record(thread_id, ref, attempts_left - 1)
        # The saver leaves out some writes, as langgraph-checkpoint-aws's does with those whose content is lost.
        return record_of(found, guessed_positions(writes))

    def _positions(
        self, thread_id: str, ref: Ref, writes: Sequence[PendingWrite]
    ) -> list[WritePosition] | None:
        """Return the positions of a checkpoint's pending writes, in order. None if the saver did not return all."""
        stored = self.stored_positions(thread_id, ref) if writes else []
        if stored is None:
            return guessed_positions(writes)
        # In any saver a task's writes are in their own order, whatever the order of the tasks.
        own = {
            task_id: iter([each for each in stored if each[0].task_id == task_id]) for task_id, *_ in writes
        }
        pairs = [next(own[task_id], None) for task_id, *_ in writes]
        found_pairs = [each for each in pairs if each is not None]
        if len(stored) != len(writes) or [channel for _, channel in found_pairs] != [
            each[1] for each in writes
        ]:
            return None
        return [position for position, _ in found_pairs]

    def stored_positions(self, thread_id: str, ref: Ref) -> Sequence[tuple[WritePosition, str]] | None:
        """Return the positions and channels of a checkpoint's writes, in the order of its pending writes, or None."""
        del thread_id, ref
        return None

    # Writing

    def clear(self, thread_id: str) -> None:
        """Remove what is stored of a thread that has no checkpoint for readers. Most savers store nothing then."""

    def put(self, thread_id: str, record: Record) -> None:
        """Store a checkpoint, and then its writes."""
        parent = _config(thread_id, record.namespace, record.parent_id)
        # Every value is passed as new, so that none depends on what the parent has.
        self.mover.put(parent, record.checkpoint, record.metadata, record.checkpoint["channel_versions"])
        self.put_writes(thread_id, record)

    def put_writes(self, thread_id: str, record: Record) -> None:
        """Store the writes of a checkpoint that is already stored."""
        config = _config(thread_id, record.namespace, record.checkpoint["id"])
        for task_id, task_path, writes in calls_of(record.writes):
            self.mover.put_writes(config, writes, task_id, task_path)

    # The directory

    @property
    def has_directory(self) -> bool:
        """Whether the saver lists threads by their owners."""
        return isinstance(self.saver, TableSaver)

    @property
    def owner_from(self) -> str | None:
        """The key of metadata under which the saver looks for a thread's owner."""
        key: str | None = getattr(self.saver, "owner_from", None)
        return key

    def description(self, thread_id: str) -> ThreadDescription | None:
        """Return the owner, title and metadata of a thread; `None` if the saver cannot tell."""
        del thread_id
        return None

    def describe(self, thread_id: str, about: ThreadDescription) -> None:
        """Set the owner, title and metadata of a thread, which need not have a checkpoint yet.

        The saver has to have a directory.
        """
        saver = cast("TableSaver", self.saver)
        saver.set_thread(thread_id, owner=about.owner, title=about.title, metadata=about.metadata)

    # Versions

    def next_version(self, version: Any) -> Any:
        """Return the version that the saver would give a channel next, of whatever type."""
        return self.saver.get_next_version(version, None)

    def close(self) -> None:
        """Close connections."""


def each_once(thread_ids: Iterable[str]) -> Iterator[str]:
    """Yield ids as they arrive, each once."""
    seen = set[str]()
    for thread_id in thread_ids:
        if thread_id not in seen:
            seen.add(thread_id)
            yield thread_id


def is_equal(one: Any, other: Any) -> bool:
    """Tell whether two objects say that they are equal. Some, such as arrays, have no single answer."""
    try:
        return bool(one == other)
    except ValueError:
        return False


def _config(thread_id: str, namespace: str | None = None, checkpoint_id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread_id}
    if namespace is not None:
        configurable["checkpoint_ns"] = namespace
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}
