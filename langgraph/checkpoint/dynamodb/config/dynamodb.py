"""The type `dynamodb`: the options of the saver, the store and the cache as a file has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from .._format.limits import CACHE_RETRY_SECONDS, CHECKPOINT_BYTES_MAX, RETRY_SECONDS, SEARCH_BYTES_MAX
from .._runtime.options import OTHER_NAMES, without_password
from ..base_saver import CACHE_BYTES
from ..saver import DynamoDBSaver
from . import fields
from .serde import EncryptionKey, Serde, made_serde, read_key

if TYPE_CHECKING:
    from langgraph.cache.dynamodb import DynamoDBCache
    from langgraph.store.dynamodb import DynamoDBStore


class TableOptions(fields.Options):
    """The options of the table, which the saver, the store and the cache share, and two that no constructor has."""

    table_name: str = Field(
        min_length=1,
        description="The name or ARN of the table. `setup()` or the template has created it. Saver, store and cache can"
        " share it.",
    )
    region_name: str | None = Field(
        default=None, min_length=1, description="The AWS region. By default boto3 finds it."
    )
    endpoint_url: Annotated[fields.Address, AfterValidator(without_password)] | None = Field(
        default=None,
        description="An endpoint other than AWS's own, such as `http://localhost:8000` for DynamoDB Local.",
    )
    session: fields.Reference | None = Field(
        default=None,
        description="A `boto3.Session`, whose credentials, region and profile all clients use. For a profile,"
        " `AWS_PROFILE` is enough. Its event handlers see blocking calls only.",
    )
    client: fields.Reference | None = Field(
        default=None,
        description="A boto3 DynamoDB client to use as it is, with its own region, endpoint and retries. It is never"
        " closed. Async methods call it in OS threads. You cannot combine it with the four options around it.",
    )
    client_config: fields.Reference | None = Field(
        default=None,
        description="A botocore `Config` that replaces the default one, retries included. That has short time-outs, TCP"
        " keep-alive and a pool of 64 connections.",
    )
    retry_seconds: fields.SecondsOrZero = Field(
        default=RETRY_SECONDS,
        description="For how many seconds to retry a request that is throttled, fails on AWS's side or gets no"
        " response; 0 sends it once. The same goes for unprocessed items of a batch. The last attempt may take as long"
        " as the time-outs allow, 13 seconds. A `client`, or one of your `client_config`, may retry within each"
        " attempt.",
    )
    serde: Serde | None = Field(
        default=None,
        description="The serializer, by default LangGraph's `JsonPlusSerializer`. `EncryptedSerializer`, and what"
        " derives from it, encrypts values and metadata. Ids, sizes and times stay readable.",
    )
    encryption_key: EncryptionKey | None = Field(
        default=None,
        description="Where the AES key is. With it, `serde` becomes an `EncryptedSerializer`.",
    )
    allow_unencrypted: bool = Field(
        default=False,
        description="Whether to read data that is not encrypted, or not bound to its place, although there is a key."
        " Use it only during a migration: somebody without the key may have written such data.",
    )
    bound_to: str | None = Field(
        default=None,
        min_length=1,
        description="The name of the table that encrypted data is bound to, if this one was restored or copied from"
        " it.",
    )
    on_event: fields.OnEvent = None
    setup: bool = Field(
        default=False,
        description="Whether to create a missing table, for development. On AWS, deploy the template.",
    )


class DynamoDBOptions(TableOptions):
    """The options of `DynamoDBSaver`."""

    other_names: ClassVar[Mapping[str, str]] = OTHER_NAMES

    ttl_seconds: fields.Ttl | None = Field(
        default=None,
        description="Seconds after which a checkpoint expires, counted from its last use, up to 31,622,400,000: a"
        " thousand years. By default never. A thread keeps the ttl of its first put; a copy takes the"
        " saver's. If the newest checkpoint of a namespace has expired, the namespace has no state.",
    )
    share_equal_pieces: bool = Field(
        default=True,
        description="Whether a checkpoint reuses equal stored pieces, so that a step costs only what it adds. `False`"
        " stores each changed value as a whole, and so hides from readers of the table which parts of a thread's values"
        " are equal. Channels that a step did not change are still shared.",
    )
    checkpoint_bytes_max: fields.Positive = Field(
        default=CHECKPOINT_BYTES_MAX,
        description="The maximum size in bytes, serialized, of a checkpoint's values together, or of its pending"
        " writes. Larger ones are neither stored nor read, because a few small items can name gigabytes.",
    )
    cache_bytes: fields.NotNegative = Field(
        default=CACHE_BYTES,
        description="The maximum memory for the cache of recent checkpoints and their segments, in bytes. It saves"
        " reads. It changes a result only if you put a checkpoint again with other values, which LangGraph does not do;"
        " see `put`.",
    )
    owner_from: fields.OwnerFrom = None
    owner_key: EncryptionKey | None = Field(
        default=None,
        description="The key of the digests that the table holds instead of owners' names, if `serde` encrypts: 16 to"
        " 64 secret bytes, the same in every process.",
    )


class DynamoDBIndexOptions(fields.DistanceIndexOptions):
    """The index of `DynamoDBStore`, with an option for an engine that compares the embeddings."""

    engine: fields.Reference | None = Field(
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
        return {**super().config(), "search": fields.made_object("index.engine", self.engine)}


class DynamoDBStoreOptions(TableOptions, fields.StoreOptions):
    """The options of `DynamoDBStore`."""

    serde: Serde | None = Field(
        default=None,
        description="LangGraph's `EncryptedSerializer` encrypts values and vectors, bound to their place. Values are"
        " JSON data with any serializer. Namespaces and keys stay readable.",
    )
    index: DynamoDBIndexOptions | None = Field(
        default=None,
        description="Lets the store embed texts and search by similarity. Takes `dims`, `embed` and `fields` of"
        " LangGraph's `IndexConfig`, and `distance_type`: `cosine`, `l2` or `inner_product`. `search` chooses what"
        " compares vectors: `exact`, this process (needs numpy, from the extra `vectors`); or a `VectorEngine`.",
    )
    consistent_read: bool = Field(
        default=True,
        description="Whether reads are strongly consistent. Eventually consistent ones cost half.",
    )
    search_bytes_max: fields.Positive = Field(
        default=SEARCH_BYTES_MAX,
        description="The maximum number of bytes that one search may read. A search that needs more raises"
        " `SearchLimitError`.",
    )


class DynamoDBCacheOptions(TableOptions):
    """The options of `DynamoDBCache`."""

    retry_seconds: fields.SecondsOrZero = Field(
        default=CACHE_RETRY_SECONDS,
        description="For how many seconds to retry a request; then it is a miss. The last attempt may take 3 seconds"
        " more: 1 to connect, 2 for the response.",
    )
    serde: Serde | None = Field(
        default=None,
        description="The serializer, by default LangGraph's `JsonPlusSerializer` without pickle. `EncryptedSerializer`"
        " encrypts values, bound to their namespace and key.",
    )
    consistent_read: bool = Field(
        default=False,
        description="Whether reads are strongly consistent. Eventually consistent ones cost half, and may miss a value"
        " that was cached a moment ago.",
    )
    prefix: fields.CachePrefix = ()
    owner_key: EncryptionKey | None = Field(
        default=None,
        description="The key of the digests that the table holds instead of the keys of entries, which are hashes of"
        " inputs. It is needed if `serde` encrypts: 16 to 64 secret bytes, the same in every process.",
    )


def make_saver(options: DynamoDBOptions) -> DynamoDBSaver:
    """Make a saver from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError, CheckpointerInputError: An option cannot be used.
    """
    return DynamoDBSaver(**_with_owner_key(options))


def make_store(options: DynamoDBStoreOptions) -> DynamoDBStore:
    """Make a store from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError, CheckpointerInputError: An option cannot be used.
    """
    from langgraph.store.dynamodb import DynamoDBStore  # noqa: PLC0415 - a saver does not need it.

    return DynamoDBStore(**_given(options) | options.configs())


def make_cache(options: DynamoDBCacheOptions) -> DynamoDBCache[Any]:
    """Make a cache from its options. Only a key in Secrets Manager takes a request.

    Raises:
        OptionError, CheckpointerInputError: An option cannot be used.
    """
    from langgraph.cache.dynamodb import DynamoDBCache  # noqa: PLC0415 - a saver does not need it.

    return DynamoDBCache(**_with_owner_key(options))


def _with_owner_key(options: DynamoDBOptions | DynamoDBCacheOptions) -> dict[str, Any]:
    given = _given(options)
    if options.owner_key is not None:
        given["owner_key"] = read_key(options.owner_key, given["session"], "owner_key")
    return given


def _given(options: TableOptions) -> dict[str, Any]:
    """Return what is given of the constructor's options, with the objects that they name."""
    given = {name: getattr(options, name) for name in options.model_fields_set - {"setup", "encryption_key"}}
    for name in ("session", "client", "client_config"):
        given[name] = fields.made_object(name, getattr(options, name))
    given["on_event"] = fields.made_function("on_event", options.on_event)
    given["serde"] = made_serde(options.serde, options.encryption_key, given["session"])
    return given


_INSTALL = "langgraph-dynamodb"
TYPES = {
    ("dynamodb", "checkpointer"): fields.ComponentType(DynamoDBOptions, make_saver, _INSTALL),
    ("dynamodb", "store"): fields.ComponentType(DynamoDBStoreOptions, make_store, _INSTALL),
    ("dynamodb", "cache"): fields.ComponentType(DynamoDBCacheOptions, make_cache, _INSTALL),
}
