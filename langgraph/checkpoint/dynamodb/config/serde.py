"""Serializers in a configuration, and encryption keys: it names the place of a key, and never has the key itself."""

from __future__ import annotations

import base64
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BeforeValidator, Discriminator, Field, Tag

from .._runtime.fork import without_forks
from .fields import Alternatives, Name, OptionError, Options, Reference, kind_of, made_object, split

if TYPE_CHECKING:
    import boto3

# AES has these key lengths. LangGraph's serializer takes keys as they are.
_KEY_LENGTHS = (16, 24, 32)


class EncryptionKey(Alternatives):
    """The place of an AES key of 16, 24 or 32 bytes: a variable, a file or Secrets Manager."""

    alternatives = ("environment", "file", "secret_arn")

    environment: str | None = Field(
        default=None, min_length=1, description="The name of the environment variable that has the key."
    )
    file: str | None = Field(default=None, min_length=1, description="The path of a file that has the key.")
    secret_arn: str | None = Field(
        default=None,
        pattern=r"^arn:[^:]+:secretsmanager:[^:]+:[^:]*:secret:.+$",
        description="The ARN of a secret in AWS Secrets Manager that is the key.",
    )
    encoding: Literal["text", "base64", "hex"] = Field(
        default="text", description="The encoding of the key: its bytes, base64 or hex."
    )


def read_key(where: EncryptionKey, session: boto3.Session | None, option: str = "encryption_key") -> bytes:
    """Read the key.

    Args:
        where: Where the key is.
        session: The session whose credentials read a secret, or None for boto3's own.
        option: The option that says where, for errors.

    Returns:
        16, 24 or 32 bytes.

    Raises:
        OptionError: There is nothing, or it is not a key.
    """
    written = _written(where, session, option)
    key = _decoded(written, where.encoding, option)
    if len(key) not in _KEY_LENGTHS:
        says = f"names a key of {len(key)} bytes ({where.encoding}); a key for AES has 16, 24 or 32"
        raise OptionError(option, says)
    return key


def _written(where: EncryptionKey, session: boto3.Session | None, option: str) -> bytes:
    """Return the key as it is written where it is."""
    if where.secret_arn is not None:
        return _from_secret(where.secret_arn, session, option)
    if where.file is not None:
        try:
            return Path(where.file).expanduser().read_bytes()
        except OSError as error:
            says = f"names the file {where.file}, which cannot be read: {error.strerror}"
            raise OptionError(option, says) from error
    name = str(where.environment)
    if name not in os.environ:
        raise OptionError(option, f"names the environment variable {name}, which is not set")
    return os.environ[name].encode()


def _from_secret(arn: str, session: boto3.Session | None, option: str) -> bytes:
    # Imported late, since reading a configuration should be fast, and most configurations need nothing from AWS.
    with without_forks():
        import boto3  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    region = arn.split(":")[3]
    try:
        with without_forks():
            client = (session or boto3.Session()).client("secretsmanager", region_name=region)
        with closing(client):
            answer: Any = client.get_secret_value(SecretId=arn)
    except (BotoCoreError, ClientError) as error:
        raise OptionError(option, f"names the secret {arn}, which cannot be read: {error}") from error
    secret = answer.get("SecretBinary")
    return bytes(secret) if secret is not None else str(answer["SecretString"]).encode()


def _decoded(written: bytes, encoding: str, option: str) -> bytes:
    # Editors and `echo` end a file with a line break. It is not part of the key, unless the length is right only with
    # it.
    if encoding == "text":
        return written if len(written) in _KEY_LENGTHS else written.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = written.decode("ascii").strip()
        return base64.b64decode(text, validate=True) if encoding == "base64" else bytes.fromhex(text)
    except ValueError:
        raise OptionError(option, f"names something that is not {encoding}") from None


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
