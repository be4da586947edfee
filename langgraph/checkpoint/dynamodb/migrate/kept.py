"""Values that pass through a saver without being made: what a process that moves them cannot import stays as it is.

LangGraph's serializer makes objects of the classes that the stored bytes name. Where one cannot be imported it gives
what the object was made of, which would be stored in its place. So while threads are moved, savers have this serializer
in the place of LangGraph's: it reads plain data, and keeps everything else as the bytes that it was stored as. None of
the tenants' code runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

_PLAIN_KINDS = ("null", "bytes", "bytearray")
KINDS = (*_PLAIN_KINDS, "msgpack", "json", "pickle")
"""The types that LangGraph's serializer gives what it has written."""
_OPTIONS = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)


@dataclass(frozen=True)
class KeptObject:
    """An object within a value, as the bytes that it is made of."""

    code: int
    data: bytes


@dataclass(frozen=True)
class KeptValue:
    """A whole value that is not read at all."""

    kind: str
    data: bytes


class KeepingSerializer(SerializerProtocol):
    """Reads and writes what LangGraph's serializer does, and makes no objects."""

    def __init__(self, serde: JsonPlusSerializer) -> None:
        """Take the serializer that it stands for, for objects that a saver has made by itself."""
        self._serde = serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value as LangGraph's serializer would have."""
        if isinstance(obj, KeptValue):
            return obj.kind, obj.data
        if obj is None or isinstance(obj, (bytes, bytearray)):
            return self._serde.dumps_typed(obj)
        try:
            return "msgpack", self._pack(obj)
        except ormsgpack.MsgpackEncodeError:
            # An object that a pickle was read as, which becomes one again, or none of LangGraph's business.
            return self._serde.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value, but for the objects in it."""
        kind, content = data
        if kind in _PLAIN_KINDS or (kind == "pickle" and self._serde.pickle_fallback):
            return self._serde.loads_typed(data)
        if kind == "msgpack":
            return _unpack(content)
        return _kept_json(content) if kind == "json" else KeptValue(kind, content)

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
        # Whatever it is, LangGraph's serializer makes one piece of it.
        return ormsgpack.unpackb(data, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)


def _unpack(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_keep, option=ormsgpack.OPT_NON_STR_KEYS)


def _keep(code: int, data: bytes) -> Any:
    # Savers treat the snapshots of delta channels in ways of their own.
    return _DeltaSnapshot(_unpack(data)) if code == EXT_DELTA_SNAPSHOT else KeptObject(code, data)


def _kept_json(data: bytes) -> Any:
    """A value of LangGraph's first format, as it is; of a whole checkpoint, each of its channels' values."""
    value = json.loads(data)
    if not isinstance(value, Mapping) or "channel_values" not in value:
        return KeptValue("json", data)
    values = {
        name: KeptValue("json", json.dumps(each).encode()) for name, each in value["channel_values"].items()
    }
    return {**value, "channel_values": values}


def can_keep(serde: SerializerProtocol) -> bool:
    """Whether a serializer is LangGraph's own, encrypted or not; what others do nobody knows."""
    inner = serde.serde if type(serde) is EncryptedSerializer else serde
    return type(inner) in (JsonPlusSerializer, KeepingSerializer)


def keeping(serde: SerializerProtocol) -> SerializerProtocol:
    """The serializer to move values with in the place of one that `can_keep`."""
    if type(serde) is EncryptedSerializer:
        return EncryptedSerializer(serde.cipher, keeping(serde.serde))
    return KeepingSerializer(serde) if isinstance(serde, JsonPlusSerializer) else serde


def unencrypted(serde: SerializerProtocol) -> SerializerProtocol:
    """The serializer without its cipher."""
    return serde.serde if type(serde) is EncryptedSerializer else serde
