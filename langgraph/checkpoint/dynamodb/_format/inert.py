"""Deserializing values as inert data: no class or function that a value names is imported, made or run."""

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import ormsgpack
from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY, JsonPlusSerializer
from langgraph.checkpoint.serde.types import INTERRUPT

# The second one is how Python names messages in JSON.
_MESSAGES = ("langchain_core.messages.", "langchain.schema.messages.")
# For classes of these modules, the arguments that they are made from say everything.
_PLAIN = re.compile(r"(uuid|datetime|decimal|pathlib|ipaddress|zoneinfo|collections|builtins)\.")


@dataclass(frozen=True)
class Stored:
    """An object as it was stored: the name of its class, and the content that it would be made from."""

    kind: str
    content: Any

    @property
    def is_message(self) -> bool:
        """Whether it is one of LangChain's messages."""
        return self.kind.startswith(_MESSAGES) and isinstance(self.content, dict)

    @property
    def is_plain(self) -> bool:
        """Whether its content says everything about it, so that the class need not be shown."""
        return _PLAIN.match(self.kind) is not None


class Remembered(Protocol):
    """A cache of objects, by the bytes that they were read from."""

    def get(self, key: tuple[int, bytes], /) -> Any:
        """Return an object, or `None` if it is not cached."""

    def keep(self, key: tuple[int, bytes], value: Any, size_bytes: int, /) -> None:
        """Cache an object that was read from `size_bytes` bytes."""


class LookingSerializer(JsonPlusSerializer):
    """An inert serializer: it reads data of LangGraph's serializer, and returns `Stored` instead of every object."""

    def __init__(self, remembered: Remembered | None = None) -> None:
        """Take a cache of objects. Cached objects are read once, and must not be changed."""
        super().__init__(__unpack_ext_hook__=_Unpack(remembered))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a value. Data in other formats than msgpack, such as a pickle, is returned as its bytes."""
        kind, content = data
        if kind == "json":
            return json.loads(content, object_hook=_constructed)
        if kind in ("null", "bytes", "bytearray", "msgpack"):
            return super().loads_typed(data)
        return Stored(kind, content)


def inert(serde: SerializerProtocol, remembered: Remembered | None = None) -> SerializerProtocol:
    """Return the inert serializer for a serializer of LangGraph's; others are returned unchanged."""
    if isinstance(serde, EncryptedSerializer):
        return EncryptedSerializer(serde.cipher, inert(serde.serde, remembered))
    return LookingSerializer(remembered) if isinstance(serde, JsonPlusSerializer) else serde


@dataclass(frozen=True)
class _Unpack:
    """Reads objects as data."""

    remembered: Remembered | None

    def __call__(self, code: int, data: bytes) -> Any:
        """Read an object, or return it from the cache."""
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
            # Sort it: equal sets have another order in each process.
            return Stored(f"builtins.{name}", sorted(parts, key=_packed))
        case [str(module), str(name), made_of, *_]:
            return Stored(f"{module}.{name}", made_of)
    # An extension of another package.
    return Stored(f"extension {code}", content)


def _constructed(value: dict[str, Any]) -> Any:
    """Return the object that an object of JSON stands for, as LangGraph.js and older releases of LangGraph write it."""
    match value:
        case {"lc": 1 | 2, "type": "constructor", "id": [str(), *_] as path}:
            return _stored(".".join(map(str, path)), value)
        case {"lc": 2, "type": "undefined"}:
            return None
        case {"lc": 2, "type": "delta_snapshot", "value": snapshot}:
            return snapshot
    return value


def _stored(kind: str, value: dict[str, Any]) -> Stored:
    content = value.get("kwargs") or value.get("args")
    if isinstance(content, list) and len(content) == 1:
        [content] = content
    found = Stored(kind, content)
    if not found.is_message:
        return found
    # JavaScript knows a message's type by its class.
    name = kind.rpartition(".")[2].removesuffix("Chunk").removesuffix("Message")
    return Stored(kind, {"type": name.lower(), **found.content})


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


# Values as JSON, and the interrupts of tasks: for tools that read a checkpoint without its graph


def as_json(value: Any) -> Any:
    """Return a value in JSON types: messages and other objects by their fields, bytes in base64."""
    if isinstance(value, Stored):
        content = as_json(value.content)
        if value.is_message or value.is_plain:
            return content
        return {"type": value.kind, "value": content}
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in labelled(value).items()}
    if isinstance(value, (bytes, bytearray)):
        return {"type": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each) for each in value]
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if value is None or is_number or isinstance(value, str) else repr(value)


def labelled(entries: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping's entries by a text label for each: its key, as text if it is not."""
    found = {key: each for key, each in entries.items() if isinstance(key, str)}
    for key, each in entries.items():
        if not isinstance(key, str):
            label = str(key)
            while label in found:
                label += "'"
            found[label] = each
    return found


def interrupts_in(writes: Iterable[PendingWrite]) -> list[tuple[str, Any]]:
    """Return the open interrupts, each with its task. Those of tasks that have continued since are left out."""
    writes = list(writes)
    done = {task for task, channel, _ in writes if channel not in WRITES_IDX_MAP}
    return [
        (task, each)
        for task, channel, value in writes
        if channel == INTERRUPT and task not in done
        for each in (value if isinstance(value, (list, tuple)) else [value])
    ]


def asked(interrupt: Any) -> Any:
    """Return the value of an interrupt, without LangGraph's wrapping."""
    content = interrupt.content if isinstance(interrupt, Stored) else interrupt
    return content["value"] if isinstance(content, Mapping) and "value" in content else interrupt
