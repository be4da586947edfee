"""Deserializing many values that have the same messages: each message is deserialized once, and copied after that.

The checkpoints of a list have most of their messages in common. A copy takes a fifth of the time. Only messages of
LangChain's own classes are copied, if they hold nothing but plain data: those are equal to what they are copied from,
and share nothing with it that can be changed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import EXT_PYDANTIC_V2, JsonPlusSerializer

_MODULES = "langchain_core.messages."
_IMMUTABLE = frozenset({str, int, float, bool, type(None), bytes})
# Messages that are kept, in serialized bytes. They take some five times as much memory.
_KEPT_BYTES_MAX = 16 * 1024 * 1024


class _Message(NamedTuple):
    """A message that nobody else has, and the names of its fields that can be changed."""

    message: BaseMessage
    changeable: tuple[str, ...]

    @classmethod
    def of(cls, value: object) -> _Message | None:
        """Return a copy of a value; `None` if it is not a message that can be copied."""
        if not isinstance(value, BaseMessage) or not type(value).__module__.startswith(_MODULES):
            return None
        # It is copied as it is, and has to be as any other.
        if value.__pydantic_extra__ or value.__pydantic_private__:
            return None
        changeable = tuple(name for name, field in vars(value).items() if type(field) not in _IMMUTABLE)
        try:
            return cls(cls(value, changeable).copy(), changeable)
        except (_NotPlainError, RecursionError):
            return None

    def copy(self) -> BaseMessage:
        copied = self.message.__copy__()
        fields = vars(copied)
        for name in self.changeable:
            fields[name] = _copied(fields[name])
        return copied


class _NotPlainError(Exception):
    """A field has something that may be shared, or may not be copied."""


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _IMMUTABLE:
        return value
    if not value and kind in (list, dict):
        return kind()
    if kind is list:
        return [_copied(each) for each in value]
    if kind is dict and _IMMUTABLE.issuperset(map(type, value)):
        return {name: _copied(each) for name, each in value.items()}
    raise _NotPlainError


class SharedMessages:
    """Deserializes what LangGraph's serializer wrote, as it does, with messages that were seen before as copies."""

    def __init__(self, serde: JsonPlusSerializer) -> None:
        """Take the serializer, which makes everything that is new."""
        self._serde = serde
        self._known: dict[bytes, _Message] = {}
        self._known_bytes = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value."""
        kind, content = data
        if kind != "msgpack":
            return self._serde.loads_typed(data)
        return ormsgpack.unpackb(content, ext_hook=self._extension, option=ormsgpack.OPT_NON_STR_KEYS)

    def _extension(self, code: int, data: bytes) -> Any:
        known = self._known.get(data) if code == EXT_PYDANTIC_V2 else None
        if known is not None:
            return known.copy()
        value = self._serde.loads_typed(("msgpack", ormsgpack.packb(ormsgpack.Ext(code, data))))
        new = _Message.of(value) if code == EXT_PYDANTIC_V2 else None
        if new is not None:
            self._keep(data, new)
        return value

    def _keep(self, data: bytes, message: _Message) -> None:
        self._known_bytes += len(data)
        if self._known_bytes > _KEPT_BYTES_MAX:
            self._known.clear()
            self._known_bytes = len(data)
        self._known[data] = message
