"""Keys to encrypt with, from where secrets are kept: a configuration says where that is, and never has the key."""

from __future__ import annotations

import base64
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from typing_extensions import Self

from langgraph.checkpoint.dynamodb._runtime.fork import without_forks
from langgraph.checkpoint.dynamodb.config.types import OptionError, Options

if TYPE_CHECKING:
    import boto3

_OPTION = "encryption_key"
# AES has these; LangGraph's serializer takes them as they are.
_KEY_LENGTHS = (16, 24, 32)


class EncryptionKey(Options):
    """Where a key of 16, 24 or 32 bytes for AES is: in a variable, in a file or in Secrets Manager."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [each]} for each in ("environment", "file", "secret_arn")]}
    )

    environment: str | None = Field(
        default=None, min_length=1, description="The name of the environment variable that has the key."
    )
    file: str | None = Field(default=None, min_length=1, description="The path of a file that has the key.")
    secret_arn: str | None = Field(
        default=None,
        pattern=r"^arn:[^:]+:secretsmanager:[^:]+:[^:]*:secret:.+$",
        description="The ARN of a secret of AWS Secrets Manager that is the key.",
    )
    encoding: Literal["text", "base64", "hex"] = Field(
        default="text", description="How the key is written: as its bytes themselves, in base64 or in hex."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(each is not None for each in (self.environment, self.file, self.secret_arn)) != 1:
            msg = "give exactly one of environment, file and secret_arn"
            raise ValueError(msg)
        return self


def read_key(where: EncryptionKey, session: boto3.Session | None) -> bytes:
    """Read the key.

    Args:
        where: Where it is.
        session: Whose credentials read a secret; boto3's own where it is None.

    Returns:
        16, 24 or 32 bytes.

    Raises:
        OptionError: There is none, or what is there is no key.
    """
    if where.environment is not None:
        written = _from_environment(where.environment)
    elif where.file is not None:
        written = _from_file(where.file)
    else:
        written = _from_secret(str(where.secret_arn), session)
    key = _decoded(written, where.encoding)
    if len(key) not in _KEY_LENGTHS:
        says = f"leads to {len(key)} bytes ({where.encoding}); a key for AES has 16, 24 or 32 of them"
        raise OptionError(_OPTION, says)
    return key


def _from_environment(name: str) -> bytes:
    text = os.environ.get(name)
    if text is None:
        raise OptionError(_OPTION, f"names the environment variable {name}, which is not set")
    return text.encode()


def _from_file(name: str) -> bytes:
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        raise OptionError(
            _OPTION, f"names the file {name}, which cannot be read: {error.strerror}"
        ) from error


def _from_secret(arn: str, session: boto3.Session | None) -> bytes:
    # A configuration is to be read in no time, and most have nothing to ask AWS for.
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
        raise OptionError(_OPTION, f"names the secret {arn}, which cannot be read: {error}") from error
    secret = answer.get("SecretBinary")
    return bytes(secret) if secret is not None else str(answer["SecretString"]).encode()


def _decoded(written: bytes, encoding: str) -> bytes:
    # Editors and `echo` end a file with a line break, which is not a part of the key, unless it is as long with it.
    if encoding == "text":
        return written if len(written) in _KEY_LENGTHS else written.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = written.decode("ascii").strip()
        return base64.b64decode(text, validate=True) if encoding == "base64" else bytes.fromhex(text)
    except ValueError:
        raise OptionError(_OPTION, f"leads to something that is not {encoding}") from None
