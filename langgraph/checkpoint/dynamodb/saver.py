"""`DynamoDBSaver`: the checkpoint saver for LangGraph. It checks its options and runs operations, and nothing else."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import Never

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import (
    ACTIVITY_SECONDS,
    CHECKPOINT_BYTES_MAX,
    RETRY_SECONDS,
)
from langgraph.checkpoint.dynamodb._operations.setup import setup
from langgraph.checkpoint.dynamodb._runtime.accounting import table_observer
from langgraph.checkpoint.dynamodb._runtime.cache import Cache, Facts
from langgraph.checkpoint.dynamodb._runtime.clients import Clients
from langgraph.checkpoint.dynamodb._runtime.connection import bound_name, connect
from langgraph.checkpoint.dynamodb._runtime.events import Events, OnEvent
from langgraph.checkpoint.dynamodb._runtime.options import (
    check_activity,
    check_flag,
    check_owner_options,
    check_storage_options,
    check_thread_ttl,
    refuse_unknown,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb._runtime.warm_up import first_read
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES, StorageSaver
from langgraph.checkpoint.dynamodb.locks import TableHolder, ThreadLocks

if TYPE_CHECKING:
    import boto3
    from aioboto3 import Session as AsyncSession
    from aiobotocore.session import AioSession
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoDBSaver(ThreadLocks, StorageSaver):
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
        table_name: Name or ARN of a table created by `setup()`, or from the template that
            `python -m langgraph.checkpoint.dynamodb template` prints.
        region_name: The AWS region. By default boto3 finds it.
        endpoint_url: An endpoint other than AWS's own, such as DynamoDB Local's.
        session: A `boto3.Session` for the blocking client.
        async_session: An `aioboto3.Session`, or a session of aiobotocore, for the async clients. By default the saver
            creates one, if either library is installed and you pass neither `session` nor `client`. Otherwise the
            async methods run boto3 in OS threads.
        client: A boto3 DynamoDB client. The saver uses it as it is, with its own retries, and never closes it. It has
            its own region, endpoint and config, so these options apply only to the async client. Without
            `async_session` they are an error.
        client_config: A botocore `Config` that replaces the saver's own (short time-outs, TCP keep-alive,
            a pool of 64 connections) and the saver's retries.
        retry_seconds: For how many seconds to retry a request that is throttled, fails on AWS's side or gets no
            response, and unprocessed items of a batch; 0 sends each once. The last attempt may take as long as the
            time-outs allow, 13 seconds. If you pass a client or configuration, it has its own retries, but this option
            still applies to unprocessed items.
        serde: The serializer. By default LangGraph's `JsonPlusSerializer`. `EncryptedSerializer` and your own
            serializers work as well.
        ttl_seconds: Seconds after which a checkpoint expires, counted from its last use, up to 31,622,400,000: a
            thousand years. `None` keeps checkpoints forever. A thread keeps the ttl of its first put; a copy takes the
            saver's. If the newest checkpoint of a namespace has expired, the namespace has no state.
        consistent_read: Whether to find checkpoints by strongly consistent reads. Eventually consistent reads cost
            half, but the next message of a conversation may then not see the last one.
        encrypt_metadata: Whether to pass metadata through the serializer too. `None` means only if the serializer is
            an `EncryptedSerializer`, which encrypts metadata. Metadata over 8 KiB, or that is not JSON, always passes
            through the serializer. Other metadata is readable JSON. A run id always stays readable.
        share_equal_pieces: Whether a checkpoint reuses equal stored pieces, so that a step costs only what it adds.
            `False` stores each changed value as a whole, and so hides from readers of the table which parts of a
            thread's values are equal. Channels that a step did not change are still shared.
        allow_unencrypted: Whether a saver with an `EncryptedSerializer` also reads data that is not encrypted, or not
            bound to its place. Use it only during a migration: somebody without the key may have written such data.
        bound_to: The name of the table that encrypted data is bound to, if this table was restored or copied from it.
        checkpoint_bytes_max: The maximum size in bytes, serialized, of a checkpoint's values together, or of its
            pending writes. The saver neither stores nor reads larger ones, because a few small items can name
            gigabytes.
        cache_bytes: The maximum memory for the cache of recent checkpoints and their segments, in bytes. The cache
            saves reads. It changes a result only if you put a checkpoint again with other values, which
            LangGraph does not do; see `put`.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`; see
            docs/observing.md. It runs at the end of the call and must return quickly. Its errors are logged.
        detect_other_savers: Whether a process checks once, when it first finds a thread empty, that the table is not
            another saver's. It sends three queries. The policies of runner and tenant deny some of them, so switch the
            check off under either.
        owner_from: The key of a config's `configurable`, or of its `metadata`, that names the owner of a thread, such
            as `user_id`. The first put of each thread then enters it in the directory, which `threads` lists. With
            `None`, only `set_thread` enters threads. A later run never changes an owner.
        owner_key: 16 to 64 secret bytes, the same in every process. If `serde` is an `EncryptedSerializer`, the table
            holds digests of owners' names under this key, and not the names.
        activity_seconds: A put renews a thread's last activity in the directory once it is this many seconds old. Each
            renewal takes 5 write units. For a thread with a ttl, the value is at most a tenth of the ttl.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        TypeError: An option is unknown. The message names the right one, also for options of langgraph-checkpoint-aws.
    """

    transport: Clients
    """The clients that make the requests; public inside the package."""

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
        retry_seconds: float = RETRY_SECONDS,
        serde: SerializerProtocol | None = None,
        ttl_seconds: int | None = None,
        consistent_read: bool = True,
        encrypt_metadata: bool | None = None,
        share_equal_pieces: bool = True,
        allow_unencrypted: bool = False,
        bound_to: str | None = None,
        checkpoint_bytes_max: int = CHECKPOINT_BYTES_MAX,
        cache_bytes: int = CACHE_BYTES,
        detect_other_savers: bool = True,
        on_event: OnEvent | Events | None = None,
        owner_from: str | None = None,
        owner_key: bytes | None = None,
        activity_seconds: int = ACTIVITY_SECONDS,
        **unknown: Never,
    ) -> None:
        """Check the options. No request is made and no client is opened before the first call."""
        if unknown:
            refuse_unknown(unknown, list(DynamoDBSaver.__init__.__kwdefaults__ or ()))
        transport = connect(
            table_name,
            region_name=region_name,
            endpoint_url=endpoint_url,
            session=session,
            async_session=async_session,
            client=client,
            client_config=client_config,
            retry_seconds=retry_seconds,
        )
        check_thread_ttl(ttl_seconds)
        check_flag("consistent_read", consistent_read)
        check_flag("detect_other_savers", detect_other_savers)
        check_storage_options(
            serde=serde,
            encrypt_metadata=encrypt_metadata,
            share_equal_pieces=share_equal_pieces,
            allow_unencrypted=allow_unencrypted,
            bound_to=bound_to,
            checkpoint_bytes_max=checkpoint_bytes_max,
            cache_bytes=cache_bytes,
            on_event=on_event,
        )
        check_owner_options(owner_from=owner_from, owner_key=owner_key)
        check_activity(activity_seconds)
        super().__init__(serde, transport, table_observer(on_event, table_name))
        self._codec_options: dict[str, Any] = {
            "bound_to": bound_name(table_name, bound_to),
            "allow_unencrypted": allow_unencrypted,
            "bytes_max": checkpoint_bytes_max,
        }
        self._storage = Storage(
            codec=Codec(self.serde, **self._codec_options),
            cache=Cache(cache_bytes, Facts(is_shared=None if detect_other_savers else False)),
            table=Table(table_name, retry_seconds),
            ttl_seconds=ttl_seconds,
            consistent_read=consistent_read,
            encrypt_metadata=encrypt_metadata,
            share_equal_pieces=share_equal_pieces,
            owner_from=owner_from,
            owner_key=owner_key,
            activity_seconds=activity_seconds,
        )

    @property
    def storage(self) -> Storage:
        """The storage for operations, with the saver's current serializer; public inside the package."""
        # LangGraph copies the saver to give it another serializer.
        return self.storage_with(Codec, self.serde)

    def storage_with(self, kind: type[Codec], serde: SerializerProtocol) -> Storage:
        """Return the storage with a codec of another kind; public inside the package."""
        return replace(self._storage, codec=kind(serde, **self._codec_options))

    def with_storage(self, **changes: Any) -> DynamoDBSaver:
        """Return a saver with the same clients whose storage has other fields; public inside the package."""
        saver = copy.copy(self)
        saver._storage = replace(self._storage, **changes)  # noqa: SLF001 - it is a copy of this one.
        return saver

    def _first_request(self) -> Call:
        return first_read(self._storage.table.name)

    @property
    def holder(self) -> TableHolder:
        """The access to the locks of threads; public inside the package."""
        return TableHolder(self._storage)

    # The table

    def setup(self) -> None:
        """Create the table for development, or check it if it exists. In production deploy the template.

        Waits up to 120 seconds for the table.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, does not become
                active, or there are no credentials or no region.
        """
        self.runner.run(setup(self.storage.table))

    async def asetup(self) -> None:
        """Create the table for development, or check it if it exists. In production deploy the template.

        Waits up to 120 seconds for the table.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, does not become
                active, or there are no credentials or no region.
        """
        await self.runner.arun(setup(self.storage.table))
