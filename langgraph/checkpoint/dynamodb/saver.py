"""`DynamoDBSaver`: the checkpoint saver for LangGraph. It checks its options and runs operations, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Concatenate

from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Unpack, override

from ._format import codec, limits
from ._operations.setup import TableOwner
from ._operations.thread_lock import TableHolder
from ._runtime.options import (
    TableKeywords,
    check_bytes,
    check_flag,
    check_owner_options,
    check_thread_ttl,
    connect,
)
from ._runtime.storage import Cache, Storage
from .base_saver import CACHE_BYTES, P, T, TableSaver
from .locks import ThreadLocks


class DynamoDBSaver(TableOwner, ThreadLocks, TableSaver):
    """A LangGraph checkpoint saver on one DynamoDB table, for `invoke` and `ainvoke` alike.

    You can use the saver as a plain object, for example at module level in a Lambda function, from several OS threads
    and on any number of event loops. As a context manager it also closes its clients.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver

        graph = builder.compile(checkpointer=DynamoDBSaver("langgraph-checkpoints"))
        graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
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
        retry_seconds: For how many seconds to retry a request that is throttled, fails on AWS's side or gets no
            response; 0 sends it once. The same goes for unprocessed items of a batch. The last attempt may take as long
            as the time-outs allow, 13 seconds. A `client`, or one of your `client_config`, may retry within each
            attempt.
        serde: The serializer, by default LangGraph's `JsonPlusSerializer`. `EncryptedSerializer`, and what derives from
            it, encrypts values and metadata. Ids, sizes and times stay readable.
        allow_unencrypted: Whether to read data that is not encrypted, or not bound to its place, although there is a
            key. Use it only during a migration: somebody without the key may have written such data.
        bound_to: The name of the table that encrypted data is bound to, if this one was restored or copied from it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        ttl_seconds: Seconds after which a checkpoint expires, counted from its last use, up to 31,622,400,000: a
            thousand years. By default never. A thread keeps the ttl of its first put; a copy takes the saver's. If the
            newest checkpoint of a namespace has expired, the namespace has no state.
        share_equal_pieces: Whether a checkpoint reuses equal stored pieces, so that a step costs only what it adds.
            `False` stores each changed value as a whole, and so hides from readers of the table which parts of a
            thread's values are equal. Channels that a step did not change are still shared.
        checkpoint_bytes_max: The maximum size in bytes, serialized, of a checkpoint's values together, or of its
            pending writes. Larger ones are neither stored nor read, because a few small items can name gigabytes.
        cache_bytes: The maximum memory for the cache of recent checkpoints and their segments, in bytes. It saves
            reads. It changes a result only if you put a checkpoint again with other values, which LangGraph does not
            do; see `put`.
        owner_from: The key of a config's `configurable`, or of its `metadata`, that names the owner of a thread, such
            as `user_id`. The first put of each thread then enters it in the directory, which `threads` lists; without
            the option only `set_thread` does. A later run never changes an owner.
        owner_key: The key of the digests that the table holds instead of owners' names, if `serde` encrypts: 16 to 64
            secret bytes, the same in every process.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        TypeError: An option is unknown. The message names the right one, also for options of langgraph-checkpoint-aws.
    """

    def __init__(
        self,
        table_name: str,
        *,
        retry_seconds: float = limits.RETRY_SECONDS,
        serde: SerializerProtocol | None = None,
        ttl_seconds: int | None = None,
        share_equal_pieces: bool = True,
        checkpoint_bytes_max: int = limits.CHECKPOINT_BYTES_MAX,
        cache_bytes: int = CACHE_BYTES,
        owner_from: str | None = None,
        owner_key: bytes | None = None,
        **options: Unpack[TableKeywords],
    ) -> None:
        """Check the options. No request is made and no client is opened before the first call."""
        connection = connect(DynamoDBSaver, table_name, options, serde=serde, retry_seconds=retry_seconds)
        check_thread_ttl(ttl_seconds)
        check_flag("share_equal_pieces", share_equal_pieces)
        check_bytes("checkpoint_bytes_max", checkpoint_bytes_max, at_least=1)
        check_bytes("cache_bytes", cache_bytes, at_least=0)
        check_owner_options(owner_from=owner_from, owner_key=owner_key)
        super().__init__(serde=serde)
        self._connect(connection)
        self._codec = partial(connection.codec, bytes_max=checkpoint_bytes_max)
        self._storage = Storage(
            codec=self._codec(self.serde),
            cache=Cache(cache_bytes),
            table=connection.table,
            ttl_seconds=ttl_seconds,
            share_equal_pieces=share_equal_pieces,
            owner_from=owner_from,
            owner_key=owner_key,
        )

    @property
    def storage(self) -> Storage:
        """The storage for operations, with the saver's current serializer; public inside the package."""
        # LangGraph copies the saver to give it another serializer.
        return self.storage_with(codec.Codec, self.serde)

    def storage_with(self, kind: type[codec.Codec], serde: SerializerProtocol) -> Storage:
        """Return the storage with a codec of another kind; public inside the package."""
        return replace(self._storage, codec=self._codec(serde, kind))

    @override
    def _operation(
        self, operation: Callable[Concatenate[Storage, P], T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        return operation(self.storage, *args, **options)

    @property
    def holder(self) -> TableHolder:
        """The access to the locks of threads; public inside the package."""
        return TableHolder(self._storage)
