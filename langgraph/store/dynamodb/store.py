"""`DynamoDBStore`: LangGraph's store on the saver's table. It checks its options and runs operations.

`TableStore` has the methods, for the gateway's client too. `make format` writes the public async methods from the
others.
"""

from __future__ import annotations

import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    Item,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
)
from typing_extensions import Unpack

from langgraph.checkpoint.dynamodb._format.limits import RETRY_SECONDS, SEARCH_BYTES_MAX
from langgraph.checkpoint.dynamodb._operations.setup import TableOwner
from langgraph.checkpoint.dynamodb._runtime.drivers import TransportOwner
from langgraph.checkpoint.dynamodb._runtime.options import TableKeywords, check_bytes, check_flag, connect
from langgraph.checkpoint.dynamodb._runtime.steps import Op as Operation
from langgraph.checkpoint.dynamodb._runtime.steps import Stream
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError

from . import memory_items, similarity
from .batch import (
    IMPORTED_AT_ONCE,
    Batch,
    Outcome,
    check_root_label,
    checked_prefix,
    export_items,
    imported,
    new_memory,
    run_batch,
    ttl_seconds,
)
from .erase import remove_under
from .reads import FoundItem, FoundItems, MemoryItem
from .resources import LISTINGS_BYTES_MAX, Listings, StoreStorage
from .search import Order

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

logger = logging.getLogger(__name__)

_TTL_OPTIONS = ("default_ttl", "omit_expired", "refresh_on_read", "sweep_interval_minutes")


class TableStore(TransportOwner, BaseStore, ABC):
    """A LangGraph store whose memories are in a table, which it reaches directly, or through a gateway."""

    supports_ttl = True

    def __init__(self, index: similarity.Embedder | None, ttl: TTLConfig | None) -> None:
        """Check what both kinds of stores are configured with."""
        super().__init__()
        self.ttl_config = _checked_ttl(ttl)
        self._embedder = index
        self.index_config = None if index is None else index.config
        """The `index` that the store was given."""
        self._says_that_queries_are_ignored = True

    # The operations of its methods

    @abstractmethod
    def _batch(self, batch: Batch) -> Operation[Outcome]:
        """Run a batch."""

    @abstractmethod
    def _remove(self, namespace_prefix: tuple[str, ...], *, is_erasure: bool) -> Operation[int]:
        """Delete the memories under a namespace, or those that have expired; return how many there were."""

    @abstractmethod
    def _export_items(self, namespace_prefix: tuple[str, ...]) -> Stream[dict[str, Any]]:
        """Read the memories under a namespace as records."""

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings that `index` names; `None` if the store has no index."""
        return None if self._embedder is None else self._embedder.embeddings

    # LangGraph's contract: `get`, `put` and the other methods of `BaseStore` make batches of these

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see the state before the puts, and the last of several puts of a memory counts.

        Args:
            ops: `GetOp`, `SearchOp`, `PutOp` and `ListNamespacesOp`, in any order.

        Returns:
            The results in the order of the operations; `None` for a put.

        Raises:
            InvalidNamespaceError: A namespace has a label that LangGraph refuses. Nothing was stored.
            CheckpointerInputError: A limit, a filter, a ttl, a value or a key cannot be used. Nothing was stored.
            CheckpointSerializationError: A value is not JSON data. Nothing was stored.
            SearchLimitError: A search would read more than `search_bytes_max`.
            CheckpointCorruptionError: Stored data is damaged.
        """
        outcome = self._run(self._checked(ops))
        return outcome.results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see the state before the puts, and the last of several puts of a memory counts.

        Args:
            ops: `GetOp`, `SearchOp`, `PutOp` and `ListNamespacesOp`, in any order.

        Returns:
            The results in the order of the operations; `None` for a put.

        Raises:
            InvalidNamespaceError: A namespace has a label that LangGraph refuses. Nothing was stored.
            CheckpointerInputError: A limit, a filter, a ttl, a value or a key cannot be used. Nothing was stored.
            CheckpointSerializationError: A value is not JSON data. Nothing was stored.
            SearchLimitError: A search would read more than `search_bytes_max`.
            CheckpointCorruptionError: Stored data is damaged.
        """
        outcome = await self._arun(self._checked(ops))
        return outcome.results

    def get(
        self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None
    ) -> MemoryItem | None:
        """Read a memory.

        Args:
            namespace: The memory's namespace.
            key: The memory's key.
            refresh_ttl: Whether to renew its ttl; `None`: as the store is configured.

        Returns:
            The memory with its `revision`; `None` if there is none.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
            CheckpointerInputError: The key cannot be used.
        """
        return cast("MemoryItem | None", super().get(namespace, key, refresh_ttl=refresh_ttl))

    async def aget(
        self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None
    ) -> MemoryItem | None:
        """Read a memory.

        Args:
            namespace: The memory's namespace.
            key: The memory's key.
            refresh_ttl: Whether to renew its ttl; `None`: as the store is configured.

        Returns:
            The memory with its `revision`; `None` if there is none.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
            CheckpointerInputError: The key cannot be used.
        """
        return cast("MemoryItem | None", await super().aget(namespace, key, refresh_ttl=refresh_ttl))

    def search(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        order: Order = "updated_at",
        after: Item | None = None,
    ) -> FoundItems:
        """Search under a namespace. With a prefix of two labels or more, it reads only the memories under it.

        Args:
            namespace_prefix: The labels that the namespaces begin with; `()` for all.
            query: A text to compare memories with. A store without an `index` ignores it, as LangGraph's stores do, and
                says so once in the log: the memories have no score, and come the newest first.
            filter: Keys and values that a memory must have, or operators: `$eq $ne $gt $gte $lt $lte`.
            limit: The maximum number of memories to return.
            offset: How many matching memories to leave out first.
            refresh_ttl: Whether to renew the ttls of the returned memories; `None`: as the store is configured.
            order: `"updated_at"` or `"created_at"`, the newest first, or `"key"`, which reads no more than it returns.
            after: The last memory of the page before. The search continues behind it.

        Returns:
            The memories, each with its `revision`, and with a `score` if there is a query.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
            CheckpointerInputError: An argument cannot be used.
            SearchLimitError: The search would read more than `search_bytes_max`.
        """
        op = SearchOp(namespace_prefix, filter, limit, offset, query, self._refreshes(refresh_ttl))
        outcome = self._run(self._checked([op], order, after))
        return FoundItems(cast("list[FoundItem]", outcome.results[0]))

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        order: Order = "updated_at",
        after: Item | None = None,
    ) -> FoundItems:
        """Search under a namespace. With a prefix of two labels or more, it reads only the memories under it.

        Args:
            namespace_prefix: The labels that the namespaces begin with; `()` for all.
            query: A text to compare memories with. A store without an `index` ignores it, as LangGraph's stores do, and
                says so once in the log: the memories have no score, and come the newest first.
            filter: Keys and values that a memory must have, or operators: `$eq $ne $gt $gte $lt $lte`.
            limit: The maximum number of memories to return.
            offset: How many matching memories to leave out first.
            refresh_ttl: Whether to renew the ttls of the returned memories; `None`: as the store is configured.
            order: `"updated_at"` or `"created_at"`, the newest first, or `"key"`, which reads no more than it returns.
            after: The last memory of the page before. The search continues behind it.

        Returns:
            The memories, each with its `revision`, and with a `score` if there is a query.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
            CheckpointerInputError: An argument cannot be used.
            SearchLimitError: The search would read more than `search_bytes_max`.
        """
        op = SearchOp(namespace_prefix, filter, limit, offset, query, self._refreshes(refresh_ttl))
        outcome = await self._arun(self._checked([op], order, after))
        return FoundItems(cast("list[FoundItem]", outcome.results[0]))

    # Beyond the contract

    def put_if(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any] | None,
        *,
        revision: str | None,
        index: Literal[False] | list[str] | None = None,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> str | None:
        """Store or delete a memory only if it still has the revision that you read: compare and set.

        Args:
            namespace: The memory's namespace.
            key: The memory's key.
            value: The new value; `None` deletes the memory.
            revision: The `revision` of the memory that `get` or `search` returned; `None` if there must be none.
            index: As for `put`.
            ttl: As for `put`.

        Returns:
            The new revision; `None` if another put or a deletion came first, and nothing was stored.

        Raises:
            InvalidNamespaceError: The namespace is one that LangGraph's `put` or `delete` refuses.
            CheckpointerInputError: An argument cannot be used.
            CheckpointSerializationError: The value is not JSON data.
        """
        outcome = self._run(self._conditional(namespace, key, value, revision, index, ttl))
        return outcome.revisions[0]

    async def aput_if(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any] | None,
        *,
        revision: str | None,
        index: Literal[False] | list[str] | None = None,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> str | None:
        """Store or delete a memory only if it still has the revision that you read: compare and set.

        Args:
            namespace: The memory's namespace.
            key: The memory's key.
            value: The new value; `None` deletes the memory.
            revision: The `revision` of the memory that `aget` or `asearch` returned; `None` if there must be none.
            index: As for `aput`.
            ttl: As for `aput`.

        Returns:
            The new revision; `None` if another put or a deletion came first, and nothing was stored.

        Raises:
            InvalidNamespaceError: The namespace is one that LangGraph's `aput` or `adelete` refuses.
            CheckpointerInputError: An argument cannot be used.
            CheckpointSerializationError: The value is not JSON data.
        """
        outcome = await self._arun(self._conditional(namespace, key, value, revision, index, ttl))
        return outcome.revisions[0]

    def delete_namespace(self, namespace_prefix: Sequence[str]) -> int:
        """Delete every memory under a namespace, with its vectors; `()` deletes all.

        It also removes segments and vectors that calls which died have left. If the call fails, repeat it to continue.
        Memories that are put while it runs may stay.

        Args:
            namespace_prefix: The labels that the namespaces begin with.

        Returns:
            How many memories were deleted.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
        """
        removal = self._remove(checked_prefix(namespace_prefix), is_erasure=True)
        return self.runner.run(removal, "delete_namespace")

    async def adelete_namespace(self, namespace_prefix: Sequence[str]) -> int:
        """Delete every memory under a namespace, with its vectors; `()` deletes all.

        It also removes segments and vectors that calls which died have left. If the call fails, repeat it to continue.
        Memories that are put while it runs may stay.

        Args:
            namespace_prefix: The labels that the namespaces begin with.

        Returns:
            How many memories were deleted.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
        """
        removal = self._remove(checked_prefix(namespace_prefix), is_erasure=True)
        return await self.runner.arun(removal, "delete_namespace")

    def sweep_ttl(self, namespace_prefix: Sequence[str] = ()) -> int:
        """Delete expired memories, which DynamoDB does later by itself, and leftovers of processes that died.

        It reads everything under the namespace, so call it rarely, if at all.

        Args:
            namespace_prefix: The labels that the namespaces begin with.

        Returns:
            How many memories had expired.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
        """
        removal = self._remove(checked_prefix(namespace_prefix), is_erasure=False)
        return self.runner.run(removal, "sweep_ttl")

    async def asweep_ttl(self, namespace_prefix: Sequence[str] = ()) -> int:
        """Delete expired memories, which DynamoDB does later by itself, and leftovers of processes that died.

        It reads everything under the namespace, so call it rarely, if at all.

        Args:
            namespace_prefix: The labels that the namespaces begin with.

        Returns:
            How many memories had expired.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
        """
        removal = self._remove(checked_prefix(namespace_prefix), is_erasure=False)
        return await self.runner.arun(removal, "sweep_ttl")

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Start nothing: DynamoDB removes expired memories by itself. LangGraph's other stores need a sweeper.

        Args:
            sweep_interval_minutes: Has no effect, as the option of `ttl` has none.

        Returns:
            A future that is done.
        """
        del sweep_interval_minutes
        started: Future[None] = Future()
        started.set_result(None)
        return started

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop nothing, since there is no sweeper.

        Args:
            timeout: Has no effect.

        Returns:
            True.
        """
        del timeout
        return True

    def export_items(self, namespace_prefix: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Read every memory under a namespace as a record that JSON can represent, for `import_items`.

        Args:
            namespace_prefix: The labels that the namespaces begin with.

        Yields:
            Records with `namespace`, `key`, `value`, `created_at`, `updated_at`, `ttl_minutes` and `expires_at`.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
        """
        exported = self._export_items(checked_prefix(namespace_prefix))
        return self.runner.stream(exported, "export_items")

    def aexport_items(self, namespace_prefix: Sequence[str] = ()) -> AsyncIterator[dict[str, Any]]:
        """Read every memory under a namespace as a record that JSON can represent, for `aimport_items`.

        Args:
            namespace_prefix: The labels that the namespaces begin with.

        Yields:
            Records with `namespace`, `key`, `value`, `created_at`, `updated_at`, `ttl_minutes` and `expires_at`.

        Raises:
            InvalidNamespaceError: A label is one that LangGraph refuses.
        """
        exported = self._export_items(checked_prefix(namespace_prefix))
        return self.runner.astream(exported, "export_items")

    def import_items(self, records: Iterable[Mapping[str, Any]]) -> int:
        """Store records of `export_items` with their times. A memory that is newer than its record stays.

        So you can repeat an import that failed. It embeds the texts of values again.

        Args:
            records: The records.

        Returns:
            How many memories were stored.

        Raises:
            CheckpointerInputError: A record has another form. Those before it may have been stored.
        """
        count = 0
        for batch in self._imported(records):
            outcome = self._run(batch)
            count += sum(each is not None for each in outcome.revisions)
        return count

    async def aimport_items(self, records: Iterable[Mapping[str, Any]]) -> int:
        """Store records of `aexport_items` with their times. A memory that is newer than its record stays.

        So you can repeat an import that failed. It embeds the texts of values again.

        Args:
            records: The records.

        Returns:
            How many memories were stored.

        Raises:
            CheckpointerInputError: A record has another form. Those before it may have been stored.
        """
        count = 0
        for batch in self._imported(records):
            outcome = await self._arun(batch)
            count += sum(each is not None for each in outcome.revisions)
        return count

    def _run(self, batch: Batch) -> Outcome:
        batch.embed()
        return self.runner.run(self._batch(batch), batch.name)

    async def _arun(self, batch: Batch) -> Outcome:
        await batch.aembed()
        return await self.runner.arun(self._batch(batch), batch.name)

    def _checked(self, ops: Iterable[Op], order: Order = "updated_at", after: Item | None = None) -> Batch:
        """Check operations, and say once that queries need an index."""
        batch = Batch(self._embedder, ops, order=order, after=after)
        if batch.ignores_query and self._says_that_queries_are_ignored:
            self._says_that_queries_are_ignored = False
            logger.warning(
                "A search has a query, and this store has no index: it ignores the query, and returns the newest"
                " memories. Give the store an index to search by similarity."
            )
        return batch

    def _imported(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Batch]:
        source = iter(records)
        while group := list(itertools.islice(source, IMPORTED_AT_ONCE)):
            batch = Batch(self._embedder, [])
            for each in group:
                batch.add_put(imported(each, self._embedder), "import_items")
            yield batch

    def _conditional(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any] | None,
        revision: object,
        index: Literal[False] | list[str] | None,
        ttl: float | NotProvided | None,
    ) -> Batch:
        minutes = (self.ttl_config or {}).get("default_ttl") if isinstance(ttl, NotProvided) else ttl
        op = PutOp(namespace, str(key), value, index=index, ttl=minutes)
        if revision is not None and (not isinstance(revision, str) or not revision):
            msg = f"revision is {revision!r}; give the revision of the memory that you read, or None if there is none"
            raise CheckpointerInputError(msg)
        if value is None and revision is None:
            raise CheckpointerInputError("value=None deletes; pass as revision= the revision that you read")
        new = new_memory(op, self._embedder, expected=memory_items.Expected(revision))
        if value is not None:
            check_root_label(namespace)
        batch = Batch(self._embedder, [])
        batch.add_put(new, "put_if")
        return batch

    def _refreshes(self, refresh_ttl: bool | None) -> bool:
        return (self.ttl_config or {}).get("refresh_on_read", True) if refresh_ttl is None else refresh_ttl


class DynamoDBStore(TableOwner, TableStore):
    """A LangGraph store on one DynamoDB table, for sync and async code alike.

    You can use the store as a plain object, from several OS threads and on any number of event loops. As a context
    manager it also closes its clients.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver
        from langgraph.store.dynamodb import DynamoDBStore

        store = DynamoDBStore("langgraph-checkpoints")
        graph = builder.compile(checkpointer=DynamoDBSaver("langgraph-checkpoints"), store=store)
        store.put(("memories", "user-1"), "food", {"likes": "pizza"})
        ```

    Args:
        index: Lets the store embed texts and search by similarity. Takes `dims`, `embed` and `fields` of LangGraph's
            `IndexConfig`, and `distance_type`: `cosine`, `l2` or `inner_product`. `search` chooses what compares
            vectors: `exact`, this process (needs numpy, from the extra `vectors`); or a `VectorEngine`.
        ttl: When memories expire, as LangGraph's `TTLConfig`: `default_ttl` in minutes, and `refresh_on_read`. In the
            table, expired memories are always omitted, and DynamoDB removes them.
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
        retry_seconds: For how many seconds to retry a request that is throttled, fails on AWS's side or gets no
            response; 0 sends it once. The same goes for unprocessed items of a batch. The last attempt may take as long
            as the time-outs allow, 13 seconds. A `client`, or one of your `client_config`, may retry within each
            attempt.
        serde: LangGraph's `EncryptedSerializer` encrypts values and vectors, bound to their place. Values are JSON data
            with any serializer. Namespaces and keys stay readable.
        allow_unencrypted: Whether to read data that is not encrypted, or not bound to its place, although there is a
            key. Use it only during a migration: somebody without the key may have written such data.
        bound_to: The name of the table that encrypted data is bound to, if this one was restored or copied from it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        consistent_read: Whether reads are strongly consistent. Eventually consistent ones cost half.
        search_bytes_max: The maximum number of bytes that one search may read. A search that needs more raises
            `SearchLimitError`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        CheckpointerConfigurationError: A package that `index` needs is not installed, or its `search` cannot encrypt
            embeddings or keep tenants apart.
    """

    def __init__(
        self,
        table_name: str,
        *,
        retry_seconds: float = RETRY_SECONDS,
        index: similarity.StoreIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        serde: SerializerProtocol | None = None,
        consistent_read: bool = True,
        search_bytes_max: int = SEARCH_BYTES_MAX,
        **options: Unpack[TableKeywords],
    ) -> None:
        """Check the options. No request is made and no client is opened before the first call."""
        connection = connect(DynamoDBStore, table_name, options, serde=serde, retry_seconds=retry_seconds)
        check_flag("consistent_read", consistent_read)
        check_bytes("search_bytes_max", search_bytes_max, at_least=1)
        codec = connection.codec(JsonPlusSerializer() if serde is None else serde)
        storage = StoreStorage(
            codec=codec,
            table=connection.table,
            consistent_read=consistent_read,
            search_bytes_max=search_bytes_max,
            listings=Listings(LISTINGS_BYTES_MAX),
        )
        self._index = None if index is None else similarity.Index(index, is_encrypted=codec.encrypts)
        super().__init__(self._index, ttl)
        self._connect(connection, "store.")
        self.storage = storage if self._index is None else replace(storage, engine=self._index.engine)
        """The storage of the store's operations; public inside the package."""

    # The operations

    def _batch(self, batch: Batch) -> Operation[Outcome]:
        return run_batch(self.storage, self._index, batch)

    def _remove(self, namespace_prefix: tuple[str, ...], *, is_erasure: bool) -> Operation[int]:
        return remove_under(self.storage, namespace_prefix, is_erasure=is_erasure)

    def _export_items(self, namespace_prefix: tuple[str, ...]) -> Stream[dict[str, Any]]:
        return export_items(self.storage, namespace_prefix)


def _checked_ttl(ttl: TTLConfig | None) -> TTLConfig | None:
    if ttl is None:
        return None
    given: object = ttl
    if not isinstance(given, Mapping):
        msg = f'ttl is {given!r}; give a dict such as {{"default_ttl": 60}}, in minutes'
        raise CheckpointerInputError(msg)
    unknown = [name for name in ttl if name not in _TTL_OPTIONS]
    if unknown:
        msg = f"ttl has no option {unknown[0]!r}; use one of {', '.join(_TTL_OPTIONS)}"
        raise CheckpointerInputError(msg)
    ttl_seconds(ttl.get("default_ttl"))
    check_flag("refresh_on_read", ttl.get("refresh_on_read", True))
    return ttl
