"""Values as the client sends and receives them: serialized by its serializer, and opaque to the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format.codec import UnreadableError
from langgraph.checkpoint.dynamodb._format.shared_messages import SharedMessages
from langgraph.checkpoint.dynamodb._format.unserializable import unserializable_part
from langgraph.checkpoint.dynamodb.errors import CheckpointSerializationError

DIGEST_BYTES = 16
Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """The place of a value: a channel of a namespace; for a write, of a checkpoint and a task, too."""

    thread_id: str
    namespace: str
    channel: str
    """Empty for metadata."""
    checkpoint_id: str = ""
    task_id: str = ""

    def __str__(self) -> str:
        """Name the value, for errors."""
        if self.task_id:
            return f"the write to channel {self.channel!r}"
        return f"channel {self.channel!r}" if self.channel else "the metadata"


@dataclass(frozen=True)
class Typed:
    """A serialized value."""

    type: str
    data: bytes

    @cached_property
    def digest(self) -> bytes:
        """The digest by which client and service name the value."""
        return sha256(self.data).digest()[:DIGEST_BYTES]

    @property
    def document(self) -> Document:
        """The value as requests have it."""
        return {"type": self.type, "data": self.data}


class Values:
    """Serializes and deserializes values with one serializer."""

    def __init__(self, serde: SerializerProtocol, *, allow_unencrypted: bool = False) -> None:
        """Take the serializer, and whether one that encrypts reads values that are not encrypted."""
        self._serde = serde
        self._loads: Callable[[tuple[str, bytes]], Any] = serde.loads_typed
        self.encrypts = isinstance(serde, EncryptedSerializer)
        self._refuses_plain = self.encrypts and not allow_unencrypted

    def for_many(self) -> Values:
        """Return values for one OS thread at a time, which deserialize messages that many have only once."""
        values = Values(self._serde, allow_unencrypted=not self._refuses_plain)
        if type(self._serde) is JsonPlusSerializer:
            values._loads = SharedMessages(self._serde).loads_typed
        return values

    def dumps(self, value: Any, place: Place) -> Typed:
        """Serialize a value.

        Raises:
            CheckpointSerializationError: The serializer cannot write it; the message names it.
        """
        try:
            kind, data = self._serde.dumps_typed(value)
        except Exception as error:
            path = place.channel or "metadata"
            where, part = unserializable_part(value, path, self._serde.dumps_typed)
            msg = (
                f"{place} cannot be serialized: {where} is a {type(part).__module__}.{type(part).__qualname__}"
                f" ({error}); it was not stored. Keep such objects out of the state, or give the saver a serde that can"
                " write them"
            )
            raise CheckpointSerializationError(msg) from error
        return Typed(kind, bytes(data))

    def loads(self, document: Document, place: Place) -> Any:
        """Deserialize a value of an answer.

        Raises:
            UnreadableError: The serializer cannot read it, or encrypts and the value is not encrypted.
        """
        kind, data = document["type"], document["data"]
        if self._refuses_plain and "+" not in kind:
            msg = (
                f"{place} of thread {place.thread_id!r} is not encrypted, but the saver has a cipher: somebody without"
                " the key may have written it. If the thread is from before there was a cipher, read it with"
                " allow_unencrypted=True"
            )
            raise UnreadableError(msg)
        try:
            return self._loads((kind, data))
        except Exception as error:
            msg = (
                f"{place} of thread {place.thread_id!r} is intact, but the saver's serde cannot read its {kind!r} data"
                f" ({error}); give the saver the serde that the thread was written with"
            )
            raise UnreadableError(msg) from error
