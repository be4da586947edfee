"""The methods that LangGraph and its callers use of a saver: each runs one operation.

`make format` writes the async methods from the others.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from ._operations.copy import copy_thread
from ._operations.delete import delete_for_runs, delete_thread, prune
from ._operations.delete_owner import AT_ONCE, MemoryStore, OwnerDeletion, OwnerMemories, delete_owner
from ._operations.delta_history import get_delta_channel_history
from ._operations.get import get_tuple
from ._operations.list import list_checkpoints
from ._operations.overview import RunSummary, list_runs
from ._operations.put import put
from ._operations.put_writes import put_writes
from ._operations.threads import ThreadPage, ThreadQuery, list_threads, set_thread
from ._runtime.drivers import TransportOwner
from ._runtime.storage import Storage

P = ParamSpec("P")
T = TypeVar("T")

CACHE_BYTES = 32 * 1024 * 1024


class TableSaver(TransportOwner, BaseCheckpointSaver[Any], ABC):
    """A LangGraph checkpoint saver whose checkpoints are in a table, which it reaches directly, or through a gateway.

    LangGraph copies a saver to give it another serializer; copies share everything else.
    """

    @property
    def _prefix(self) -> str:
        """The beginning of thread ids and owners in the table, which its caller does not know."""
        return ""

    @abstractmethod
    def _operation(
        self, operation: Callable[Concatenate[Storage, P], T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        """Return an operation with its arguments, or the one that does the same through a gateway."""

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the checkpoint that the config names, or the newest one of its namespace.

        Args:
            config: `configurable` with `thread_id`, and optionally `checkpoint_ns` and `checkpoint_id`.

        Returns:
            The checkpoint with its pending writes, in the order in which a run applies them; `None` if there is
            no checkpoint or it has expired.

        Raises:
            CheckpointerInputError: The thread id is missing, or DynamoDB cannot store an id.
            CheckpointCorruptionError: Stored data is damaged or missing. An older checkpoint that a deletion kept is
                treated as absent if its segments are missing.
            CheckpointFormatError: The data was stored by a newer release.
            CheckpointNotFoundError: Deletions of the thread kept interfering.
        """
        return self.runner.run(self._operation(get_tuple, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the checkpoint that the config names, or the newest one of its namespace.

        Args:
            config: `configurable` with `thread_id`, and optionally `checkpoint_ns` and `checkpoint_id`.

        Returns:
            The checkpoint with its pending writes, in the order in which a run applies them; `None` if there is
            no checkpoint or it has expired.

        Raises:
            CheckpointerInputError: The thread id is missing, or DynamoDB cannot store an id.
            CheckpointCorruptionError: Stored data is damaged or missing. An older checkpoint that a deletion kept is
                treated as absent if its segments are missing.
            CheckpointFormatError: The data was stored by a newer release.
            CheckpointNotFoundError: Deletions of the thread kept interfering.
        """
        return await self.runner.arun(self._operation(get_tuple, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first. No request is made before the first checkpoint is read from the iterator.

        Args:
            config: `configurable` with `thread_id`; with `checkpoint_ns` that namespace, without it all of them
                merged; with `checkpoint_id` that checkpoint. `None` or `{}` lists all threads, one namespace after
                the other: by the index if the filter has a `run_id`, otherwise by a scan of the table, which is meant
                for administrators. If a namespace is damaged, the list continues with the others, and raises the error
                at its end.
            filter: Keys and values of metadata that a checkpoint must have; nested values are compared as a whole.
            before: List only checkpoints with a smaller id than this config's `checkpoint_id`, which it must have.
            limit: The maximum number of matching checkpoints to list, 0 or more.

        Yields:
            The checkpoints with their pending writes.

        Raises:
            CheckpointerInputError: The thread id is missing, DynamoDB cannot store an id, `filter`, `before` or
                `limit` is of the wrong kind, `before` has no `checkpoint_id`, or `limit` is negative. The iterator
                raises the errors below at its first or a later step.
            CheckpointCorruptionError: As for `get_tuple`.
            CheckpointFormatError: As for `get_tuple`.
            CheckpointNotFoundError: As for `get_tuple`.
        """
        return self.runner.stream(self._operation(list_checkpoints, config, filter, before, limit))

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first. No request is made before the first checkpoint is read from the iterator.

        Args:
            config: `configurable` with `thread_id`; with `checkpoint_ns` that namespace, without it all of them
                merged; with `checkpoint_id` that checkpoint. `None` or `{}` lists all threads, one namespace after
                the other: by the index if the filter has a `run_id`, otherwise by a scan of the table, which is meant
                for administrators. If a namespace is damaged, the list continues with the others, and raises the error
                at its end.
            filter: Keys and values of metadata that a checkpoint must have; nested values are compared as a whole.
            before: List only checkpoints with a smaller id than this config's `checkpoint_id`, which it must have.
            limit: The maximum number of matching checkpoints to list, 0 or more.

        Yields:
            The checkpoints with their pending writes.

        Raises:
            CheckpointerInputError: The thread id is missing, DynamoDB cannot store an id, `filter`, `before` or
                `limit` is of the wrong kind, `before` has no `checkpoint_id`, or `limit` is negative. The iterator
                raises the errors below at its first or a later step.
            CheckpointCorruptionError: As for `aget_tuple`.
            CheckpointFormatError: As for `aget_tuple`.
            CheckpointNotFoundError: As for `aget_tuple`.
        """
        return self.runner.astream(self._operation(list_checkpoints, config, filter, before, limit))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what delta channels are rebuilt from: their nearest stored value and the writes since.

        Args:
            config: `configurable` that names a checkpoint, or a namespace for its newest checkpoint.
            channels: The channels' names.

        Returns:
            For each channel its writes, oldest first, and its `seed` if an ancestor has a stored value.

        Raises:
            CheckpointerInputError: The thread id is missing, or DynamoDB cannot store an id.
            CheckpointCorruptionError: Stored data is damaged or missing.
            CheckpointNotFoundError: A needed ancestor has expired or was deleted. A shorter state is never returned
                instead.
        """
        return self.runner.run(self._operation(get_delta_channel_history, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what delta channels are rebuilt from: their nearest stored value and the writes since.

        Args:
            config: `configurable` that names a checkpoint, or a namespace for its newest checkpoint.
            channels: The channels' names.

        Returns:
            For each channel its writes, oldest first, and its `seed` if an ancestor has a stored value.

        Raises:
            CheckpointerInputError: The thread id is missing, or DynamoDB cannot store an id.
            CheckpointCorruptionError: Stored data is damaged or missing.
            CheckpointNotFoundError: A needed ancestor has expired or was deleted. A shorter state is never returned
                instead.
        """
        return await self.runner.arun(self._operation(get_delta_channel_history, config, channels))

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Once this returns, it is whole, no matter what else happens to its thread.

        Put an id once, or again with the same values. Other values replace the checkpoint for every reader, but its
        children inherit the values that their own process knows: the first ones if they are cached (`cache_bytes`),
        otherwise the later ones.

        Args:
            config: `configurable` with `thread_id`, `checkpoint_ns`, and the parent's `checkpoint_id` if any.
            checkpoint: The checkpoint, of any size.
            metadata: Its metadata. Keys of the config are added, as LangGraph requires.
            new_versions: The channels that this step changed. The others inherit the parent's values.

        Returns:
            The config that names the stored checkpoint.

        Raises:
            CheckpointerInputError: An id is missing, or DynamoDB cannot store it.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The parent, whose values are inherited, is damaged.
            ThreadBusyError: Deletions of the thread, or other puts of the checkpoint, kept interfering.
        """
        return self.runner.run(self._operation(put, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Once this returns, it is whole, no matter what else happens to its thread.

        Put an id once, or again with the same values. Other values replace the checkpoint for every reader, but its
        children inherit the values that their own process knows: the first ones if they are cached (`cache_bytes`),
        otherwise the later ones.

        Args:
            config: `configurable` with `thread_id`, `checkpoint_ns`, and the parent's `checkpoint_id` if any.
            checkpoint: The checkpoint, of any size.
            metadata: Its metadata. Keys of the config are added, as LangGraph requires.
            new_versions: The channels that this step changed. The others inherit the parent's values.

        Returns:
            The config that names the stored checkpoint.

        Raises:
            CheckpointerInputError: An id is missing, or DynamoDB cannot store it.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The parent, whose values are inherited, is damaged.
            ThreadBusyError: Deletions of the thread, or other puts of the checkpoint, kept interfering.
        """
        return await self.runner.arun(self._operation(put, config, checkpoint, metadata, new_versions))

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
            writes: Channels and values. Special writes (errors, interrupts, resumes) replace stored ones. Of other
                writes, the first one at a position stays, so that a repeated call changes nothing.
            task_id: The task's id.
            task_path: The task's path, by which writes are ordered.

        Raises:
            CheckpointerInputError: An id is missing, or DynamoDB cannot store it.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The task's stored writes, which have to be merged with these, are damaged.
            ThreadBusyError: Other calls for the same task, or deletions, kept interfering.
        """
        self.runner.run(self._operation(put_writes, config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's pending writes: one request up to 64 KiB, compressed; two in a subgraph.

        Args:
            config: `configurable` with `thread_id`, `checkpoint_id`, and optionally `checkpoint_ns`.
            writes: Channels and values. Special writes (errors, interrupts, resumes) replace stored ones. Of other
                writes, the first one at a position stays, so that a repeated call changes nothing.
            task_id: The task's id.
            task_path: The task's path, by which writes are ordered.

        Raises:
            CheckpointerInputError: An id is missing, or DynamoDB cannot store it.
            CheckpointSerializationError: The serializer cannot write a value; nothing was stored.
            CheckpointCorruptionError: The task's stored writes, which have to be merged with these, are damaged.
            ThreadBusyError: Other calls for the same task, or deletions, kept interfering.
        """
        await self.runner.arun(self._operation(put_writes, config, writes, task_id, task_path))

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: checkpoints, writes and everything else, in every namespace.

        Only one deletion of a thread runs at a time. A second one waits about 60 seconds for it. If the process of a
        deletion dies, others cannot begin for 120 seconds. A deletion that is cancelled or interrupted releases the
        thread.

        Args:
            thread_id: The thread.

        Raises:
            CheckpointerInputError: DynamoDB cannot store the id.
            ThreadBusyError: Another deletion of the thread did not end in time.
        """
        self.runner.run(self._operation(delete_thread, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread: checkpoints, writes and everything else, in every namespace.

        Only one deletion of a thread runs at a time. A second one waits about 60 seconds for it. If the process of a
        deletion dies, others cannot begin for 120 seconds. A deletion that is cancelled or interrupted releases the
        thread.

        Args:
            thread_id: The thread.

        Raises:
            CheckpointerInputError: DynamoDB cannot store the id.
            ThreadBusyError: Another deletion of the thread did not end in time.
        """
        await self.runner.arun(self._operation(delete_thread, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints with one of these run ids in their metadata, in every thread.

        The index of runs lags a little, so the call may miss a run of the last seconds. Only one deletion of a thread
        runs at a time, as for `delete_thread`. If a thread is damaged or busy, the call continues with the others. If
        several are, the error has the type of the first one and names them all.

        Args:
            run_ids: The runs' ids.

        Raises:
            CheckpointerInputError: `run_ids` is a single string.
            CheckpointCorruptionError: Stored data of a thread is damaged.
            CheckpointFormatError: The data was stored by a newer release.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        self.runner.run(self._operation(delete_for_runs, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints with one of these run ids in their metadata, in every thread.

        The index of runs lags a little, so the call may miss a run of the last seconds. Only one deletion of a thread
        runs at a time, as for `adelete_thread`. If a thread is damaged or busy, the call continues with the others. If
        several are, the error has the type of the first one and names them all.

        Args:
            run_ids: The runs' ids.

        Raises:
            CheckpointerInputError: `run_ids` is a single string.
            CheckpointCorruptionError: Stored data of a thread is damaged.
            CheckpointFormatError: The data was stored by a newer release.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        await self.runner.arun(self._operation(delete_for_runs, run_ids))

    def delete_owner(
        self,
        owner: str,
        *,
        memories: Sequence[Sequence[str]] = (),
        store: MemoryStore | None = None,
        parallel: int = AT_ONCE,
    ) -> OwnerDeletion:
        """Delete all threads of an owner that the directory has, expired ones included, and memories.

        It then looks again: a thread that was begun or continued meanwhile counts as failed. Repeat the call until
        nothing fails, and nothing was put meanwhile.

        Args:
            owner: The owner's name.
            memories: The namespaces of the owner's memories. A label `"{owner}"` stands for the name, without the
                tenant. One of the labels has to be the owner's, or else the namespace would be everybody's.
            store: The store that has these memories.
            parallel: How many threads to delete side by side. A gateway decides that itself.

        Returns:
            What was deleted, the threads that failed with the reasons, and where data may be besides.

        Raises:
            CheckpointerConfigurationError: The owner has no threads, and `owner_key` is not the directory's.
            CheckpointerInputError: DynamoDB cannot store the name, or `memories` may be of others, or has no store.
        """
        stored = OwnerMemories(owner, memories, store, self._prefix)
        threads = self.runner.run(self._operation(delete_owner, owner, parallel))
        return stored.report(threads, self._erased(stored))

    async def adelete_owner(
        self,
        owner: str,
        *,
        memories: Sequence[Sequence[str]] = (),
        store: MemoryStore | None = None,
        parallel: int = AT_ONCE,
    ) -> OwnerDeletion:
        """Delete all threads of an owner that the directory has, expired ones included, and memories.

        It then looks again: a thread that was begun or continued meanwhile counts as failed. Repeat the call until
        nothing fails, and nothing was put meanwhile.

        Args:
            owner: The owner's name.
            memories: The namespaces of the owner's memories. A label `"{owner}"` stands for the name, without the
                tenant. One of the labels has to be the owner's, or else the namespace would be everybody's.
            store: The store that has these memories.
            parallel: How many threads to delete side by side. A gateway decides that itself.

        Returns:
            What was deleted, the threads that failed with the reasons, and where data may be besides.

        Raises:
            CheckpointerConfigurationError: The owner has no threads, and `owner_key` is not the directory's.
            CheckpointerInputError: DynamoDB cannot store the name, or `memories` may be of others, or has no store.
        """
        stored = OwnerMemories(owner, memories, store, self._prefix)
        threads = await self.runner.arun(self._operation(delete_owner, owner, parallel))
        return stored.report(threads, await self._aerased(stored))

    def _erased(self, memories: OwnerMemories) -> Sequence[tuple[int, int]]:
        """Delete memories; return how many each namespace had, and how many more when it was looked at again."""
        if (store := memories.store) is None:
            return []
        first = [store.delete_namespace(each) for each in memories.namespaces]
        again = [store.delete_namespace(each) for each in memories.namespaces]
        return list(zip(first, again, strict=True))

    async def _aerased(self, memories: OwnerMemories) -> Sequence[tuple[int, int]]:
        """Delete memories; return how many each namespace had, and how many more when it was looked at again."""
        if (store := memories.store) is None:
            return []
        first = [await store.adelete_namespace(each) for each in memories.namespaces]
        again = [await store.adelete_namespace(each) for each in memories.namespaces]
        return list(zip(first, again, strict=True))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint of a thread with its writes, as they are at one moment.

        Checkpoints that the target already has stay.

        Args:
            source_thread_id: The thread to copy.
            target_thread_id: The thread to copy to.

        Raises:
            CheckpointerInputError: Both are the same thread, or DynamoDB cannot store an id.
            CheckpointNotFoundError: The source has no checkpoint.
            CheckpointCorruptionError: A checkpoint of the source is damaged.
            ThreadBusyError: Deletions of one of the threads, or a run of the source, kept interfering.
        """
        self.runner.run(self._operation(copy_thread, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint of a thread with its writes, as they are at one moment.

        Checkpoints that the target already has stay.

        Args:
            source_thread_id: The thread to copy.
            target_thread_id: The thread to copy to.

        Raises:
            CheckpointerInputError: Both are the same thread, or DynamoDB cannot store an id.
            CheckpointNotFoundError: The source has no checkpoint.
            CheckpointCorruptionError: A checkpoint of the source is damaged.
            ThreadBusyError: Deletions of one of the threads, or a run of the source, kept interfering.
        """
        await self.runner.arun(self._operation(copy_thread, source_thread_id, target_thread_id))

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Remove old checkpoints of threads, with the writes and values that only they need.

        What runs from kept checkpoints need is kept too: checkpoints of subgraphs, and ancestors that delta channels
        are rebuilt from. A kept checkpoint whose parent is removed loses the link to it. The namespace of a subgraph
        call is removed with the root checkpoint from which the call started. If a thread is damaged or busy, the call
        continues with the others. If several are, the error has the type of the first one and names them all.

        Args:
            thread_ids: The threads.
            strategy: `keep_latest` keeps the newest checkpoint of each namespace, `keep_last` the newest
                `keep_last` of them, `delete` none. `delete_all`, the Agent Server's name, is the same as `delete`.
            keep_last: How many checkpoints of each namespace to keep with the strategy `keep_last`.

        Raises:
            CheckpointerInputError: `thread_ids` is a single string, DynamoDB cannot store an id, the strategy is
                unknown, or `keep_last` does not go with it.
            CheckpointCorruptionError: An ancestor that delta channels are rebuilt from is damaged.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        self.runner.run(self._operation(prune, thread_ids, strategy, keep_last))

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest", keep_last: int | None = None
    ) -> None:
        """Remove old checkpoints of threads, with the writes and values that only they need.

        What runs from kept checkpoints need is kept too: checkpoints of subgraphs, and ancestors that delta channels
        are rebuilt from. A kept checkpoint whose parent is removed loses the link to it. The namespace of a subgraph
        call is removed with the root checkpoint from which the call started. If a thread is damaged or busy, the call
        continues with the others. If several are, the error has the type of the first one and names them all.

        Args:
            thread_ids: The threads.
            strategy: `keep_latest` keeps the newest checkpoint of each namespace, `keep_last` the newest
                `keep_last` of them, `delete` none. `delete_all`, the Agent Server's name, is the same as `delete`.
            keep_last: How many checkpoints of each namespace to keep with the strategy `keep_last`.

        Raises:
            CheckpointerInputError: `thread_ids` is a single string, DynamoDB cannot store an id, the strategy is
                unknown, or `keep_last` does not go with it.
            CheckpointCorruptionError: An ancestor that delta channels are rebuilt from is damaged.
            ThreadBusyError: Another deletion of a thread did not end in time.
        """
        await self.runner.arun(self._operation(prune, thread_ids, strategy, keep_last))

    # The directory of threads

    def set_thread(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Set a thread's owner, title and metadata, and enter it in the directory if it is not there.

        The thread need not have a checkpoint yet. Arguments that are `None` change nothing.

        Args:
            thread_id: The thread.
            owner: The owner's name. If it begins with a tenant and a slash, the thread's id has to begin with the same.
            title: A title; empty text removes it.
            metadata: JSON that lists show and filter by. It replaces the thread's metadata. Owner, title and metadata
                together have at most 768 bytes.

        Raises:
            CheckpointerConfigurationError: The saver encrypts and has no `owner_key`.
            CheckpointerInputError: An argument cannot be used; nothing was stored.
            ThreadBusyError: Other calls, or deletions of the thread, kept interfering.
        """
        self.runner.run(self._operation(set_thread, thread_id, owner, title, metadata))

    async def aset_thread(
        self,
        thread_id: str,
        *,
        owner: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Set a thread's owner, title and metadata, and enter it in the directory if it is not there.

        The thread need not have a checkpoint yet. Arguments that are `None` change nothing.

        Args:
            thread_id: The thread.
            owner: The owner's name. If it begins with a tenant and a slash, the thread's id has to begin with the same.
            title: A title; empty text removes it.
            metadata: JSON that lists show and filter by. It replaces the thread's metadata. Owner, title and metadata
                together have at most 768 bytes.

        Raises:
            CheckpointerConfigurationError: The saver encrypts and has no `owner_key`.
            CheckpointerInputError: An argument cannot be used; nothing was stored.
            ThreadBusyError: Other calls, or deletions of the thread, kept interfering.
        """
        await self.runner.arun(self._operation(set_thread, thread_id, owner, title, metadata))

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
        """List the threads of an owner, newest activity first, by one query for a page.

        Args:
            owner: The owner of the threads to list. `None` lists all threads, day by day, for operators.
            status: Only threads that are `idle`, `waiting` for a human or `failed`. It implies `with_status`. If one
                of several parallel tasks has failed and another waits, the thread is `failed`. A page ends, full or
                not, after 200 look-ups, a query each: go on while there is a cursor.
            metadata: Keys and values that a thread's metadata must have. Values are compared as they are stored, so a
                tuple equals a list, and by `==`, as `list(filter=...)` does: 1 equals `True`. A thread without a key
                never matches, not even `None`. With it, the list reads on until the page is full.
            limit: The maximum number of threads of the page, up to 1,000.
            before: The cursor of the page before this one. It may go through a browser: a changed cursor is only
                another position in the same list.
            with_status: Whether to look up the status and step of each thread, with one query each, in parallel.
            since: The earliest last activity to list. By default there is no bound for an owner, and 30 days for all
                threads, for which it may be up to 366 days ago.

        Returns:
            The threads that have not expired, and the cursor of the next page. The indexes lag by up to a few seconds.

        Raises:
            CheckpointerConfigurationError: The saver encrypts and has no `owner_key`, or the table lacks the index.
            CheckpointerInputError: An argument cannot be used.
            CheckpointCorruptionError: An entry is damaged.
        """
        query = ThreadQuery(
            owner=owner,
            status=status,
            metadata=metadata,
            limit=limit,
            before=before,
            with_status=with_status,
            since=since,
        )
        return self.runner.run(self._operation(list_threads, query))

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
        """List the threads of an owner, newest activity first, by one query for a page.

        Args:
            owner: The owner of the threads to list. `None` lists all threads, day by day, for operators.
            status: Only threads that are `idle`, `waiting` for a human or `failed`. It implies `with_status`. If one
                of several parallel tasks has failed and another waits, the thread is `failed`. A page ends, full or
                not, after 200 look-ups, a query each: go on while there is a cursor.
            metadata: Keys and values that a thread's metadata must have. Values are compared as they are stored, so a
                tuple equals a list, and by `==`, as `list(filter=...)` does: 1 equals `True`. A thread without a key
                never matches, not even `None`. With it, the list reads on until the page is full.
            limit: The maximum number of threads of the page, up to 1,000.
            before: The cursor of the page before this one. It may go through a browser: a changed cursor is only
                another position in the same list.
            with_status: Whether to look up the status and step of each thread, with one query each, in parallel.
            since: The earliest last activity to list. By default there is no bound for an owner, and 30 days for all
                threads, for which it may be up to 366 days ago.

        Returns:
            The threads that have not expired, and the cursor of the next page. The indexes lag by up to a few seconds.

        Raises:
            CheckpointerConfigurationError: The saver encrypts and has no `owner_key`, or the table lacks the index.
            CheckpointerInputError: An argument cannot be used.
            CheckpointCorruptionError: An entry is damaged.
        """
        query = ThreadQuery(
            owner=owner,
            status=status,
            metadata=metadata,
            limit=limit,
            before=before,
            with_status=with_status,
            since=since,
        )
        return await self.runner.arun(self._operation(list_threads, query))

    def runs(self, thread_id: str) -> Sequence[RunSummary]:
        """List the runs of a thread whose checkpoints have a run id, the newest first.

        It reads the heads of the thread's root namespace, so it costs as much as to list them.

        Args:
            thread_id: The thread.

        Returns:
            The first and the last checkpoint of each run, how many there are, and the status as of the last one.

        Raises:
            CheckpointerInputError: DynamoDB cannot store the id.
            CheckpointCorruptionError: A checkpoint is damaged.
        """
        return self.runner.run(self._operation(list_runs, thread_id))

    async def aruns(self, thread_id: str) -> Sequence[RunSummary]:
        """List the runs of a thread whose checkpoints have a run id, the newest first.

        It reads the heads of the thread's root namespace, so it costs as much as to list them.

        Args:
            thread_id: The thread.

        Returns:
            The first and the last checkpoint of each run, how many there are, and the status as of the last one.

        Raises:
            CheckpointerInputError: DynamoDB cannot store the id.
            CheckpointCorruptionError: A checkpoint is damaged.
        """
        return await self.runner.arun(self._operation(list_runs, thread_id))

    # Versions

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after `current`: a whole number, or a padded string if the thread uses these.

        Args:
            current: The channel's version; `None` for the first.
            channel: Not used.

        Returns:
            A version that is larger than `current`, in the same form.
        """
        del channel
        if isinstance(current, str):
            count = int(current.split(".")[0]) + 1
            return f"{count:032}.{random.random():016}"  # noqa: S311 - it only tells apart, as in LangGraph.
        return 1 if current is None else current + 1
