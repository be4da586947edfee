"""`HttpCheckpointSaver`: what LangGraph calls in an agent without AWS access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import Self

from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX, RETRY_SECONDS
from langgraph.checkpoint.dynamodb._operations.put_with_writes import HeldWrites
from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.memory import Memory
from langgraph.checkpoint.dynamodb._runtime.options import (
    check_flag,
    check_serde,
    check_table_name,
    check_whole_number,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb.http import operations
from langgraph.checkpoint.dynamodb.http.operations import Gateway
from langgraph.checkpoint.dynamodb.http.options import Auth
from langgraph.checkpoint.dynamodb.http.prefix import ThreadPrefix
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS, Transport
from langgraph.checkpoint.dynamodb.saver import CACHE_BYTES, next_version


class HttpCheckpointSaver(BaseCheckpointSaver[Any]):
    """A LangGraph checkpoint saver that reaches the table through the gateway, for `invoke` and `ainvoke` alike.

    It stores what `DynamoDBSaver` would, item for item: values are serialized, cut, compressed and encrypted here, and
    the gateway never sees inside. Each method does, returns and raises what the one of `DynamoDBSaver` does.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

        graph = builder.compile(checkpointer=HttpCheckpointSaver("https://gateway.example", auth="token"))
        graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        url: The gateway's address.
        auth: A bearer token, a function that gives one, `SigV4(...)`, or an `httpx.Auth`.
        timeout: Seconds to wait for the next piece of an answer.
        retry_seconds: For how long a request is sent again that gets no answer, or one that says to try again; 0 sends
            each once.
        allow_http: Whether `auth` may go over http:// to another machine, which everybody on the way can read.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.
        thread_prefix: What the table has in front of every thread id, such as `acme/` with a token of the tenant
            `acme`. The agent's own ids, and those that it gets back, are without it.
        serde: The serializer. By default LangGraph's `JsonPlusSerializer` in strict mode: it makes harmless types only,
            and those that `with_allowlist` adds, since the bytes come from whoever may write to the thread. LangGraph
            adds the types of the graph's schema where `LANGGRAPH_STRICT_MSGPACK=true` is set. Without it, name yours:
            `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.
        encrypt_metadata: As for `DynamoDBSaver`.
        share_equal_pieces: As for `DynamoDBSaver`.
        allow_unencrypted: As for `DynamoDBSaver`.
        bound_to: The name of the table that encrypted data are for; None for what the gateway says.
        checkpoint_bytes_max: As for `DynamoDBSaver`.
        cache_bytes: Bound on the memory for what is remembered of recent checkpoints and of their segments, in bytes.
            Here it saves what is sent as well: what is not remembered comes over the wire again.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Auth = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        allow_http: bool = False,
        client_options: Mapping[str, Any] | None = None,
        thread_prefix: str = "",
        serde: SerializerProtocol | None = None,
        encrypt_metadata: bool | None = None,
        share_equal_pieces: bool = True,
        allow_unencrypted: bool = False,
        bound_to: str | None = None,
        checkpoint_bytes_max: int = CHECKPOINT_BYTES_MAX,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """Check the options; nothing is opened before the first call."""
        if serde is not None:
            check_serde(serde)
        check_whole_number(
            "cache_bytes", cache_bytes, at_least=0, wanted="give a whole number of bytes, 0 or more"
        )
        wanted = "give a whole number of bytes above 0"
        check_whole_number("checkpoint_bytes_max", checkpoint_bytes_max, at_least=1, wanted=wanted)
        if encrypt_metadata is not None:
            check_flag("encrypt_metadata", encrypt_metadata)
        check_flag("share_equal_pieces", share_equal_pieces)
        check_flag("allow_unencrypted", allow_unencrypted)
        if bound_to is not None:
            check_table_name(bound_to, "bound_to")
        super().__init__(serde=JsonPlusSerializer(allowed_msgpack_modules=None) if serde is None else serde)
        self._transport = Transport(
            url,
            auth=auth,
            timeout=timeout,
            retry_seconds=retry_seconds,
            allow_http=allow_http,
            client_options=client_options,
        )
        # Expiry is the service's, so this has none.
        table = Table(
            "",
            Memory(cache_bytes),
            encrypt_metadata=encrypt_metadata,
            share_equal_pieces=share_equal_pieces,
        )
        codec_options = {"allow_unencrypted": allow_unencrypted, "bytes_max": checkpoint_bytes_max}
        self._gateway = Gateway(table, codec_options, bound_to, ThreadPrefix(thread_prefix))
        self._blocking = BlockingDriver(self._transport.send, self._transport.pool)
        self._async = AsyncDriver(self._transport.asend)

    # Life cycle

    def close(self) -> None:
        """Close the blocking connections. The saver may be used again, with new ones."""
        self._transport.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and the blocking ones."""
        await self._transport.aclose()

    def __enter__(self) -> Self:
        """Return the saver itself."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the saver."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the saver itself."""
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the saver on this event loop."""
        await self.aclose()

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the checkpoint that the config names, or the newest one of its namespace."""
        return self._blocking.run(operations.get_tuple(self._gateway, self.serde, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `get_tuple` does."""
        return await self._async.run(operations.get_tuple(self._gateway, self.serde, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first; nothing is requested before the first one is asked for."""
        return self._blocking.stream(
            operations.list_checkpoints(self._gateway, self.serde, config, filter, before, limit)
        )

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do as `list` does."""
        return self._async.stream(
            operations.list_checkpoints(self._gateway, self.serde, config, filter, before, limit)
        )

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what delta channels are rebuilt from: their nearest stored value and the writes since."""
        return self._blocking.run(
            operations.get_delta_channel_history(self._gateway, self.serde, config, channels)
        )

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do as `get_delta_channel_history` does."""
        return await self._async.run(
            operations.get_delta_channel_history(self._gateway, self.serde, config, channels)
        )

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; when this returns it is whole, whatever else happens to its thread meanwhile."""
        return self._blocking.run(
            operations.store(self._gateway, self.serde, config, checkpoint, metadata, new_versions)
        )

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do as `put` does."""
        return await self._async.run(
            operations.store(self._gateway, self.serde, config, checkpoint, metadata, new_versions)
        )

    def put_with_writes(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        pending_writes: Sequence[HeldWrites],
    ) -> RunnableConfig:
        """Store a checkpoint with writes that were held back: what `DeferredCheckpointSaver` calls to flush."""
        return self._blocking.run(
            operations.store_with_writes(
                self._gateway, self.serde, config, checkpoint, metadata, new_versions, pending_writes
            )
        )

    async def aput_with_writes(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        pending_writes: Sequence[HeldWrites],
    ) -> RunnableConfig:
        """Do as `put_with_writes` does."""
        return await self._async.run(
            operations.store_with_writes(
                self._gateway, self.serde, config, checkpoint, metadata, new_versions, pending_writes
            )
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's pending writes."""
        self._blocking.run(
            operations.store_writes(self._gateway, self.serde, config, writes, task_id, task_path)
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do as `put_writes` does."""
        await self._async.run(
            operations.store_writes(self._gateway, self.serde, config, writes, task_id, task_path)
        )

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: checkpoints, writes and all else, in every namespace."""
        self._blocking.run(operations.delete_thread(self._gateway, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Do as `delete_thread` does."""
        await self._async.run(operations.delete_thread(self._gateway, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that carry one of these run ids in their metadata, in every thread."""
        self._blocking.run(operations.delete_for_runs(self._gateway, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `delete_for_runs` does."""
        await self._async.run(operations.delete_for_runs(self._gateway, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint of a thread with its writes; what the target has besides stays."""
        self._blocking.run(
            operations.copy_thread(self._gateway, self.serde, source_thread_id, target_thread_id)
        )

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `copy_thread` does."""
        await self._async.run(
            operations.copy_thread(self._gateway, self.serde, source_thread_id, target_thread_id)
        )

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Remove old checkpoints of threads, with the writes and values that only they need."""
        self._blocking.run(operations.prune(self._gateway, thread_ids, strategy, keep_last))

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Do as `prune` does."""
        await self._async.run(operations.prune(self._gateway, thread_ids, strategy, keep_last))

    # Versions

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after `current`, as `DynamoDBSaver` makes it."""
        del channel
        return next_version(current)
