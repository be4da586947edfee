"""`HttpCheckpointSaver`: the checkpoint saver for agents without AWS access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
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
from typing_extensions import Unpack

from langgraph.checkpoint.dynamodb._format.limits import RETRY_SECONDS
from langgraph.checkpoint.dynamodb._operations.directory import ThreadPage
from langgraph.checkpoint.dynamodb._operations.runs import RunSummary
from langgraph.checkpoint.dynamodb._runtime.options import (
    check_bytes,
    check_flag,
    check_owner_options,
    check_serde,
)
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES, next_version
from langgraph.checkpoint.dynamodb.http.lock import GatewayHolder
from langgraph.checkpoint.dynamodb.http.memory import LastValues
from langgraph.checkpoint.dynamodb.http.operations import (
    Client,
    copy_thread,
    delete_for_runs,
    delete_thread,
    get_delta_channel_history,
    get_tuple,
    list_checkpoints,
    list_runs,
    list_threads,
    prune,
    put,
    put_writes,
    set_thread,
)
from langgraph.checkpoint.dynamodb.http.options import GatewayKeywords
from langgraph.checkpoint.dynamodb.http.prefix import ThreadPrefix
from langgraph.checkpoint.dynamodb.http.service import GatewayAccounting, ServiceClient
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS
from langgraph.checkpoint.dynamodb.http.values import Values, sealer_of
from langgraph.checkpoint.dynamodb.locks import ThreadLocks


class HttpCheckpointSaver(ServiceClient, ThreadLocks, BaseCheckpointSaver[Any]):
    """A LangGraph checkpoint saver that reaches the table through the gateway, for `invoke` and `ainvoke` alike.

    The client serializes values, and the service stores them as `DynamoDBSaver` does. Each method has the arguments,
    results and errors of the one of `DynamoDBSaver`.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver

        graph = builder.compile(checkpointer=HttpCheckpointSaver("https://gateway.example", auth="token"))
        graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        url: The gateway's address, such as `https://gateway.example`.
        auth: The credentials: a bearer token, a function that returns one, `SigV4(...)`, or an `httpx.Auth`. In a
            configuration, one of `token`, `token_file` and `sigv4` (with `region_name`).
        timeout: Seconds to wait for the next piece of a response.
        retry_seconds: For how many seconds to retry a request that gets no response, or one that says to retry; 0 sends
            each once.
        allow_http: Whether to send `auth` over http:// to another machine. Everybody on the way can read it.
        on_event: A function that receives an `Event` for each operation, or `Events(function, ...)`. It runs at the end
            of the call and must return quickly. Its errors are logged.
        thread_prefix: The prefix of every thread id and owner in the table, such as `acme/` with a token of the tenant
            `acme`. The agent uses ids and names without it.
        serde: The serializer, by default LangGraph's `JsonPlusSerializer` in strict mode. That creates only harmless
            types and those that `with_allowlist` adds, because others may have written the stored bytes. LangGraph adds
            the types of the graph's schema if `LANGGRAPH_STRICT_MSGPACK=true` is set. Otherwise name yours:
            `JsonPlusSerializer(allowed_msgpack_modules=[Ticket])`.
        allow_unencrypted: Whether to read data that is not encrypted, or not bound to its place, although there is a
            key. Use it only during a migration: somebody without the key may have written such data.
        cache_bytes: The maximum memory for the values of the newest checkpoint of recent threads, in bytes. They save
            transfer: only what is new in a value is sent, and known values are not received again. With a cipher, 0
            also hides which parts of two values are equal, and makes each step store all of them.
        owner_from: The key of a config's `configurable`, or of its `metadata`, that names the owner of a thread, such
            as `user_id`. The first put of each thread then enters it in the directory, which `threads` lists; without
            the option only `set_thread` does. A later run never changes an owner.
        client_options: Keyword arguments of httpx's clients: `headers`, `http2`, `proxy`, `trust_env`, `verify`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        thread_prefix: str = "",
        serde: SerializerProtocol | None = None,
        allow_unencrypted: bool = False,
        cache_bytes: int = CACHE_BYTES,
        owner_from: str | None = None,
        **options: Unpack[GatewayKeywords],
    ) -> None:
        """Check the options. Nothing is opened before the first call."""
        check_serde(serde)
        check_flag("allow_unencrypted", allow_unencrypted)
        check_bytes("cache_bytes", cache_bytes, at_least=0)
        check_owner_options(owner_from=owner_from, owner_key=None)
        super().__init__(serde=JsonPlusSerializer(allowed_msgpack_modules=None) if serde is None else serde)
        self._connect(
            url,
            timeout=timeout,
            retry_seconds=retry_seconds,
            accounting=GatewayAccounting(),
            **options,
        )
        self._sealer = sealer_of(
            self.serde, pieces_bytes_max=cache_bytes // 2, allow_unencrypted=allow_unencrypted
        )
        # With a cipher, the other half is for the pieces of the values.
        self._memory = LastValues(cache_bytes if self._sealer is None else cache_bytes // 2)
        self._prefix = ThreadPrefix(thread_prefix)
        self._owner_from = owner_from

    @property
    def holder(self) -> GatewayHolder:
        """The access to the locks of threads."""
        return GatewayHolder(self._prefix)

    @property
    def _client(self) -> Client:
        """The client for operations. LangGraph copies the saver to give it another serializer."""
        return Client(
            self._service,
            self._memory,
            Values(self.serde, self._sealer),
            self._prefix,
            self._owner_from,
        )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, as `DynamoDBSaver.get_tuple` does."""
        return self.runner.run(get_tuple(self._client, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, as `DynamoDBSaver.aget_tuple` does."""
        return await self.runner.arun(get_tuple(self._client, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first, as `DynamoDBSaver.list` does."""
        return self.runner.stream(list_checkpoints(self._client, config, filter, before, limit))

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first, as `DynamoDBSaver.alist` does."""
        return self.runner.astream(list_checkpoints(self._client, config, filter, before, limit))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what delta channels are rebuilt from, as `DynamoDBSaver.get_delta_channel_history` does."""
        return self.runner.run(get_delta_channel_history(self._client, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what delta channels are rebuilt from, as `DynamoDBSaver.aget_delta_channel_history` does."""
        return await self.runner.arun(get_delta_channel_history(self._client, config, channels))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, as `DynamoDBSaver.put` does."""
        return self.runner.run(put(self._client, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, as `DynamoDBSaver.aput` does."""
        return await self.runner.arun(put(self._client, config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's pending writes, as `DynamoDBSaver.put_writes` does."""
        self.runner.run(put_writes(self._client, config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's pending writes, as `DynamoDBSaver.aput_writes` does."""
        await self.runner.arun(put_writes(self._client, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread, as `DynamoDBSaver.delete_thread` does."""
        self.runner.run(delete_thread(self._client, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread, as `DynamoDBSaver.adelete_thread` does."""
        await self.runner.arun(delete_thread(self._client, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, as `DynamoDBSaver.delete_for_runs` does."""
        self.runner.run(delete_for_runs(self._client, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, as `DynamoDBSaver.adelete_for_runs` does."""
        await self.runner.arun(delete_for_runs(self._client, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, as `DynamoDBSaver.copy_thread` does."""
        self.runner.run(copy_thread(self._client, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, as `DynamoDBSaver.acopy_thread` does."""
        await self.runner.arun(copy_thread(self._client, source_thread_id, target_thread_id))

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Remove old checkpoints of threads, as `DynamoDBSaver.prune` does."""
        self.runner.run(prune(self._client, thread_ids, strategy, keep_last))

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Remove old checkpoints of threads, as `DynamoDBSaver.aprune` does."""
        await self.runner.arun(prune(self._client, thread_ids, strategy, keep_last))

    def set_thread(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe a thread for the directory, as `DynamoDBSaver.set_thread` does."""
        self.runner.run(set_thread(self._client, thread_id, owner, title, metadata))

    async def aset_thread(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe a thread for the directory, as `DynamoDBSaver.aset_thread` does."""
        await self.runner.arun(set_thread(self._client, thread_id, owner, title, metadata))

    def threads(
        self,
        *,
        owner: str | None = None,
        status: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 20,
        before: str | None = None,
        with_status: bool = False,
        since: datetime | None = None,
    ) -> ThreadPage:
        """List threads, newest activity first, as `DynamoDBSaver.threads` does."""
        return self.runner.run(
            list_threads(self._client, owner, status, metadata, limit, before, with_status, since)
        )

    async def athreads(
        self,
        *,
        owner: str | None = None,
        status: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 20,
        before: str | None = None,
        with_status: bool = False,
        since: datetime | None = None,
    ) -> ThreadPage:
        """List threads, newest activity first, as `DynamoDBSaver.athreads` does."""
        return await self.runner.arun(
            list_threads(self._client, owner, status, metadata, limit, before, with_status, since)
        )

    def runs(self, thread_id: str) -> Sequence[RunSummary]:
        """List the runs of a thread, as `DynamoDBSaver.runs` does."""
        return self.runner.run(list_runs(self._client, thread_id))

    async def aruns(self, thread_id: str) -> Sequence[RunSummary]:
        """List the runs of a thread, as `DynamoDBSaver.aruns` does."""
        return await self.runner.arun(list_runs(self._client, thread_id))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after `current`, as `DynamoDBSaver.get_next_version` does."""
        del channel
        return next_version(current)
