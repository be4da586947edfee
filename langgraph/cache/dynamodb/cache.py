"""`DynamoDBCache`: LangGraph's node cache on the saver's table.

`TableCache` has the methods, for the gateway's client too. `make format` writes the async methods from the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langgraph.cache.base import BaseCache, FullKey, Namespace, ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph.cache.dynamodb.entries import CacheStorage, Values, clear, get, put
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import (
    CACHE_CONNECT_SECONDS,
    CACHE_READ_SECONDS,
    CACHE_RETRY_SECONDS,
)
from langgraph.checkpoint.dynamodb._operations.setup import setup
from langgraph.checkpoint.dynamodb._runtime.accounting import table_observer
from langgraph.checkpoint.dynamodb._runtime.connection import bound_name, connect
from langgraph.checkpoint.dynamodb._runtime.events import Events, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import check_codec_options, check_flag, check_on_event
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op
from langgraph.checkpoint.dynamodb._runtime.transport_owner import TransportOwner
from langgraph.checkpoint.dynamodb._runtime.warm_up import first_read
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

if TYPE_CHECKING:
    import boto3
    from aioboto3 import Session as AsyncSession
    from aiobotocore.session import AioSession
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient


class TableCache(TransportOwner, BaseCache[ValueT], ABC):
    """A LangGraph node cache whose values are in a table, which it reaches directly, or through a gateway."""

    def __init__(self, *, serde: SerializerProtocol | None, prefix: Sequence[str]) -> None:
        """Check what both kinds of caches are configured with."""
        given: object = prefix
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(map(_is_label, given)):
            msg = f"prefix is {given!r}; give a tuple of labels"
            raise CheckpointerInputError(msg)
        super().__init__(serde=serde)
        self._prefix = tuple(prefix)

    # The operations of its methods

    @abstractmethod
    def _get(self, keys: Sequence[FullKey]) -> Op[dict[FullKey, ValueT]]:
        """Read values."""

    @abstractmethod
    def _put(self, values: Values) -> Op[None]:
        """Cache values."""

    @abstractmethod
    def _clear(self, namespaces: Sequence[Namespace] | None) -> Op[None]:
        """Delete the values of namespaces, or of all under the prefix."""

    # LangGraph's contract

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Read the values that are cached and have not expired.

        Args:
            keys: Namespaces with keys.

        Returns:
            The values that were found, by namespace and key.
        """
        return self.runner.run(self._get(keys), "get")

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """Read the values that are cached and have not expired.

        Args:
            keys: Namespaces with keys.

        Returns:
            The values that were found, by namespace and key.
        """
        return await self.runner.arun(self._get(keys), "get")

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Cache values.

        Args:
            pairs: By namespace and key, the value and its ttl in seconds; `None` keeps it for ever.
        """
        self.runner.run(self._put(dict(pairs)), "set")

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, int | None]]) -> None:
        """Cache values.

        Args:
            pairs: By namespace and key, the value and its ttl in seconds; `None` keeps it for ever.
        """
        await self.runner.arun(self._put(dict(pairs)), "set")

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Delete the values of some namespaces, or of all under the cache's prefix.

        Unlike the other methods it raises the errors of its requests.

        Args:
            namespaces: The namespaces, each by itself and not what is below it; `None` for all.
        """
        self.runner.run(self._clear(namespaces), "clear")

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Delete the values of some namespaces, or of all under the cache's prefix.

        Unlike the other methods it raises the errors of its requests.

        Args:
            namespaces: The namespaces, each by itself and not what is below it; `None` for all.
        """
        await self.runner.arun(self._clear(namespaces), "clear")


def _is_label(label: object) -> bool:
    return isinstance(label, str) and label != ""


class DynamoDBCache(TableCache[ValueT]):
    """A LangGraph node cache on one DynamoDB table, for sync and async code alike.

    The cache never makes a run fail. Throttling, damaged entries, values over 390 KB compressed, or a missing table
    count as a miss, with a line in the log.

    Example:
        ```python
        from langgraph.cache.dynamodb import DynamoDBCache
        from langgraph.types import CachePolicy

        builder.add_node("slow", slow, cache_policy=CachePolicy(ttl=3600))
        graph = builder.compile(cache=DynamoDBCache("langgraph-checkpoints"))
        ```

    Args:
        table_name: Name or ARN of a table created by `setup()`, or from the saver's template. The saver's own
            table is fine.
        region_name: As for `DynamoDBSaver`, as are the options up to `client_config`.
        endpoint_url: An endpoint other than AWS's own, such as DynamoDB Local's.
        session: A `boto3.Session` for the blocking client.
        async_session: An `aioboto3.Session`, or a session of aiobotocore, for the async clients.
        client: A boto3 DynamoDB client to use as it is. It is never closed.
        client_config: A botocore `Config` that replaces the cache's own (1 second to connect, 2 to answer).
        retry_seconds: For how many seconds to retry a request that is throttled or gets no response. The last attempt
            may take 3 seconds more.
        serde: The serializer, by default LangGraph's `JsonPlusSerializer` without pickle. `EncryptedSerializer`
            encrypts values, bound to their place.
        consistent_read: Whether reads are strongly consistent. Eventually consistent ones cost half, and may miss a
            value that was cached a moment ago.
        allow_unencrypted: Whether a cache with a cipher also reads values that are not encrypted.
        bound_to: The name of the table that encrypted values are bound to, if this one was restored from it.
        prefix: Labels in front of every namespace, such as the tenant of `infra/tenant.yaml`. `clear()` deletes only
            entries under it.
        on_event: A function that receives an `Event` for each operation, as for `DynamoDBSaver`. Its tenant is the
            first label of `prefix`. If a failure is logged as a warning, the event has it as its error.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """

    def __init__(
        self,
        table_name: str,
        *,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        session: boto3.Session | None = None,
        async_session: AsyncSession | AioSession | None = None,
        client: DynamoDBClient | None = None,
        client_config: Config | None = None,
        retry_seconds: float = CACHE_RETRY_SECONDS,
        serde: SerializerProtocol | None = None,
        consistent_read: bool = False,
        allow_unencrypted: bool = False,
        bound_to: str | None = None,
        prefix: Sequence[str] = (),
        on_event: OnEvent | Events | None = None,
    ) -> None:
        """Check the options. No request is made and no client is opened before the first call."""
        clients = connect(
            table_name,
            region_name=region_name,
            endpoint_url=endpoint_url,
            session=session,
            async_session=async_session,
            client=client,
            client_config=client_config,
            retry_seconds=retry_seconds,
            connect_seconds=CACHE_CONNECT_SECONDS,
            read_seconds=CACHE_READ_SECONDS,
        )
        check_codec_options(serde=serde, allow_unencrypted=allow_unencrypted, bound_to=bound_to)
        check_on_event(on_event)
        check_flag("consistent_read", consistent_read)
        super().__init__(serde=serde, prefix=prefix)
        # Without a prefix the first label is LangGraph's own.
        self._own(clients, table_observer(on_event, table_name, "cache.", labels_are_tenants=bool(prefix)))
        self.storage = CacheStorage(
            codec=Codec(
                self.serde, bound_to=bound_name(table_name, bound_to), allow_unencrypted=allow_unencrypted
            ),
            table=Table(table_name, retry_seconds),
            consistent_read=consistent_read,
            prefix=self._prefix,
        )
        """The storage of the cache's operations; public inside the package."""

    def _get(self, keys: Sequence[FullKey]) -> Op[dict[FullKey, ValueT]]:
        return get(self.storage, keys)

    def _put(self, values: Values) -> Op[None]:
        return put(self.storage, values)

    def _clear(self, namespaces: Sequence[Namespace] | None) -> Op[None]:
        return clear(self.storage, namespaces)

    def _first_request(self) -> Call:
        return first_read(self.storage.table.name)

    # The table

    def setup(self) -> None:
        """Create the table for development, or check it if it exists; as `DynamoDBSaver.setup`.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, or there are no
                credentials or no region.
        """
        self.runner.run(setup(self.storage.table))

    async def asetup(self) -> None:
        """Create the table for development, or check it if it exists; as `DynamoDBSaver.setup`.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, or there are no
                credentials or no region.
        """
        await self.runner.arun(setup(self.storage.table))
