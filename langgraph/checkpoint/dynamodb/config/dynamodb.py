"""The type `dynamodb`: the options of the saver, the store and the cache as a file has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, SecretStr, Tag

from langgraph.checkpoint.dynamodb._format.limits import (
    ACTIVITY_SECONDS,
    CACHE_RETRY_SECONDS,
    RETRY_SECONDS,
    SEARCH_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._runtime.fork import without_forks
from langgraph.checkpoint.dynamodb._runtime.options import OTHER_NAMES, without_password
from langgraph.checkpoint.dynamodb.config.fields import (
    Activity,
    Positive,
    Reference,
    Seconds,
    SecondsOrZero,
    Ttl,
    kind_of,
    made_function,
    made_object,
    split,
)
from langgraph.checkpoint.dynamodb.config.keys import read_key
from langgraph.checkpoint.dynamodb.config.serde import made_serde
from langgraph.checkpoint.dynamodb.config.storage import CodecOptions, StorageOptions, openers
from langgraph.checkpoint.dynamodb.config.stores import DistanceIndexOptions, StoreOptions
from langgraph.checkpoint.dynamodb.config.types import (
    CacheType,
    CheckpointerType,
    Made,
    OptionError,
    Options,
    StoreType,
)
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

if TYPE_CHECKING:
    from botocore.config import Config

    from langgraph.cache.dynamodb import DynamoDBCache
    from langgraph.store.dynamodb import DynamoDBStore


class RetryOptions(Options):
    """botocore's own retries."""

    mode: Literal["legacy", "standard", "adaptive"] | None = Field(
        default=None, description="botocore's retry mode."
    )
    total_max_attempts: Positive | None = Field(
        default=None, description="How often a request is sent at most, the first time included."
    )


class ClientConfigOptions(Options):
    """Settings of boto3's clients that replace the saver's, retries included."""

    connect_timeout: Seconds | None = Field(default=None, description="Seconds to wait for a connection.")
    read_timeout: Seconds | None = Field(default=None, description="Seconds to wait for an answer.")
    max_pool_connections: Positive | None = Field(
        default=None, description="How many connections are kept at most."
    )
    tcp_keepalive: bool | None = Field(default=None, description="Whether idle connections are kept alive.")
    retries: RetryOptions | None = Field(
        default=None, description="botocore's own retries, instead of the saver's."
    )
    proxies: dict[str, SecretStr] | None = Field(
        default=None,
        description="Addresses of proxies by protocol, such as {https: http://proxy:3128}; never shown.",
    )
    use_dualstack_endpoint: bool | None = Field(
        default=None, description="Whether to use the endpoint that also has IPv6 addresses."
    )
    use_fips_endpoint: bool | None = Field(default=None, description="Whether the FIPS endpoint is used.")
    user_agent_extra: str | None = Field(
        default=None, description="Text that is added to the client's User-Agent."
    )


# Given either by options of its own, or by a reference to an object that is made elsewhere.
ClientConfig = Annotated[
    Annotated[ClientConfigOptions, Tag("(options)")] | Annotated[Reference, Tag("(reference)")],
    Discriminator(kind_of),
]


Endpoint = Annotated[str, Field(pattern="^https?://[^/]"), AfterValidator(without_password)]


class TableOptions(CodecOptions):
    """The options of the table, which the saver, the store and the cache share, and `setup`, which none has."""

    table_name: str = Field(min_length=1, description="The name or ARN of the table.")
    region_name: str | None = Field(
        default=None,
        min_length=1,
        description="The AWS region, such as eu-west-1; otherwise as boto3 finds it.",
    )
    endpoint_url: Endpoint | None = Field(
        default=None,
        description="Another endpoint than AWS's own, such as http://localhost:8000 for DynamoDB Local.",
    )
    session: Reference | None = Field(
        default=None,
        description="A boto3.Session for the blocking client, or a function that returns one, as module:name. Profiles "
        "need none: set AWS_PROFILE.",
    )
    async_session: Reference | None = Field(
        default=None,
        description="An aioboto3.Session or a session of aiobotocore, or a function that returns one, as module:name.",
    )
    client: Reference | None = Field(
        default=None,
        description="A boto3 DynamoDB client to use as it is, or a function that returns one, as module:name.",
    )
    client_config: ClientConfig | None = Field(
        default=None,
        description="Time-outs, connections and retries instead of the saver's; or a botocore Config, as module:name.",
    )
    retry_seconds: SecondsOrZero = Field(
        default=RETRY_SECONDS,
        description="For how many seconds to send a request again that is throttled, fails on AWS's side or gets no"
        " answer.",
    )
    consistent_read: bool = Field(
        default=True,
        description="Whether to read by strongly consistent reads, at twice the price.",
    )
    setup: bool = Field(
        default=False,
        description="Whether to create a missing table, for development; on AWS, deploy the template instead.",
    )


class DynamoDBOptions(TableOptions, StorageOptions):
    """The options of `DynamoDBSaver`'s constructor, and two that it does not have: `encryption_key` and `setup`."""

    other_names: ClassVar[Mapping[str, str]] = OTHER_NAMES

    ttl_seconds: Ttl | None = Field(
        default=None,
        description="Whole seconds after which a checkpoint expires, counted from its last use; otherwise never.",
    )
    detect_other_savers: bool = Field(
        default=True,
        description=(
            "Whether to check once that the table is not another saver's; the policies of runner and tenant"
            " deny some of these requests."
        ),
    )
    activity_seconds: Activity = Field(
        default=ACTIVITY_SECONDS,
        description="The seconds that a thread's last activity may be old in lists before a put renews it.",
    )


class DynamoDBIndexOptions(DistanceIndexOptions):
    """The index of `DynamoDBStore`, with an option for an engine that compares the embeddings."""

    engine: Reference | None = Field(
        default=None,
        description="A VectorEngine that compares embeddings, or a function that returns one, as module:name.",
    )

    def config(self) -> dict[str, Any]:
        """Return the store's `StoreIndexConfig`.

        Raises:
            OptionError: `embed_function` or `engine` leads to a text or a number.
        """
        if self.engine is None:
            return super().config()
        return {**super().config(), "search": made_object("index.engine", self.engine)}


class DynamoDBStoreOptions(TableOptions, StoreOptions):
    """The options of `DynamoDBStore`'s constructor, and two that it does not have: `encryption_key` and `setup`."""

    index: DynamoDBIndexOptions | None = Field(
        default=None,
        description="Makes the store search by similarity: dims, embed, fields, distance_type, engine.",
    )
    search_bytes_max: Positive = Field(
        default=SEARCH_BYTES_MAX,
        description="The most bytes that one search may read. A search that needs more is an error.",
    )


class DynamoDBCacheOptions(TableOptions):
    """The options of `DynamoDBCache`'s constructor, and two that it does not have: `encryption_key` and `setup`."""

    retry_seconds: SecondsOrZero = Field(
        default=CACHE_RETRY_SECONDS,
        description="The seconds for which to retry a request; then it is a miss.",
    )
    consistent_read: bool = Field(
        default=False,
        description="Whether to read by strongly consistent reads, at twice the price.",
    )
    prefix: Annotated[tuple[str, ...], BeforeValidator(split)] = Field(
        default=(),
        description="Labels in front of every namespace, such as the tenant.",
    )


def make_saver(options: DynamoDBOptions) -> DynamoDBSaver:
    """Make a saver from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError: An option cannot be used.
    """
    given = _given(options)
    if options.owner_key is not None:
        given["owner_key"] = read_key(options.owner_key, given["session"], "owner_key")
    return _made(DynamoDBSaver, given)


def make_store(options: DynamoDBStoreOptions) -> DynamoDBStore:
    """Make a store from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError: An option cannot be used.
    """
    from langgraph.store.dynamodb import DynamoDBStore  # noqa: PLC0415 - a saver does not need it.

    return _made(
        DynamoDBStore,
        _given(options) | {"index": options.index_config(), "ttl": options.ttl_config()},
    )


def make_cache(options: DynamoDBCacheOptions) -> DynamoDBCache[Any]:
    """Make a cache from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError: An option cannot be used.
    """
    from langgraph.cache.dynamodb import DynamoDBCache  # noqa: PLC0415 - a saver does not need it.

    return _made(DynamoDBCache[Any], _given(options))


def _given(options: TableOptions) -> dict[str, Any]:
    """Return what is given of the constructor's options, with the objects that they name."""
    given = {name: getattr(options, name) for name in options.model_fields_set - {"setup", "encryption_key"}}
    for name in ("session", "async_session", "client", "client_config"):
        given[name] = _object(name, getattr(options, name))
    given["on_event"] = made_function("on_event", options.on_event)
    given["serde"] = made_serde(options.serde, options.encryption_key, given["session"])
    return given


def _made(constructor: Callable[..., Made], given: Mapping[str, Any]) -> Made:
    try:
        return constructor(**given)
    except CheckpointerInputError as error:
        # The message begins with the option's name, as all of the constructors' do.
        name, _, says = str(error).partition(" ")
        raise OptionError(name, says) from error


def _object(name: str, value: Any) -> Any:
    return _client_config(value) if isinstance(value, ClientConfigOptions) else made_object(name, value)


def _client_config(options: ClientConfigOptions) -> Config:
    # Imported late, since reading a configuration should be fast and not need the client library.
    with without_forks():
        from botocore.config import Config  # noqa: PLC0415

    given = options.model_dump(exclude_none=True)
    if options.proxies is not None:
        given["proxies"] = {name: each.get_secret_value() for name, each in options.proxies.items()}
    return Config(**given)


_INSTALL = "langgraph-dynamodb"
CHECKPOINTER = CheckpointerType(DynamoDBOptions, *openers(make_saver), install=_INSTALL)
STORE = StoreType(DynamoDBStoreOptions, *openers(make_store), install=_INSTALL)
CACHE = CacheType(DynamoDBCacheOptions, *openers(make_cache), install=_INSTALL)
