"""The type `dynamodb`: the options of `DynamoDBSaver` as they stand in a file, and a key to encrypt with."""

from __future__ import annotations

import asyncio
import inspect
import pkgutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BeforeValidator, Discriminator, Field, SecretStr, Tag, WithJsonSchema

from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX, RETRY_SECONDS
from langgraph.checkpoint.dynamodb.config.keys import EncryptionKey, read_key
from langgraph.checkpoint.dynamodb.config.types import CheckpointerType, OptionError, Options
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

if TYPE_CHECKING:
    from botocore.config import Config

# Something in a module.
_NAME = "^[^:]+:[^:]+$"


def _imported(value: Any) -> Any:
    """Import what a text names; anything else is the object itself, as a dict from code may have it."""
    if not isinstance(value, str):
        return value
    if ":" not in value:
        msg = "give it as module:name"
        raise ValueError(msg)
    try:
        return pkgutil.resolve_name(value)
    except (ImportError, AttributeError, ValueError) as error:
        msg = f"it cannot be imported: {error}"
        raise ValueError(msg) from error


def _no_flag(value: Any) -> Any:
    """Refuse True and False, which count as 1 and 0 in Python."""
    if isinstance(value, bool):
        msg = "give a number"
        raise ValueError(msg)
    return value


def split(value: Any) -> Any:
    """Take a text apart at its commas: the environment has no lists."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


def _kind(value: Any) -> str:
    return "(options)" if isinstance(value, (Mapping, Options)) else "(reference)"


Positive = Annotated[int, Field(ge=1), BeforeValidator(_no_flag)]
NotNegative = Annotated[int, Field(ge=0), BeforeValidator(_no_flag)]
Seconds = Annotated[float, Field(gt=0), BeforeValidator(_no_flag)]
Name = Annotated[str, Field(pattern=_NAME)]
Reference = Annotated[
    Any, BeforeValidator(_imported), WithJsonSchema({"type": "string", "pattern": rf"{_NAME}|\$\{{"})
]


class SerdeOptions(Options):
    """LangGraph's `JsonPlusSerializer`."""

    allowed_msgpack_modules: Annotated[list[Name], BeforeValidator(split)] | None = Field(
        default=None,
        description="Types that may be made of what is stored, as module:Name, besides those that are known to be "
        "harmless; if it is not given, LANGGRAPH_STRICT_MSGPACK decides.",
    )
    pickle_fallback: bool = Field(
        default=False,
        description="Whether what nothing else can serialize is pickled. Never where others may write to the table.",
    )


class RetryOptions(Options):
    """How botocore tries a request again."""

    mode: Literal["legacy", "standard", "adaptive"] | None = Field(
        default=None, description="By which of botocore's rules."
    )
    total_max_attempts: Positive | None = Field(
        default=None, description="How often a request is sent at most, the first time included."
    )


class ClientConfigOptions(Options):
    """What boto3's clients are told, in the place of what the saver tells them; retries included."""

    connect_timeout: Seconds | None = Field(default=None, description="Seconds to wait for a connection.")
    read_timeout: Seconds | None = Field(default=None, description="Seconds to wait for an answer.")
    max_pool_connections: Positive | None = Field(
        default=None, description="How many connections are kept at most."
    )
    tcp_keepalive: bool | None = Field(default=None, description="Whether idle connections are kept alive.")
    retries: RetryOptions | None = Field(
        default=None, description="botocore's own retries, in the place of the saver's."
    )
    proxies: dict[str, SecretStr] | None = Field(
        default=None,
        description="Addresses of proxies by protocol, such as {https: http://proxy:3128}; never shown.",
    )
    use_dualstack_endpoint: bool | None = Field(
        default=None, description="Whether the endpoint that also has IPv6 addresses is used."
    )
    use_fips_endpoint: bool | None = Field(default=None, description="Whether the FIPS endpoint is used.")
    user_agent_extra: str | None = Field(
        default=None, description="What is added to the name that the client gives itself."
    )


# Each of these is given by options of its own, or by a reference to an object that is made elsewhere.
ClientConfig = Annotated[
    Annotated[ClientConfigOptions, Tag("(options)")] | Annotated[Reference, Tag("(reference)")],
    Discriminator(_kind),
]
Serde = Annotated[
    Annotated[SerdeOptions, Tag("(options)")] | Annotated[Reference, Tag("(reference)")], Discriminator(_kind)
]


class DynamoDBOptions(Options):
    """The options of `DynamoDBSaver`'s constructor, and two that it does not have: `encryption_key` and `setup`."""

    table_name: str = Field(min_length=1, description="The name or ARN of the table.")
    region_name: str | None = Field(
        default=None,
        min_length=1,
        description="The AWS region, such as eu-west-1; otherwise as boto3 finds it.",
    )
    endpoint_url: str | None = Field(
        default=None,
        pattern="^https?://[^/]",
        description="Another endpoint than AWS's own, such as http://localhost:8000 for DynamoDB Local.",
    )
    session: Reference | None = Field(
        default=None,
        description="A boto3.Session for the blocking client, or a function that makes one, as module:name. Profiles "
        "need none: set AWS_PROFILE.",
    )
    async_session: Reference | None = Field(
        default=None,
        description="An aioboto3.Session or a session of aiobotocore, or a function that makes one, as module:name.",
    )
    client: Reference | None = Field(
        default=None,
        description="A boto3 DynamoDB client, or a function that makes one, as module:name. It is used as it is.",
    )
    client_config: ClientConfig | None = Field(
        default=None,
        description="What replaces the saver's time-outs, connections and retries; or a botocore Config, as "
        "module:name.",
    )
    retry_seconds: Annotated[float, Field(ge=0), BeforeValidator(_no_flag)] = Field(
        default=RETRY_SECONDS,
        description="For how long what is throttled, fails on AWS's side or gets no answer is sent again, in seconds.",
    )
    serde: Serde | None = Field(
        default=None,
        description="Options of LangGraph's JsonPlusSerializer; or a serializer, or a function that makes one, as "
        "module:name.",
    )
    encryption_key: EncryptionKey | None = Field(
        default=None,
        description="Where the key is with which all but ids, sizes and times is encrypted by AES.",
    )
    ttl_seconds: Positive | None = Field(
        default=None,
        description="Whole seconds after which a checkpoint expires, counted from when it was stored; otherwise never.",
    )
    consistent_read: bool = Field(
        default=True,
        description="Whether checkpoints are found by strongly consistent reads, at twice the price.",
    )
    encrypt_metadata: bool | None = Field(
        default=None,
        description="Whether metadata goes through the serializer too; otherwise if that encrypts.",
    )
    share_equal_pieces: bool = Field(
        default=True, description="Whether stored pieces that are equal are named instead of stored again."
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Whether what is not encrypted is read in spite of a key; for the time of a migration.",
    )
    bound_to: str | None = Field(
        default=None,
        min_length=1,
        description="The name of the table that encrypted data are for, where it was restored under another name.",
    )
    checkpoint_bytes_max: Positive = Field(
        default=CHECKPOINT_BYTES_MAX,
        description="Bound on what a checkpoint's values, or its pending writes, take up, in bytes.",
    )
    cache_bytes: NotNegative = Field(
        default=32 * 1024 * 1024,
        description="Bound on the memory for what is remembered of recent checkpoints, in bytes.",
    )
    setup: bool = Field(
        default=False,
        description="Whether a missing table is made, as for development; on AWS, deploy the template instead.",
    )


def make_saver(options: DynamoDBOptions) -> DynamoDBSaver:
    """Make the saver that the options ask for; only a key in Secrets Manager takes a request.

    Raises:
        OptionError: An option cannot be used.
    """
    given = {name: getattr(options, name) for name in options.model_fields_set}
    for each in ("setup", "encryption_key"):
        given.pop(each, None)
    for name in ("session", "async_session", "client", "client_config", "serde"):
        given[name] = _object(name, getattr(options, name))
    if options.encryption_key is not None:
        given["serde"] = _encrypted(options.encryption_key, given["serde"], given["session"])
    try:
        return DynamoDBSaver(**given)
    except CheckpointerInputError as error:
        # Its message begins with the option's name, as all of the constructor's do.
        name, _, says = str(error).partition(" ")
        raise OptionError(name, says) from error


def _object(name: str, value: Any) -> Any:
    """Make the object that an option stands for: of options, of what makes it, or itself."""
    if isinstance(value, ClientConfigOptions):
        return _client_config(value)
    if isinstance(value, SerdeOptions):
        return _serializer(value)
    made = value() if isinstance(value, type) or inspect.isroutine(value) else value
    if isinstance(made, (str, int, float)):
        # The constructor would show it, though it may be a secret that was named by mistake.
        raise OptionError(name, f"leads to a value of the type {type(made).__name__}, and to no object")
    return made


def _client_config(options: ClientConfigOptions) -> Config:
    # A configuration is to be read in no time, without the client library.
    from botocore.config import Config  # noqa: PLC0415

    given = options.model_dump(exclude_none=True)
    if options.proxies is not None:
        given["proxies"] = {name: each.get_secret_value() for name, each in options.proxies.items()}
    return Config(**given)


def _serializer(options: SerdeOptions) -> JsonPlusSerializer:
    names = options.allowed_msgpack_modules
    if names is None:
        return JsonPlusSerializer(pickle_fallback=options.pickle_fallback)
    return JsonPlusSerializer(
        pickle_fallback=options.pickle_fallback,
        allowed_msgpack_modules=[tuple(name.split(":", 1)) for name in names],
    )


def _encrypted(key: EncryptionKey, serde: Any, session: Any) -> EncryptedSerializer:
    if isinstance(serde, EncryptedSerializer):
        raise OptionError(
            "encryption_key", "has no effect on a serde that encrypts already; give one of the two"
        )
    secret = read_key(key, session)
    try:
        return EncryptedSerializer.from_pycryptodome_aes(serde or JsonPlusSerializer(), key=secret)
    except ImportError as error:
        raise OptionError("encryption_key", "needs pycryptodome: pip install pycryptodome") from error


@contextmanager
def _open(options: DynamoDBOptions) -> Iterator[DynamoDBSaver]:
    with make_saver(options) as saver:
        if options.setup:
            saver.setup()
        yield saver


@asynccontextmanager
async def _aopen(options: DynamoDBOptions) -> AsyncIterator[DynamoDBSaver]:
    # A key may be in a file, or behind a request.
    async with await asyncio.to_thread(make_saver, options) as saver:
        if options.setup:
            await saver.asetup()
        yield saver


TYPE = CheckpointerType(DynamoDBOptions, _open, _aopen, install="langgraph-dynamodb")
