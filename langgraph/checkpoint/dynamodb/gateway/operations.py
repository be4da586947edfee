"""The endpoints' operations: each runs the saver's own on opaque values, and makes the answer's document.

The documents are those of docs/wire.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.content import pack_typed
from langgraph.checkpoint.dynamodb._operations import copy, delete, put_writes
from langgraph.checkpoint.dynamodb._operations.delta_history import find_history
from langgraph.checkpoint.dynamodb._operations.directory import (
    ThreadQuery,
    ThreadSummary,
    list_threads,
    set_thread,
)
from langgraph.checkpoint.dynamodb._operations.entries import with_owner
from langgraph.checkpoint.dynamodb._operations.error_collector import OF_ONE_THREAD, ErrorCollector
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.list import Position, Selection
from langgraph.checkpoint.dynamodb._operations.put import WantedValuesError, snapshot_arguments, store
from langgraph.checkpoint.dynamodb._operations.runs import list_runs
from langgraph.checkpoint.dynamodb._operations.thread_lock import Hold, TableHolder
from langgraph.checkpoint.dynamodb._runtime.steps import Op, collected, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadLockLostError
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.deltas import rebuilt
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoints
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.opaque import (
    OpaqueValue,
    checkpoint_document,
    may_match,
    place_document,
    size_of,
    value_documents,
)
from langgraph.checkpoint.dynamodb.gateway.plain import plain_document

Document: TypeAlias = dict[str, Any]
# How many checkpoints a page of a list has at most.
_LISTED_MAX = 1000


ENDPOINTS = Endpoints()


@dataclass(frozen=True)
class Operations:
    """One method for each endpoint of threads: it takes the request, and returns an operation on opaque values.

    Args:
        storage: The storage that is served, as this request may use it.
        limits: The limits of one request.
        prefix: What the ids of threads begin with that a list without a thread reads: even an error names no others.
    """

    storage: Storage
    limits: Limits
    prefix: str = ""

    # Reading

    @ENDPOINTS.serve("read", wire.GetTupleResponse, absent={"checkpoint": None})
    def get_tuple(self, request: wire.GetTupleRequest) -> Op[Document]:
        """Read a checkpoint."""
        config = _config(request.thread_id, request.checkpoint_ns, request.checkpoint_id)
        found = yield from get_tuple(self.storage, config)
        if found is None:
            return {"checkpoint": None}
        show = partial(self._shown, found, request, frozenset(request.have))
        return {"checkpoint": (yield from work(show, size_of(found)))}

    @ENDPOINTS.serve("read", wire.ListResponse, absent={"checkpoints": [], "after": None, "problem": None})
    def list(self, request: wire.ListRequest) -> Op[Document]:
        """List checkpoints, newest first, as many as fit and there is time for."""
        config, after, errors = None, None, ErrorCollector()
        if request.thread_id is not None:
            config = _config(request.thread_id, request.checkpoint_ns, request.checkpoint_id)
        elif request.checkpoint_ns is not None or request.checkpoint_id is not None:
            raise CheckpointerInputError("checkpoint_ns and checkpoint_id need a thread_id; leave them out")
        if request.after is not None:
            end = request.after
            after = Position(end.thread_id, end.checkpoint_ns, end.checkpoint_id)
        page = _Page(request.limit, self._fullness())
        selection = Selection(
            storage=self.storage,
            metadata_filter=request.filter,
            before=request.before,
            left=request.limit,
            after=after,
            prefix=self.prefix,
            matches=may_match,
            errors=errors,
            ends_behind=page.ends_behind,
        )
        problem: Exception | None = None
        try:
            yield from collected(selection.of(config), page.add)
            errors.raise_first()
        except OF_ONE_THREAD as error:
            if not page.found and page.end is None:
                raise
            problem = error

        def shown() -> Document:
            documents = [self._shown(each, request, frozenset()) for each in page.found]
            return {"checkpoints": documents, "after": page.end, "problem": problem}

        return (yield from work(shown, page.size_bytes))

    def _fullness(self) -> Callable[[int], bool]:
        """Return what tells whether a page of so many bytes ends, since it is full or its time is over."""
        clock = self.storage.clock
        # Early enough for the last checkpoint that is begun.
        until = clock() + self.limits.request_seconds_max / 4
        return lambda size_bytes: size_bytes > self.limits.answer_bytes or clock() > until

    def _shown(self, found: CheckpointTuple, request: wire.Reading, have: frozenset[bytes]) -> Document:
        if request.plain:
            return plain_document(found, request.channels, self.limits.answer_bytes)
        return checkpoint_document(found, request.channels, have, self.limits.answer_bytes)

    @ENDPOINTS.serve(
        "read",
        wire.DeltaChannelHistoryResponse,
        name="delta-channel-history",
        absent={"channels": {}, "after": None},
    )
    def get_delta_channel_history(self, request: wire.DeltaChannelHistoryRequest) -> Op[Document]:
        """Read what delta channels are rebuilt from."""
        config = _config(request.thread_id, request.checkpoint_ns, request.checkpoint_id)
        is_full = self._fullness()
        page = yield from find_history(
            self.storage, config, request.channels, after=request.after, is_full=is_full
        )

        def shown() -> Document:
            value = value_documents(frozenset(request.have), self.limits.answer_bytes)
            return {
                "channels": {
                    name: _history_document(each, page.checkpoint_ids[name], value)
                    for name, each in page.channels.items()
                },
                "after": page.after,
            }

        return (yield from work(shown, self.limits.answer_bytes))

    # Writing

    @ENDPOINTS.serve("write", wire.PutResponse)
    def put(self, request: wire.PutRequest) -> Op[Document]:
        """Store a checkpoint, unless values are wanted whole."""
        partition = items.partition_of(request.thread_id, request.checkpoint_ns)
        storage = self.storage
        if request.listed or request.owner is not None or storage.owner is not None:
            storage = with_owner(storage, items.partition_of(request.thread_id), request.owner)
        values = {
            name: OpaqueValue(each.type, each.data)
            for name, each in request.values.items()
            if isinstance(each, wire.Value)
        }
        values |= yield from rebuilt(storage, partition, request)
        config = _config(request.thread_id, request.checkpoint_ns, request.parent_checkpoint_id)
        config["configurable"]["checkpoint_map"] = request.checkpoint_map
        checkpoint: Any = {**request.checkpoint.model_dump(), "channel_values": values}
        metadata: Any = request.metadata
        # A delta whose base is not the parent's is as if it had not come.
        kept = {*request.kept, *request.values} - values.keys()
        taken = snapshot_arguments(storage, config, checkpoint, metadata, request.new_versions, kept)
        if request.typed_metadata is not None:
            typed = request.typed_metadata
            taken = replace(taken, metadata=pack_typed(typed.type, typed.data))
        try:
            yield from store(storage, taken)
        except WantedValuesError as error:
            return {"wanted": list(error.names)}
        return {"wanted": []}

    @ENDPOINTS.serve("write", wire.PutWritesResponse)
    def put_writes(self, request: wire.PutWritesRequest) -> Op[Document]:
        """Store a task's writes."""
        writes = [(channel, OpaqueValue(each.type, each.data)) for channel, each in request.writes]
        config = _config(request.thread_id, request.checkpoint_ns, request.checkpoint_id)
        config["configurable"]["checkpoint_map"] = request.checkpoint_map
        task = (request.task_id, request.task_path)
        try:
            yield from put_writes.put_writes(self.storage, config, writes, *task, request.order)
        except put_writes.LaterWritesError as error:
            return {"later": error.order}
        return {"later": None}

    # Deleting and copying

    @ENDPOINTS.serve("administer", wire.Done, absent={})
    def delete_thread(self, request: wire.DeleteThreadRequest) -> Op[Document]:
        """Delete a thread."""
        yield from delete.delete_thread(self.storage, request.thread_id)
        return {}

    @ENDPOINTS.serve("administer", wire.Done)
    def delete_for_runs(self, request: wire.DeleteForRunsRequest) -> Op[Document]:
        """Delete the checkpoints of runs."""
        yield from delete.delete_for_runs(self.storage, request.run_ids, request.thread_prefix)
        return {}

    @ENDPOINTS.serve("administer", wire.Joined, is_joined=True)
    def copy_thread(self, request: wire.CopyThreadRequest) -> Op[Document]:
        """Copy a thread."""
        yield from copy.copy_thread(self.storage, request.source_thread_id, request.target_thread_id)
        return {"done": True}

    @ENDPOINTS.serve("administer", wire.Joined, absent={"done": True}, is_joined=True)
    def prune(self, request: wire.PruneRequest) -> Op[Document]:
        """Remove old checkpoints."""
        yield from delete.prune(self.storage, request.thread_ids, request.strategy, request.keep_last)
        return {"done": True}

    # One runner at a time

    @ENDPOINTS.serve("write", wire.LockResponse)
    def lock(self, request: wire.LockRequest) -> Op[Document]:
        """Acquire, renew or release the lock of a thread. The client waits between its attempts."""
        holder = TableHolder(self.storage)
        hold = Hold(items.partition_of(request.thread_id), request.ttl_seconds, request.token)
        held, free_in_seconds = False, 0.0
        if request.action == "acquire":
            attempt = yield from holder.attempt(hold)
            held, free_in_seconds = attempt.held_until is not None, attempt.free_in_seconds
        elif request.action == "release":
            yield from holder.release(hold)
        else:
            with suppress(ThreadLockLostError):
                yield from holder.renew(hold)
                held = True
        return {"held": held, "free_in_seconds": free_in_seconds}

    # The directory

    @ENDPOINTS.serve("write", wire.Done)
    def set_thread(self, request: wire.SetThreadRequest) -> Op[Document]:
        """Describe a thread."""
        yield from set_thread(self.storage, request.thread_id, request.owner, request.title, request.metadata)
        return {}

    @ENDPOINTS.serve("read", wire.ThreadsResponse, name="threads")
    def list_threads(self, request: wire.ThreadsRequest) -> Op[Document]:
        """List threads."""
        since = None if request.since is None else datetime.fromtimestamp(request.since, timezone.utc)
        query = ThreadQuery(
            owner=request.owner,
            status=request.status,
            metadata=request.metadata,
            limit=request.limit,
            before=request.before,
            with_status=request.with_status,
            since=since,
        )
        page = yield from list_threads(self.storage, query)
        return {"threads": list(map(_thread_document, page.threads)), "cursor": page.cursor}

    @ENDPOINTS.serve("read", wire.RunsResponse, name="runs", absent={"runs": []})
    def list_runs(self, request: wire.RunsRequest) -> Op[Document]:
        """List the runs of a thread."""
        found = yield from list_runs(self.storage, request.thread_id)
        return {"runs": list(map(asdict, found))}


@dataclass
class _Page:
    """A page of a list: as many checkpoints as are wanted and fit, and as there is time for."""

    count_max: int | None
    is_over: Callable[[int], bool]
    found: list[CheckpointTuple] = field(default_factory=list)
    size_bytes: int = 0
    end: Document | None = None
    """Where the next page begins; `None` at the end of the list."""

    def add(self, found: CheckpointTuple) -> bool:
        """Add a checkpoint, and tell whether the page ends with it."""
        self.found.append(found)
        self.size_bytes += size_of(found)
        if len(self.found) not in (self.count_max, _LISTED_MAX) and not self.is_over(self.size_bytes):
            return False
        place = place_document(found)
        self.end = {name: place[name] for name in wire.PageEnd.model_fields}
        return True

    def ends_behind(self, place: Position) -> bool:
        """Tell whether the page ends behind a place, since its time is over, however few checkpoints match."""
        if not self.is_over(self.size_bytes):
            return False
        self.end = dict(zip(wire.PageEnd.model_fields, place, strict=True))
        return True


def _config(thread_id: str, namespace: str | None, checkpoint_id: str | None) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": configurable}


def _history_document(
    history: Mapping[str, Any], checkpoint_ids: Sequence[str], shown: Callable[[OpaqueValue], Document]
) -> Document:
    document = {
        "writes": [[task, channel, shown(each)] for task, channel, each in history["writes"]],
        "checkpoint_ids": checkpoint_ids,
    }
    return document | ({"seed": shown(history["seed"])} if "seed" in history else {})


def _thread_document(thread: ThreadSummary) -> Document:
    def seconds(moment: datetime | None) -> float | None:
        return None if moment is None else moment.timestamp()

    moments = {"created_at": seconds(thread.created_at), "last_active": seconds(thread.last_active)}
    return {**asdict(thread), "metadata": dict(thread.metadata), **moments}
