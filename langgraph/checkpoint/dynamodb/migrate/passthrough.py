"""Values that pass through a saver without being deserialized, so that no class has to be imported.

LangGraph's serializer makes objects of the classes that the stored bytes name. If one cannot be imported, it returns
what the object was made of, which would then be stored in its place. So while threads are moved, savers use this
serializer instead of LangGraph's: it reads plain data, and keeps everything else as the stored bytes. None of the
tenants' code runs.
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
"""The types that LangGraph's serializer returns with serialized values."""
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
class PassedValue:
    """A whole value that is not deserialized at all."""

    kind: str
    data: bytes


class PassthroughSerializer(SerializerProtocol):
    """Reads and writes the formats of LangGraph's serializer without making objects."""

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
