"""`DynamoDBCache`: LangGraph's node cache on the saver's table.

`TableCache` has the methods, for the gateway's client too. `make format` writes the async methods from the others.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from langgraph.cache.base import BaseCache, FullKey, Namespace, ValueT
from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Unpack

from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._operations.setup import TableOwner
from langgraph.checkpoint.dynamodb._runtime.drivers import TransportOwner
from langgraph.checkpoint.dynamodb._runtime.options import (
    TableKeywords,
    check_flag,
    check_owner_options,
    connect,
)
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

from .entries import CacheStorage, Values, checked_owner_key, clear, get, put


class TableCache(TransportOwner, BaseCache[ValueT], ABC):
    """A LangGraph node cache whose values are in a table, which it reaches directly, or through a gateway."""

    def __init__(self, *, serde: SerializerProtocol | None, prefix: Sequence[str]) -> None:
        """Check what both kinds of caches are configured with."""
        given: object = prefix
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(map(_is_label, given)):
            raise CheckpointerInputError(f"prefix is {given!r}; give a tuple of labels")
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


class DynamoDBCache(TableOwner, TableCache[ValueT]):
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
        table_name: The name or ARN of the table. `setup()` or the template has created it. Saver, store and cache can
            share it.
        region_name: The AWS region. By default boto3 finds it.
        endpoint_url: An endpoint other than AWS's own, such as `http://localhost:8000` for DynamoDB Local.
        session: A `boto3.Session`, whose credentials, region and profile all clients use. For a profile, `AWS_PROFILE`
            is enough. Its event handlers see blocking calls only.
        client: A boto3 DynamoDB client to use as it is, with its own region, endpoint and retries. It is never closed.
            Async methods call it in OS threads. You cannot combine it with the four options around it.
        client_config: A botocore `Config` that replaces the default one, retries included. That has short time-outs,
            TCP keep-alive and a pool of 64 connections.
        retry_seconds: For how many seconds to retry a request; then it is a miss. The last attempt may take 3 seconds
            more: 1 to connect, 2 for the response.
        serde: The serializer, by default LangGraph's `JsonPlusSerializer` without pickle. `EncryptedSerializer`
            encrypts values, bound to their namespace and key.
        allow_unencrypted: Whether to read data that is not encrypted, or not bound to its place, although there is a
            key. Use it only during a migration: somebody without the key may have written such data.
        bound_to: The name of the table that encrypted data is bound to, if this one was restored or copied from it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        consistent_read: Whether reads are strongly consistent. Eventually consistent ones cost half, and may miss a
            value that was cached a moment ago.
        prefix: Labels in front of every namespace, such as the tenant. `clear()` deletes only entries under them.
        owner_key: The key of the digests that the table holds instead of the keys of entries, which are hashes of
            inputs. It is needed if `serde` encrypts: 16 to 64 secret bytes, the same in every process.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """

    def __init__(
        self,
        table_name: str,
        *,
        retry_seconds: float = limits.CACHE_RETRY_SECONDS,
        serde: SerializerProtocol | None = None,
        consistent_read: bool = False,
        prefix: Sequence[str] = (),
        owner_key: bytes | None = None,
        **options: Unpack[TableKeywords],
    ) -> None:
        """Check the options. No request is made and no client is opened before the first call."""
        connection = connect(
            DynamoDBCache,
            table_name,
            options,
            serde=serde,
            retry_seconds=retry_seconds,
            connect_seconds=limits.CACHE_CONNECT_SECONDS,
            read_seconds=limits.CACHE_READ_SECONDS,
        )
        check_flag("consistent_read", consistent_read)
        check_owner_options(owner_from=None, owner_key=owner_key)
        super().__init__(serde=serde, prefix=prefix)
        # Without a prefix the first label is LangGraph's own.
        self._connect(connection, "cache.", labels_are_tenants=bool(prefix))
        self.storage = CacheStorage(
            codec=connection.codec(self.serde),
            table=connection.table,
            consistent_read=consistent_read,
            prefix=self._prefix,
            owner_key=owner_key,
        )
        """The storage of the cache's operations; public inside the package."""
        if self.storage.codec.encrypts:
            checked_owner_key(owner_key)

    def _get(self, keys: Sequence[FullKey]) -> Op[dict[FullKey, ValueT]]:
        return get(self.storage, keys)

    def _put(self, values: Values) -> Op[None]:
        return put(self.storage, values)

    def _clear(self, namespaces: Sequence[Namespace] | None) -> Op[None]:
        return clear(self.storage, namespaces)
