"""Stored values as data: nothing of what a value names is imported, made or run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_NUMPY_ARRAY,
    JsonPlusSerializer,
)

_MESSAGES = ("langchain_core.messages.",)
# What these classes are made from says all about them.
_PLAIN = re.compile(r"(uuid|datetime|decimal|pathlib|ipaddress|zoneinfo|collections|builtins)\.")


@dataclass(frozen=True)
class Stored:
    """A value of a class, as it was stored: the class's name and what it would be made from."""

    kind: str
    content: Any

    @property
    def is_message(self) -> bool:
        """Whether it is one of LangChain's messages."""
        return self.kind.startswith(_MESSAGES) and isinstance(self.content, dict)

    @property
    def is_plain(self) -> bool:
        """Whether its content says all about it, so that the class need not be named."""
        return _PLAIN.match(self.kind) is not None


class Remembered(Protocol):
    """Where objects are kept by the bytes that they were read from."""

    def get(self, key: tuple[int, bytes], /) -> Any:
        """One that is kept; None where it is not."""

    def keep(self, key: tuple[int, bytes], value: Any, size_bytes: int, /) -> None:
        """Keep one that was read from so many bytes."""


class LookingSerializer(JsonPlusSerializer):
    """Reads what LangGraph's serializer wrote, and gives `Stored` in the place of every object."""

    def __init__(self, remembered: Remembered | None = None) -> None:
        """Take every object as data; those that are remembered are read once, and must not be changed."""
        super().__init__(__unpack_ext_hook__=_Unpack(remembered))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value; what is no msgpack, such as a pickle, is given as its bytes."""
        kind, content = data
        if kind == "json":
            return json.loads(content)
        if kind in ("null", "bytes", "bytearray", "msgpack"):
            return super().loads_typed(data)
        return Stored(kind, content)


def looking(serde: SerializerProtocol, remembered: Remembered | None = None) -> SerializerProtocol:
    """The serializer to look with in the place of one to run with; one of somebody's own stays what it is."""
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, looking(serde.serde, remembered))
    return LookingSerializer(remembered) if isinstance(serde, JsonPlusSerializer) else serde


@dataclass(frozen=True)
class _Unpack:
    """Reads objects as data."""

    remembered: Remembered | None

    def __call__(self, code: int, data: bytes) -> Any:
        """Read one, or take it from those that were read."""
        if self.remembered is None:
            return _unpack(code, data, self)
        found = self.remembered.get((code, data))
        if found is None:
            found = _unpack(code, data, self)
            self.remembered.keep((code, data), found, len(data))
        return found


def _unpack(code: int, data: bytes, inner: Callable[[int, bytes], Any]) -> Any:
    try:
        content = ormsgpack.unpackb(data, ext_hook=inner, option=ormsgpack.OPT_NON_STR_KEYS)
    except ormsgpack.MsgpackDecodeError:
        return Stored(f"extension {code}", data)
    if code == EXT_DELTA_SNAPSHOT:
        return content
    match content:
        case [dtype, shape, *_] if code == EXT_NUMPY_ARRAY:
            return Stored("numpy.ndarray", {"dtype": dtype, "shape": shape})
        case ["builtins", ("set" | "frozenset") as name, [*parts], *_]:
            # A set has another order in each process, and is the same.
            return Stored(f"builtins.{name}", sorted(parts, key=_packed))
        case [str(module), str(name), made_of, *_]:
            return Stored(f"{module}.{name}", made_of)
    # An extension of somebody's own.
    return Stored(f"extension {code}", content)


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)
