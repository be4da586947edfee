"""Serializers in a configuration: LangGraph's own with options, or an object; and an encryption key."""

from __future__ import annotations

from typing import Annotated, Any

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BeforeValidator, Discriminator, Field, Tag

from .fields import Name, Reference, kind_of, made_object, split
from .keys import EncryptionKey, read_key
from .types import OptionError, Options


class SerdeOptions(Options):
    """LangGraph's `JsonPlusSerializer`."""

    allowed_msgpack_modules: Annotated[list[Name], BeforeValidator(split)] | None = Field(
        default=None,
        description="Types, as module:Name, that stored data may become in addition to harmless ones. By default "
        "LANGGRAPH_STRICT_MSGPACK decides; for the type http, none.",
    )
    pickle_fallback: bool = Field(
        default=False,
        description="Whether to pickle objects that cannot be serialized otherwise. Do not use it if others may write"
        " to the table.",
    )


Serde = Annotated[
    Annotated[SerdeOptions, Tag("(options)")] | Annotated[Reference, Tag("(reference)")],
    Discriminator(kind_of),
]


def made_serde(
    serde: Any, key: EncryptionKey | None = None, session: Any = None, *, is_strict: bool = False
) -> Any:
    """Make a serializer from a configuration. Only a key in Secrets Manager takes a request.

    Args:
        serde: The option `serde`; None is LangGraph's own.
        key: The option `encryption_key`.
        session: The boto3 session whose credentials read a key in Secrets Manager.
        is_strict: Whether LangGraph's own serializer makes harmless types only, unless the option names others.

    Returns:
        The serializer, or None if none is configured.

    Raises:
        OptionError: An option cannot be used.
    """
    if serde is None and (key is not None or is_strict):
        serde = SerdeOptions()
    if isinstance(serde, SerdeOptions):
        made: Any = _serializer(serde, is_strict=is_strict)
    else:
        made = made_object("serde", serde)
    return made if key is None else _encrypted(key, made, session)


def _serializer(options: SerdeOptions, *, is_strict: bool) -> JsonPlusSerializer:
    names = options.allowed_msgpack_modules
    given: dict[str, Any] = {}
    if names is not None or is_strict:
        given["allowed_msgpack_modules"] = [tuple(name.split(":", 1)) for name in names or ()]
    return JsonPlusSerializer(pickle_fallback=options.pickle_fallback, **given)


def _encrypted(key: EncryptionKey, serde: Any, session: Any) -> EncryptedSerializer:
    if isinstance(serde, EncryptedSerializer):
        raise OptionError(
            "encryption_key", "has no effect on a serde that encrypts already; give one of the two"
        )
    secret = read_key(key, session)
    try:
        return EncryptedSerializer.from_pycryptodome_aes(serde, key=secret)
    except ImportError as error:
        raise OptionError("encryption_key", "needs pycryptodome: pip install pycryptodome") from error
