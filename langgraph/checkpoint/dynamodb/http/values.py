"""Values as the client sends and receives them: serialized by its serializer, and opaque to the service."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb._format.codec import Codec, UnreadableError
from langgraph.checkpoint.dynamodb._format.wire import digest_of
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb.http.sealing import Place, Sealer

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Typed:
    """A serialized value."""

    type: str
    data: bytes

    @cached_property
    def digest(self) -> bytes:
        """The digest by which client and service name the value."""
        return digest_of(self.data)

    @property
    def document(self) -> Document:
        """The value as requests have it."""
        return {"type": self.type, "data": self.data}


def sealer_of(
    serde: SerializerProtocol, *, pieces_bytes_max: int, allow_unencrypted: bool = False
) -> Sealer | None:
    """Return what seals values with the cipher of a serializer, if it has one; the other arguments are `Sealer`'s.

    Raises:
        CheckpointerConfigurationError: The serializer encrypts in a way of its own, which the sealer would leave out.
    """
    if not isinstance(serde, EncryptedSerializer):
        return None
    kind = type(serde)
    own = EncryptedSerializer
    if (kind.dumps_typed, kind.loads_typed) != (own.dumps_typed, own.loads_typed):
        msg = (
            f"serde is a {kind.__name__} with its own dumps_typed or loads_typed, and a client of the gateway uses only"
            " the cipher and the inner serializer of an EncryptedSerializer; put what it does into one of these two"
        )
        raise CheckpointerConfigurationError(msg)
    return Sealer(serde.cipher, pieces_bytes_max=pieces_bytes_max, allow_unencrypted=allow_unencrypted)


class Values:
    """Serializes and deserializes values with one serializer, and seals them if there is a sealer."""

    def __init__(self, serde: SerializerProtocol, sealer: Sealer | None = None) -> None:
        """Take the serializer.

        Args:
            serde: The serializer. Of an `EncryptedSerializer`, the one inside is used, and the sealer encrypts.
            sealer: Seals values for their places.
        """
        own = serde.serde if sealer is not None and isinstance(serde, EncryptedSerializer) else serde
        self.codec = Codec(own)
        self._sealer = sealer

    @property
    def seals(self) -> bool:
        """Whether values are bound to their places. Then a thread cannot be copied."""
        return self._sealer is not None

    def for_many(self) -> Values:
        """Return values for one OS thread at a time, which deserialize messages that many have only once."""
        values = copy(self)
        values.codec = self.codec.for_many()
        return values

    def dumps(self, value: Any, place: Place) -> Typed:
        """Serialize a value.

        Raises:
            CheckpointSerializationError: The serializer cannot write it; the message names it.
        """
        typed = self.codec.dumps(value, str(place), place.channel or "metadata")
        return Typed(*(typed if self._sealer is None else self._sealer.seal(place, typed)))

    def loads(self, document: Document, place: Place) -> Any:
        """Deserialize a value of an answer.

        Raises:
            UnreadableError: The serializer cannot read it.
            CheckpointerConfigurationError: There is a sealer, and the value is not encrypted, or with another key.
            CheckpointCorruptionError: The value was encrypted for another place, or was changed.
        """
        typed = document["type"], document["data"]
        if self._sealer is not None:
            typed = self._sealer.open(place, typed)
        try:
            return self.codec.loads_typed(typed)
        except Exception as error:
            msg = (
                f"{place} is intact, but the saver's serde cannot read its {typed[0]!r} data ({error}); give the saver"
                " the serde that the thread was written with"
            )
            raise UnreadableError(msg) from error

    def loads_metadata(self, document: Document, place: Place) -> Any:
        """Return the metadata of a checkpoint's document; errors are those of `loads`."""
        typed = document.get("typed_metadata")
        if typed is not None:
            return self.loads(typed, place)
        if self._sealer is not None:
            # Somebody without the key could have left the sealed metadata out. This raises, unless that is allowed.
            self._sealer.open(place, ("json", b"{}"))
        return document["metadata"]
