"""Values as the client sends and receives them: serialized by its serializer, and opaque to the service."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .._format.codec import Codec, UnreadableError
from .._runtime.options import check_serde
from ..errors import CheckpointerConfigurationError
from ..gateway.messages import SentValue, Value


def client_serde(serde: SerializerProtocol | None) -> SerializerProtocol:
    """Return the serializer of a client: by default LangGraph's in strict mode, since others may write what it reads.

    Raises:
        CheckpointerInputError: It is no serializer.
        CheckpointerConfigurationError: It is an `EncryptedSerializer`.
    """
    check_serde(serde)
    serde = JsonPlusSerializer(allowed_msgpack_modules=None) if serde is None else serde
    codec_of(serde)
    return serde


def codec_of(serde: SerializerProtocol) -> Codec:
    """Return the codec of a client's serializer.

    Raises:
        CheckpointerConfigurationError: It is an `EncryptedSerializer`.
    """
    codec = Codec(serde)
    if codec.encrypts:
        msg = (
            f"serde is a {type(serde).__name__}, and a client of the gateway cannot encrypt: all of a value would be"
            " new to the service whenever a part of it changes. Give the key to the service, as encryption_key of its"
            " checkpointer (`langgraph-dynamodb docs encrypt`), and the client a serde without a cipher"
        )
        raise CheckpointerConfigurationError(msg)
    return codec


def dumped(codec: Codec, value: Any, what: str, path: str = "value") -> SentValue:
    """Serialize a value, and return it as requests have it.

    Raises:
        CheckpointSerializationError: The serializer cannot write it; the message says what it is.
    """
    return SentValue(*codec.dumps(value, what, path))


def loaded(codec: Codec, value: Value | SentValue, what: str) -> Any:
    """Deserialize a value of an answer.

    Raises:
        UnreadableError: The serializer cannot read it; the message says what it is.
    """
    try:
        return codec.loads_typed((value.type, data_of(value)))
    except Exception as error:
        msg = (
            f"{what} is intact, but the saver's serde cannot read its {value.type!r} data ({error}); give the"
            " saver the serde that it was written with"
        )
        raise UnreadableError(msg) from error


def data_of(value: Value | SentValue) -> bytes:
    """Return the data of a value that is complete."""
    if value.data is None:
        raise ValueError("the answer has no data of it")
    return value.data
