"""`DynamoDBSaver`: what LangGraph calls. It checks its options and runs operations; it decides nothing else."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

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
from typing_extensions import Never, Self

from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import CHECKPOINT_BYTES_MAX, RETRY_SECONDS
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import get_delta_channel_history
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import list_checkpoints
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_with_writes import HeldWrites, put_with_writes
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.setup import setup
from langgraph.checkpoint.dynamodb._operations.thread_lock import hold_on
from langgraph.checkpoint.dynamodb._runtime.clients import ClientOptions, Clients
from langgraph.checkpoint.dynamodb._runtime.drivers import AsyncDriver, BlockingDriver
from langgraph.checkpoint.dynamodb._runtime.memory import Memory
from langgraph.checkpoint.dynamodb._runtime.options import (
    check_flag,
    check_reach,
    check_seconds,
    check_serde,
    check_table_name,
    check_whole_number,
    refuse_unknown,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb.locks import AsyncThreadLock, ThreadLock

if TYPE_CHECKING:
    import boto3
    from aioboto3 import Session as AsyncSession
    from aiobotocore.session import AioSession
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient


CACHE_BYTES = 32 * 1024 * 1024


class DynamoDBSaver(BaseCheckpointSaver[Any]):
    """A LangGraph checkpoint saver on one DynamoDB table, for `invoke` and `ainvoke` alike.

    The saver works as a plain object, for example at module level in a Lambda function, from several
    threads and on any number of event loops; as a context manager it also closes its clients.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver

        graph = builder.compile(checkpointer=DynamoDBSaver("langgraph-checkpoints"))
        graph.invoke(inputs, {"configurable": {"thread_id": "thread-1"}})
        ```

    Args:
        table_name: Name or ARN of a table made by `setup()`, or from the template that
            `python -m langgraph.checkpoint.dynamodb template` prints.
        region_name: AWS region; as boto3 finds it where it is not given.
        endpoint_url: Another endpoint than AWS's own, such as DynamoDB Local's.
        session: A `boto3.Session` for the blocking client.
        async_session: An `aioboto3.Session`, or a session of aiobotocore, for the async clients. Where none is
            given one is made, if either library is installed and neither `session` nor `client` is given;
            otherwise the async methods run boto3 in threads.
        client: A boto3 DynamoDB client, used as it is, with its own retries, and never closed. It has its region,
            endpoint and config already, so these are for the async client then, and refused without `async_session`.
        client_config: A botocore `Config` that replaces the saver's own (short time-outs, TCP keep-alive,
            a pool of 64 connections) and its retries (whatever botocore's release).
        retry_seconds: For how long a request that is throttled, fails on AWS's side or gets no answer is sent
            again, and what a batch left unprocessed; 0 sends each once. The last attempt may take as long as the
            time-outs allow, 13 seconds. A client or configuration that was given has its own retries; of what
            batches leave unprocessed this holds all the same.
        serde: The serializer; LangGraph's `JsonPlusSerializer` where none is given. `EncryptedSerializer` and
            serializers of your own work as well.
        ttl_seconds: Seconds after which a checkpoint expires, counted from when it was stored; None keeps
            checkpoints for ever. A thread keeps the ttl of its first put; `langgraph-dynamodb set-ttl` changes it. A
            namespace whose newest checkpoint has expired shows no older one in its place.
        consistent_read: Whether checkpoints are found by strongly consistent reads. Eventually consistent ones
            cost half, but the next message of a conversation may then not see the last one.
        encrypt_metadata: Whether metadata goes through the serializer too; None if that is an `EncryptedSerializer`,
            which encrypts it. Otherwise only what is over 8 KiB, or no JSON, does, and the rest is stored as readable
            JSON. A run id stays readable in both.
        share_equal_pieces: Whether a checkpoint names stored pieces that its own are equal to, which is what makes a
            step cost only what it adds. False hides from who reads the table which parts of a thread's values are
            equal, and stores each value that changed as a whole; channels that a step left alone are shared still.
        allow_unencrypted: Whether a saver with an `EncryptedSerializer` reads what is not encrypted, or was
            encrypted by a release before it was bound to its place. Meant for the time of a migration: somebody who may
            write to the table, but has no key, can have written it.
        bound_to: The name of the table that encrypted data are for, where it is not this one's: that of the table
            from which it was restored or copied.
        checkpoint_bytes_max: Bound on what a checkpoint's values, or its pending writes, take up together, serialized,
            in bytes. What is larger is refused, to be stored as to be read: a few small items can name gigabytes.
        cache_bytes: Bound on the memory for what is remembered of recent checkpoints and of their segments, in bytes.
            What is remembered saves reads. It changes a result only where a checkpoint was put again with other values,
            which LangGraph does not do; see `put`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
        TypeError: An option is unknown; the message names the one to use, also for those of langgraph-checkpoint-aws.
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
        **unknown: Never,
    ) -> None:
        """Check the options; no request is made and no client is opened before the first call."""
        if unknown:
            refuse_unknown(unknown, list(DynamoDBSaver.__init__.__kwdefaults__ or ()))
        check_table_name(table_name)
        check_reach(
            region_name=region_name,
            endpoint_url=endpoint_url,
            session=session,
            async_session=async_session,
            client=client,
            client_config=client_config,
        )
        check_seconds("retry_seconds", retry_seconds, at_least=0)
        if serde is not None:
            check_serde(serde)
        if ttl_seconds is not None:
            wanted = "give a whole number of seconds above 0, or None"
            check_whole_number("ttl_seconds", ttl_seconds, at_least=1, wanted=wanted)
        check_whole_number(
            "cache_bytes", cache_bytes, at_least=0, wanted="give a whole number of bytes, 0 or more"
        )
        check_flag("consistent_read", consistent_read)
        wanted = "give a whole number of bytes above 0"
        check_whole_number("checkpoint_bytes_max", checkpoint_bytes_max, at_least=1, wanted=wanted)
        if encrypt_metadata is not None:
            check_flag("encrypt_metadata", encrypt_metadata)
        check_flag("share_equal_pieces", share_equal_pieces)
        check_flag("allow_unencrypted", allow_unencrypted)
        if bound_to is not None:
            check_table_name(bound_to, "bound_to")
        super().__init__(serde=serde)
        # LangGraph copies the saver to give it another serializer: what the copies share is made here, once.
        self._clients = Clients(
            ClientOptions(
                region_name, endpoint_url, session, async_session, client, client_config, retry_seconds
            )
        )
        self._table = Table(
            table_name,
            Memory(cache_bytes),
            ttl_seconds=ttl_seconds,
            consistent_read=consistent_read,
            encrypt_metadata=encrypt_metadata,
            share_equal_pieces=share_equal_pieces,
            retry_seconds=retry_seconds,
        )
        # A table's ARN ends in its name.
        self._codec_options: dict[str, Any] = {
            "bound_to": (table_name if bound_to is None else bound_to).rpartition("/")[2],
            "allow_unencrypted": allow_unencrypted,
            "bytes_max": checkpoint_bytes_max,
        }
        self._blocking = BlockingDriver(self._clients.send, self._clients.pool)
        self._async = AsyncDriver(self._clients.asend)

    @property
    def _codec(self) -> Codec:
        return Codec(self.serde, **self._codec_options)

    # Life cycle

    def setup(self) -> None:
        """Create the table for development, and check it where it exists. In production deploy the template.

        Waits up to 120 seconds for the table.

        Raises:
            CheckpointerConfigurationError: The table exists with another schema or expiry attribute, does not become
                active, or there are no credentials or no region.
        """
        self._blocking.run(setup(self._table))

    async def asetup(self) -> None:
        """Do as `setup` does."""
        await self._async.run(setup(self._table))

    def close(self) -> None:
        """Close the blocking client, unless it was given. The saver may be used again, with a new one."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the client of the running event loop, and the blocking one."""
        await self._clients.aclose()
        self._clients.close()

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
        """Read the checkpoint that the config names, or the newest one of its namespace.

        Args:
            config: `configurable` with `thread_id`, and optionally `checkpoint_ns` and `checkpoint_id`.

        Returns:
            The checkpoint with its pending writes in the order in which a run applies them; None where there is
            none or it has expired.

        Raises:
            CheckpointerInputError: There is no thread id, or an id that DynamoDB cannot take.
            CheckpointCorruptionError: Stored data is damaged or missing. An older checkpoint that a deletion kept,
                and whose segments are missing, counts as not there.
            CheckpointFormatError: It was stored by a newer release.
            CheckpointNotFoundError: Deletions of the thread kept interfering.
        """
        return self._blocking.run(get_tuple(self._table, self._codec, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `get_tuple` does."""
        return await self._async.run(get_tuple(self._table, self._codec, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first; nothing is requested before the first one is asked for.

        Args:
            config: `configurable` with `thread_id`; with `checkpoint_ns` that namespace, without it all of them
                merged; with `checkpoint_id` that checkpoint. None lists all threads, one namespace after the
                other: by the index where the filter has a `run_id`, otherwise by a scan of the table, which
                is meant for administrators. A damaged namespace then does not keep the others from being listed:
                the error comes at the end.
            filter: Keys and values of metadata that a checkpoint must have; nested values are compared as a whole.
            before: List only checkpoints with a smaller id than this config's `checkpoint_id`.
            limit: How many matching checkpoints to list at most.

        Yields:
            The checkpoints with their pending writes.

        Raises:
            CheckpointerInputError: There is no thread id, an id that DynamoDB cannot take, or a `filter`, `before` or
                `limit` of the wrong kind. The errors below come with the first checkpoint that is asked for, or later.
            CheckpointCorruptionError: As for `get_tuple`.
            CheckpointFormatError: As for `get_tuple`.
            CheckpointNotFoundError: As for `get_tuple`.
        """
        return self._blocking.stream(
            list_checkpoints(self._table, self._codec, config, filter, before, limit)
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
        return self._async.stream(list_checkpoints(self._table, self._codec, config, filter, before, limit))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what delta channels are rebuilt from: their nearest stored value and the writes since.

        Args:
            config: The checkpoint, or a namespace whose newest checkpoint is meant.
            channels: The channels' names.

        Returns:
            For each channel its writes, oldest first, and its `seed` where an ancestor has a value stored.

        Raises:
            CheckpointerInputError: There is no thread id, or an id that DynamoDB cannot take.
            CheckpointCorruptionError: Stored data is damaged or missing.
            CheckpointNotFoundError: An ancestor that is needed has expired or was deleted; a shorter state is
                never returned in its place.
        """
        return self._blocking.run(get_delta_channel_history(self._table, self._codec, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do as `get_delta_channel_history` does."""
        return await self._async.run(get_delta_channel_history(self._table, self._codec, config, channels))

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; when this returns it is whole, whatever else happens to its thread meanwhile.

        Put an id once, or again with the same values. Other values replace the checkpoint for every reader, but its
        children inherit what their own process knows of it: the first values where it remembers them (`cache_bytes`),
        the later ones where it does not.

        Args:
            config: `configurable` with `thread_id`, `checkpoint_ns`, and the parent's `checkpoint_id` if any.
            checkpoint: The checkpoint, of any size.
            metadata: Its metadata; keys of the config are added as LangGraph defines it.
            new_versions: The channels that this step changed. Others are held as the parent holds them.

        Returns:
            The config that names the stored checkpoint.

        Raises:
            CheckpointerInputError: An id is missing or one that DynamoDB cannot take.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The parent, of which values are inherited, is damaged.
            ThreadBusyError: Deletions of the thread, or other puts of the checkpoint, kept interfering.
        """
        return self._blocking.run(put(self._table, self._codec, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do as `put` does."""
        return await self._async.run(
            put(self._table, self._codec, config, checkpoint, metadata, new_versions)
        )

    def put_with_writes(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        pending_writes: Sequence[HeldWrites],
    ) -> RunnableConfig:
        """Store a checkpoint with writes that were held back: what `DeferredCheckpointSaver` calls to flush.

        The writes are stored first, so that whoever finds the checkpoint finds them. Writes of checkpoints that are
        not in the table, since only the last one of a run was kept, are left out: no reader would find them.

        Args:
            config: As for `put`. Where the parent was never stored, parts of the newest checkpoint are reused.
            checkpoint: As for `put`.
            metadata: As for `put`.
            new_versions: The channels that changed since the last checkpoint that was stored.
            pending_writes: For each call of `put_writes` its config, writes, task id and task path.

        Returns:
            The config that names the stored checkpoint.

        Raises:
            CheckpointerInputError: An id is missing or one that DynamoDB cannot take.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The checkpoint of which parts are reused is damaged.
            ThreadBusyError: Deletions of the thread, or other puts of the checkpoint, kept interfering.
        """
        return self._blocking.run(
            put_with_writes(
                self._table, self._codec, config, checkpoint, metadata, new_versions, pending_writes
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
            put_with_writes(
                self._table, self._codec, config, checkpoint, metadata, new_versions, pending_writes
            )
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's pending writes: one request up to 64 KiB, compressed; two in a subgraph.

        Args:
            config: `configurable` with `thread_id`, `checkpoint_id`, and optionally `checkpoint_ns`.
            writes: Channels and values. Special ones (errors, interrupts, resumes) replace what the task has. Of the
                others, whatever was stored first at a position stays, so that a repeated call changes nothing.
            task_id: The task's id.
            task_path: The task's path, by which writes are ordered.

        Raises:
            CheckpointerInputError: An id is missing or one that DynamoDB cannot take.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The task's writes, which these are to be merged with, are damaged.
            ThreadBusyError: Other calls for the same task, or deletions, kept interfering.
        """
        self._blocking.run(put_writes(self._table, self._codec, config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do as `put_writes` does."""
        await self._async.run(put_writes(self._table, self._codec, config, writes, task_id, task_path))

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: checkpoints, writes and all else, in every namespace.

        Deletions of one thread exclude each other. One waits about 60 seconds for another; one whose process died
        keeps others out for 120 seconds; one that is cancelled or interrupted lets go of the thread.

        Args:
            thread_id: The thread.

        Raises:
            CheckpointerInputError: The id is one that DynamoDB cannot take.
            ThreadBusyError: Another deletion of the thread did not end in time.
        """
        self._blocking.run(delete_thread(self._table, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Do as `delete_thread` does."""
        await self._async.run(delete_thread(self._table, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that carry one of these run ids in their metadata, in every thread.

        The index by which runs are found lags a little; a run of the last seconds may be missed. Deletions of a
        thread exclude each other, as for `delete_thread`. A thread that is damaged or busy does not keep the others
        from being served; of several, the error is like the first and names all.

        Args:
            run_ids: The runs' ids.

        Raises:
            CheckpointerInputError: `run_ids` is a single string.
            CheckpointCorruptionError: Stored data of a thread is damaged.
            CheckpointFormatError: It was stored by a newer release.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        self._blocking.run(delete_for_runs(self._table, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `delete_for_runs` does."""
        await self._async.run(delete_for_runs(self._table, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint of a thread with its writes; what the target has besides stays.

        Args:
            source_thread_id: The thread to copy.
            target_thread_id: The thread to copy to.

        Raises:
            CheckpointerInputError: Both are the same thread, or an id is one that DynamoDB cannot take.
            CheckpointNotFoundError: The source has no checkpoint.
            CheckpointCorruptionError: A checkpoint of the source is damaged.
            ThreadBusyError: Deletions of one of the threads kept interfering.
        """
        self._blocking.run(copy_thread(self._table, self._codec, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `copy_thread` does."""
        await self._async.run(copy_thread(self._table, self._codec, source_thread_id, target_thread_id))

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Remove old checkpoints of threads, with the writes and values that only they need.

        What the kept checkpoints' delta channels are rebuilt from is kept too. A kept checkpoint whose parent
        goes loses its parent. The namespace of one call of a subgraph goes with the root checkpoint that the
        call started from. A thread that is damaged or busy does not keep the others from being served; of several,
        the error is like the first and names all.

        Args:
            thread_ids: The threads.
            strategy: `keep_latest` keeps the newest checkpoint of each namespace, `keep_last` the newest
                `keep_last` of them, `delete` none. `delete_all`, which the Agent Server says, is `delete`.
            keep_last: How many checkpoints of each namespace `keep_last` keeps.

        Raises:
            CheckpointerInputError: `thread_ids` is a single string, an id is one that DynamoDB cannot take, the
                strategy is unknown, or `keep_last` does not go with it.
            CheckpointCorruptionError: What a checkpoint's delta channels are rebuilt from is damaged.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        self._blocking.run(prune(self._table, thread_ids, strategy, keep_last))

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Do as `prune` does."""
        await self._async.run(prune(self._table, thread_ids, strategy, keep_last))

    # One runner at a time

    def thread_lock(self, thread_id: str, *, ttl: float = 60.0, wait: float = 0.0) -> ThreadLock:
        """Return a lock that keeps other runners that take it out of a thread while its `with` block runs.

        LangGraph runs a thread as often as it is asked to: of two runs at once, the later checkpoint wins, and what the
        other one answered is in no history. So take the lock around `get_state` and `invoke`; two requests when it is
        free, and one more for each third of `ttl`. It binds those who take it and nobody else; deletions do not.

        A block whose process stands still for longer than `ttl` may lose the lock, and what it does then nobody
        stops. `check()` before what must not be done twice makes that an error, and so does the block's end.

        Args:
            thread_id: The thread.
            ttl: Seconds for which it is held without being renewed: a process that dies keeps others out for as
                long and 5 seconds more, by which clocks may differ. At least 1.
            wait: Seconds to wait for it, at most.

        Returns:
            A context manager, for one block at a time. A block's hold belongs to the process that entered it: a child
            that it forks has none, and is told by `check()` and when it leaves the block.

        Raises:
            CheckpointerInputError: `thread_id` is no id, or `ttl` or `wait` no such number. On entering:
            ThreadBusyError: Another runner had it all the time.
            ThreadLockLostError: On leaving: another runner has taken it meanwhile.
        """
        hold = hold_on(self._table, thread_id, ttl, wait)
        return ThreadLock(self._blocking.run, self._table, hold, wait)

    def athread_lock(self, thread_id: str, *, ttl: float = 60.0, wait: float = 0.0) -> AsyncThreadLock:
        """Do as `thread_lock` does, for `async with`; `await lock.check()`."""
        hold = hold_on(self._table, thread_id, ttl, wait)
        return AsyncThreadLock(self._async.run, self._table, hold, wait)

    # Versions

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after `current`: whole numbers, or the padded strings that a thread came with.

        Args:
            current: The channel's version, None for the first.
            channel: Not used.

        Returns:
            A version that is larger than `current`, in its form.
        """
        del channel
        return next_version(current)


def next_version(current: Any) -> Any:
    """The version after one, in its form."""
    if isinstance(current, str):
        count = int(current.split(".")[0]) + 1
        return f"{count:032}.{random.random():016}"  # noqa: S311 - it only tells apart, as in LangGraph.
    return 1 if current is None else current + 1
