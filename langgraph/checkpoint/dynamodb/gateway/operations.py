"""The saver's operations on messages from the wire."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial, partialmethod
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    BATCH_GET_ITEMS_MAX,
    INDEX_GROUP,
    LARGE_SEGMENT_BYTES_MIN,
)
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._format.schema import LAST_ACTIVE, OWNER, RUN_ID, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations import copy, delete, directory_table, item_builder, reads
from langgraph.checkpoint.dynamodb._operations.arguments import checked_ids, namespaces_above
from langgraph.checkpoint.dynamodb._operations.commit import Head, commit
from langgraph.checkpoint.dynamodb._operations.commit_writes import Found, TaskWrites, commit_writes
from langgraph.checkpoint.dynamodb._operations.delta_history import TableSource
from langgraph.checkpoint.dynamodb._operations.error_collector import OF_ONE_THREAD
from langgraph.checkpoint.dynamodb._operations.get import read_checkpoint
from langgraph.checkpoint.dynamodb._operations.list import select
from langgraph.checkpoint.dynamodb._operations.overview import status_of
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments, StoredCheckpoint
from langgraph.checkpoint.dynamodb._operations.runs import list_runs
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch, read_thread
from langgraph.checkpoint.dynamodb._runtime.cache import Cache, CachedThread, Lifetime
from langgraph.checkpoint.dynamodb._runtime.drivers import Runner
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb._runtime.thread_hints import hint_of, remember_hint, thread_of
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import stored, wire
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.plain import PlainCheckpoint, Room
from langgraph.checkpoint.dynamodb.gateway.stored import fitting
from langgraph.checkpoint.dynamodb.gateway.table_requests import carried_out
from langgraph.checkpoint.dynamodb.protocol import epoch_of, is_reusable

Document: TypeAlias = dict[str, Any]
# Only the client knows the expiries of all segments that it reuses, and one of them has to live longer.
# What a segment takes, roughly, before any was read: most have a write unit, and those of large values 32.
_SEGMENT_BYTES = 8 * 1024
_WANTS_REUSED: Document = {"wants_reused": True}
# The saver's methods that have another name than their endpoint, for the names of events.
_METHODS = {
    "delta_channel_history": "get_delta_channel_history",
    "runs": "list_runs",
    "threads": "list_threads",
}
Load: TypeAlias = Callable[[LocalStorage, StoredCheckpoint, LoadedSegments], Op[StoredCheckpoint | None]]


class Operations:
    """One method for each endpoint: it takes the request's model and makes the answer's document.

    The documents are those of docs/wire.md. Most methods are operations, which `run` runs; lists run step by step.
    """

    def __init__(
        self,
        storage: LocalStorage,
        runner: Runner,
        *,
        limits: Limits,
        answer_bytes: int,
        part_seconds: float,
    ) -> None:
        """Store the storage that is served, and the limits of one request.

        Args:
            storage: The storage.
            runner: Runs the operations.
            limits: How deep plain JSON may be, and how many values it may have.
            answer_bytes: After how many bytes of items and segments an answer ends. What came last may exceed it, so
                an answer has up to twice as many.
            part_seconds: After how long a copy, or a prune of many threads, stops and leaves the rest to the next
                request.
        """
        self._storage = storage
        self._runner = runner
        opaque = stored.OpaqueCodec(JsonPlusSerializer(), bytes_max=self._storage.codec.bytes_max)
        # What is cached of sealed bytes is of no use to a saver that opens them, which may be the one that was given.
        cache = Cache(CACHE_BYTES, self._storage.cache.facts)
        self._sealed = replace(self._storage, codec=opaque, cache=cache)
        self._limits = limits
        self._answer_bytes = answer_bytes
        self._part_seconds = part_seconds

    async def run(self, endpoint: Endpoint, request: wire.Message) -> Document:
        """Run the operation of an endpoint. Its events have the name of the saver's method."""
        operation: Op[Document] = getattr(self, endpoint.attribute)(request)
        return await self._runner.arun(operation, _METHODS.get(endpoint.attribute, endpoint.attribute))

    # Reading

    def get_tuple(self, request: wire.GetTuple) -> Op[Document]:
        """Read a checkpoint."""
        partition = _namespace(request)
        storage = self._storage_of(partition, request.thread)
        loader = {"none": _load_nothing, "checked": reads.load}.get(
            request.segments, self._loader(request.held)
        )
        if request.tasks is not None:
            loader = _of_tasks(frozenset(request.tasks), loader)
        found = yield from read_checkpoint(
            storage, partition, request.checkpoint_id, loader, as_ancestor=request.tasks is not None
        )
        # As this request last saw the thread.
        hint = hint_of(storage.cache, partition, storage.cache.thread(partition.root))
        document: Document = {"checkpoint": None, "thread": hint}
        if found is not None:
            document["checkpoint"] = stored.checkpoint_document(partition, *found, (), self._answer_bytes)
        return document

    def _loader(self, held: wire.Held | None) -> Load:
        """Return a loader that reads a checkpoint's segments, unless the client has most of them or they do not fit."""

        def load_what_fits(
            storage: LocalStorage, checkpoint: StoredCheckpoint, loaded: LoadedSegments
        ) -> Op[StoredCheckpoint | None]:
            if held is not None and (yield from _is_committed_for(storage, checkpoint, held)):
                loaded.is_committed = True
                return checkpoint
            count = sum(INDEX_GROUP if is_index(each) else 1 for each in checkpoint.ids())
            if count * _SEGMENT_BYTES > self._answer_bytes:
                # The client asks for them by their ids, and may keep them if the checkpoint is committed.
                loaded.is_committed = yield from _is_committed(storage, checkpoint)
                return checkpoint
            return (yield from reads.load(storage, checkpoint, loaded))

        return load_what_fits

    def get_segments(self, request: wire.GetSegments) -> Op[Document]:
        """Read segments by their ids, as many as fit."""
        partition = _namespace(request)
        left, found, size = list(dict.fromkeys(request.ids)), list[Item](), 0
        expected = LARGE_SEGMENT_BYTES_MIN
        while left and size <= self._answer_bytes:
            # How large they are is only known once they are read, which is paid for: probably as large as those before.
            count = max(1, (2 * self._answer_bytes - size) // (expected + expected // 4))
            count = min(count, BATCH_GET_ITEMS_MAX)
            some, left = left[:count], left[count:]
            read = yield from reads.segment_items(self._storage.table, partition.pk, some)
            found += read
            size += sum(map(item_bytes, read))
            expected = size // len(found) if found else expected
        fits = stored.fitting(found, item_bytes, 2 * self._answer_bytes, at_least=1)
        left += map(items.segment_id_of, found[len(fits) :])
        return {"segments": list(map(stored.stored_segment_document, fits)), "left": left}

    async def list(self, request: wire.List, prefix: str = "") -> AsyncIterator[Document]:
        """List checkpoints, newest first. Each comes with the segments that those before it did not need.

        A list without a thread reads only threads whose ids begin with the prefix: even an error names no others.
        """
        after, skipped = _position(request)
        config = _config(request)
        limit = None if request.limit is None else request.limit + skipped
        listing = select(self._sealed, config, request.filter, request.before, limit, _listed, after, prefix)
        sent: dict[str, set[bytes]] = {}
        count, size = 0, 0
        last: tuple[str, str] | None = None
        async for partition, checkpoint, loaded in self._runner.astream(listing):
            count += 1
            if count <= skipped:
                continue
            if config is not None and size > self._answer_bytes:
                yield {"cursor": _cursor(config, last, count - 1)}
                return
            if config is None:
                sent = {partition.pk: sent.get(partition.pk, set())}
            seen = sent.setdefault(partition.pk, set())
            document = stored.checkpoint_document(partition, checkpoint, loaded, seen, self._answer_bytes)
            seen |= {each["id"] for each in document["segments"]}
            size += _size(document)
            last = checkpoint.checkpoint_id, partition.namespace
            yield document
        is_at_limit = request.limit is not None and count - skipped >= request.limit
        yield {"cursor": _cursor(config, last, count) if is_at_limit and last is not None else None}

    def get_plain(self, request: wire.GetPlain) -> Op[Document]:
        """Read a checkpoint as plain JSON."""
        partition = _namespace(request)
        found = yield from read_checkpoint(self._sealed, partition, request.checkpoint_id)
        if found is None:
            return {"checkpoint": None}
        return {"checkpoint": (yield from self._plain(partition, *found, self._room(), request.channels))}

    async def list_plain(self, request: wire.ListPlain) -> Document:
        """List checkpoints as plain JSON, as many as there is room for."""
        configurable = {"thread_id": request.thread_id, "checkpoint_ns": request.checkpoint_ns}
        after = None if request.cursor is None else tuple(json.loads(request.cursor))
        # One more shows whether there is another page.
        limit = request.limit + 1
        listing = select(self._sealed, {"configurable": configurable}, {}, None, limit, _listed, after)
        room, found = self._room(), list[Document]()
        async for partition, checkpoint, loaded in self._runner.astream(listing):
            document = None
            if len(found) < request.limit:
                opening = self._plain(partition, checkpoint, loaded, room, request.channels)
                document = await self._runner.arun(opening, "open_plain")
            # A checkpoint with values left out for lack of room begins the next page, where it has all the room.
            if document is None or (found and room.was_short):
                last = found[-1]["checkpoint_id"], found[-1]["checkpoint_ns"]
                return {"checkpoints": found, "cursor": json.dumps(last)}
            found.append(document)
        return {"checkpoints": found, "cursor": None}

    def _room(self) -> Room:
        return Room(self._limits, self._answer_bytes)

    def _plain(
        self,
        partition: Partition,
        found: StoredCheckpoint,
        loaded: LoadedSegments,
        room: Room,
        channels: Sequence[str] | None,
    ) -> Op[Document]:
        """Open a checkpoint in a thread, since nothing stored tells beforehand how much work that is."""
        checkpoint = PlainCheckpoint(partition, found, loaded, room)
        return work(partial(checkpoint.document, channels), self._answer_bytes)

    def delta_channel_history(self, request: wire.DeltaChannelHistory) -> Op[Document]:
        """Read a checkpoint's ancestors, with the segments that hold their items' own content."""
        partition = _namespace(request)
        source = TableSource(self._sealed, partition, below=request.after or request.checkpoint_id)
        if request.after is None:
            start = yield from source.start(request.checkpoint_id)
        else:
            start = yield from reads.find(self._storage, partition, request.after, as_ancestor=True)
        if start is None:
            return {"checkpoints": [], "ended": True}
        path = yield from source.back(start.head, "", request.count)
        documents, size = list[Document](), 0
        for each in (start, *path):
            # The next answer begins with the last ancestor of this one, so there are two.
            if len(documents) > 1 and size > self._answer_bytes:
                return {"checkpoints": documents, "ended": False}
            checkpoint = yield from source.segments(each, each.ids(), indexes_only=True)
            checkpoint = yield from source.segments(checkpoint, checkpoint.own_ids())
            documents.append(
                stored.checkpoint_document(partition, checkpoint, source.known, (), self._answer_bytes)
            )
            size += _size(documents[-1])
        return {"checkpoints": documents, "ended": len(path) < request.count}

    # Writing

    def put(self, request: wire.Put) -> Op[Document]:
        """Store a checkpoint."""
        partition = _namespace(request)
        storage = self._storing(partition, request)
        head = _head(partition, request)
        started_at = storage.clock() - request.uploading_seconds
        try:
            committed = yield from commit(storage, head, _thread(request), started_at)
        except item_builder.UnlistedExpiryError:
            return _WANTS_REUSED
        return {
            "under": hint_of(storage.cache, partition, committed.under),
            "thread": hint_of(storage.cache, partition, committed.thread),
            "confirmed": committed.is_confirmed,
            "ends_at": committed.lifetime.ends_at,
            "history_expires_at": committed.lifetime.history_expires_at,
            "segments": _expiries(head.refs, request.reused),
        }

    def put_writes(self, request: wire.PutWrites) -> Op[Document]:
        """Store parts of a task's writes."""
        partition = _namespace(request)
        storage = self._storing(partition, request)
        refs = stored.segment_refs_of(partition, request)
        sk = items.writes_sk(request.checkpoint_id, request.task_id)
        parts = stored.parts_of(items.key(partition.pk, sk), request.parts.model_dump())
        writes = TaskWrites(
            partition,
            sk,
            parts,
            refs,
            request.order,
            _old(request),
            request.replaces,
            namespaces_above(partition, {}),
        )
        try:
            outcome = yield from commit_writes(storage, writes, _thread(request))
        except item_builder.UnlistedExpiryError:
            return _WANTS_REUSED
        return {
            "stored": outcome.stored,
            "thread": hint_of(storage.cache, partition, outcome.thread),
            "segments": _expiries(refs, request.reused),
            "found": None if outcome.found is None else _found_document(outcome.found, self._answer_bytes),
        }

    def put_segments(self, request: wire.PutSegments) -> Op[Document]:
        """Store segments before the item that will name them."""
        partition = _namespace(request)
        storage = self._storing(partition, request)
        refs, thread = stored.segment_refs_of(partition, request), _thread(request)
        if thread is None:
            thread = yield from ensure_epoch(storage, partition)
        expiry = Expiry.after(thread.ttl_seconds, storage.clock())
        yield from item_builder.store_segments(storage, partition, refs, thread, expiry)
        return {"thread": hint_of(storage.cache, partition, thread), "segments": _expiries(refs, ())}

    # Deleting and copying

    def delete_thread(self, request: wire.DeleteThread) -> Op[Document]:
        """Delete a thread."""
        yield from delete.delete_thread(self._storage, request.thread_id)
        return {}

    def delete_for_runs(self, request: wire.DeleteForRuns) -> Op[Document]:
        """Delete the checkpoints of runs."""
        yield from delete.delete_for_runs(self._storage, request.run_ids)
        return {}

    def copy_thread(self, request: wire.CopyThread) -> Op[Document]:
        """Copy a thread that is not encrypted, or a part of it."""
        source, target = request.source_thread_id, request.target_thread_id
        now = self._storage.clock()
        until = now + self._part_seconds
        stopped = yield from copy.copy_part(
            self._storage, source, target, _progress(request, now), until=until
        )
        return {"progress": None if stopped is None else asdict(stopped)}

    def prune(self, request: wire.Prune) -> Op[Document]:
        """Prune one thread after the other, as many as there is time for, and return those that are left.

        A thread that cannot be pruned ends the request. If it is the first thread of the request, its error is raised;
        otherwise it is the first of those that are left.
        """
        until = self._storage.clock() + self._part_seconds
        left = wanted = checked_ids(request.thread_ids, "thread_ids")
        while True:
            try:
                yield from delete.prune(self._storage, left[:1], request.strategy, request.keep_last)
            except OF_ONE_THREAD:
                if left is wanted:
                    raise
                return {"left": left}
            left = left[1:]
            if not left or self._storage.clock() >= until:
                return {"left": left}

    # The directory

    def set_thread(self, request: wire.SetThread) -> Op[Document]:
        """Enter a thread in the directory, or replace its entry."""
        root = items.partition_of(request.thread_id)
        storage = self._storage_of(root, None)
        found = yield from directory_table.describe(
            storage, root, stored.entry_item(root, request.entry), _old_entry(request.old)
        )
        if found is not None:
            known = (items.EPOCH, items.ABOUT, LAST_ACTIVE, OWNER)
            found = {name: found[name] for name in known if name in found}
        return {"found": found}

    def threads(self, request: wire.Threads) -> Op[Document]:
        """Read entries of the directory."""
        before, owner = None, None
        if request.before is not None:
            before = directory_table.ThreadPosition(
                request.before.last_active, items.partition_of(request.before.at).thread_id
            )
        if request.owner is not None:
            owner = items.owner_key(request.owner)
        page = yield from directory_table.read_entries(
            self._storage, owner, request.since, before, request.count
        )
        found = fitting(page.entries, item_bytes, self._answer_bytes, at_least=1)
        entries = [
            {
                "thread_id": directory_table.ThreadPosition.of(each).thread_id,
                "item": stored.item_document(each),
            }
            for each in found
        ]
        return {"entries": entries, "is_last": page.is_last and len(found) == len(page.entries)}

    def thread_status(self, request: wire.ThreadStatus) -> Op[Document]:
        """Read the newest checkpoint of each thread, without its body."""
        wanted = checked_ids(request.thread_ids, "thread_ids")
        read = yield from gather([directory_table.read_newest(self._storage, each) for each in wanted])
        newest = []
        for thread_id, found in zip(wanted, read, strict=True):
            if found is not None:
                head = stored.item_document(found.head)
                del head[items.BODY]
                newest.append({"thread_id": thread_id, "status": status_of(found), "head": head})
        return {"threads": newest}

    def runs(self, request: wire.Runs) -> Op[Document]:
        """List the runs of a thread."""
        found = yield from list_runs(self._storage, request.thread_id)
        return {"runs": list(map(asdict, found))}

    # Memories and cached nodes

    def _carry_out(self, request: wire.TableRequest, *, method: str) -> Op[Document]:
        return carried_out(self._storage.table, method, request, self._answer_bytes)

    get_item = partialmethod(_carry_out, method="get_item")
    batch_get_item = partialmethod(_carry_out, method="batch_get_item")
    query = partialmethod(_carry_out, method="query")
    put_item = partialmethod(_carry_out, method="put_item")
    update_item = partialmethod(_carry_out, method="update_item")
    delete_item = partialmethod(_carry_out, method="delete_item")
    batch_write_item = partialmethod(_carry_out, method="batch_write_item")

    # Storage

    def _storage_of(self, partition: Partition, hint: wire.ThreadHint | None) -> LocalStorage:
        """Return the storage with a cache for one request: the client's thread hint, and the facts about the table."""
        cache = Cache(sys.maxsize, self._storage.cache.facts)
        remember_hint(cache, partition, None if hint is None else hint.model_dump())
        return replace(self._sealed, cache=cache)

    def _storing(self, partition: Partition, request: wire.NewSegments) -> LocalStorage:
        """Return the storage for a request that may create its thread."""
        storage = self._storage_of(partition, request.thread)
        if request.entry is None:
            return storage
        entry = stored.entry_item(items.partition_of(partition.thread_id), request.entry)
        return replace(storage, entry=lambda: entry)


def _namespace(request: wire.Namespace) -> Partition:
    return items.partition_of(request.thread_id, request.checkpoint_ns)


def _thread(request: wire.NewSegments) -> CachedThread | None:
    """Return the thread of a client's hint."""
    return None if request.thread is None else thread_of(request.thread.model_dump())


# Reading


def _is_committed_for(storage: LocalStorage, checkpoint: StoredCheckpoint, held: wire.Held) -> Op[bool]:
    """Tell whether a checkpoint is committed, given the epoch of one that its reader holds, which may be this one."""
    if not is_reusable(held.epoch, epoch_of(checkpoint.head, items.BODY)):
        return False
    return checkpoint.checkpoint_id == held.checkpoint_id or (yield from _is_committed(storage, checkpoint))


def _is_committed(storage: LocalStorage, checkpoint: StoredCheckpoint) -> Op[bool]:
    """Tell whether a checkpoint's head has the thread's epoch."""
    thread = yield from read_thread(storage, items.parse_partition(items.partition_key(checkpoint.head)))
    return thread is not None and is_reusable(epoch_of(checkpoint.head, items.BODY), thread.epoch)


def _of_tasks(tasks: Collection[str], loader: Load) -> Load:
    """Return a loader of a checkpoint without the writes of other tasks."""

    def load(
        storage: LocalStorage, checkpoint: StoredCheckpoint, loaded: LoadedSegments
    ) -> Op[StoredCheckpoint | None]:
        writes = [each for each in checkpoint.writes if items.task_id_of(each) in tasks]
        return (yield from loader(storage, replace(checkpoint, writes=writes), loaded))

    return load


def _load_nothing(
    _storage: LocalStorage, checkpoint: StoredCheckpoint, _known: LoadedSegments
) -> Op[StoredCheckpoint | None]:
    """Load no segments."""
    yield from ()
    return checkpoint


def _listed(
    partition: Partition, _codec: Codec, checkpoint: StoredCheckpoint, loaded: LoadedSegments
) -> tuple[Partition, StoredCheckpoint, LoadedSegments]:
    return partition, checkpoint, loaded


def _size(document: Document) -> int:
    """Return how many bytes the items and segments of a checkpoint's document have."""
    return sum(map(item_bytes, document["items"])) + sum(len(each["data"]) for each in document["segments"])


def _config(request: wire.List) -> RunnableConfig | None:
    if request.thread_id is None:
        return None
    named = {"checkpoint_ns": request.checkpoint_ns, "checkpoint_id": request.checkpoint_id}
    return {"configurable": {"thread_id": request.thread_id, **named}}


def _position(request: wire.List) -> tuple[tuple[str, str] | None, int]:
    """Return the checkpoint after which a list of a thread continues, or how many of all threads to skip."""
    if request.cursor is None:
        return None, 0
    if request.thread_id is None:
        return None, int(request.cursor)
    checkpoint_id, namespace = json.loads(request.cursor)
    return (checkpoint_id, namespace), 0


def _cursor(config: RunnableConfig | None, last: tuple[str, str] | None, count: int) -> str:
    return str(count) if config is None else json.dumps(last)


def _old_entry(old: wire.OldEntry | None) -> Item | None:
    """Return the attributes of a thread item whose entry is replaced, in the table's form."""
    if old is None:
        return None
    about: Item = {} if old.about is None else {items.ABOUT: {"B": old.about}}
    return {items.EPOCH: {"B": old.epoch}, **about}


def _progress(request: wire.CopyThread, now: float) -> copy.Progress | None:
    """Return how far a copy is. It cannot have begun later than now, which would let it live longer."""
    if request.progress is None:
        return None
    progress = copy.Progress(**request.progress.model_dump())
    return replace(progress, began_at=min(progress.began_at, now))


# Writing


def _head(partition: Partition, request: wire.Put) -> Head:
    given = request.parent_lifetime
    parent = None if given is None else Lifetime(given.ends_at, given.history_expires_at)
    refs = stored.segment_refs_of(partition, request)
    key = items.key(partition.pk, items.checkpoint_prefix(request.checkpoint_id))
    head = request.head
    parts = stored.parts_of(key, {items.BODY: head.body, items.SEALED_METADATA: head.sealed_metadata})
    metadata: Item = {}
    if head.metadata is not None:
        stored.check_metadata(key, head.metadata)
        metadata = {items.METADATA: {"S": head.metadata}}
    for each in (head.parent, head.started_from, head.rebuilt_from):
        items.checkpoint_prefix(each or "")
    if items.SEALED_METADATA in parts:
        metadata = {items.SEALED_METADATA: parts[items.SEALED_METADATA].attribute(items.sort_key(key))}
    item = items.head_item(
        key,
        texts={
            items.PARENT: head.parent,
            items.STARTED_FROM: head.started_from,
            items.REBUILT_FROM: head.rebuilt_from,
            RUN_ID: head.run_id,
        },
        metadata=metadata,
        body=parts[items.BODY],
    )
    return Head(partition, item, refs, request.has_delta_channels, parent, namespaces_above(partition, {}))


def _found_document(found: Found, bytes_max: int) -> Document:
    contents = None
    if found.contents is not None:
        read = ({"id": each, "data": stored.sealed(each, data)} for each, data in found.contents.items())
        contents = fitting(read, lambda each: len(each["data"]), bytes_max)
    return {
        "item": stored.item_document(found.item),
        "is_gone": found.is_gone,
        "is_safe": found.is_safe,
        "segments": contents,
    }


def _expiries(refs: item_builder.SegmentRefs, told: Iterable[wire.ReusedSegment]) -> list[Document]:
    """Return the expiries of segments that the client does not know."""
    known = {each.id: each.expires_at for each in told}
    return [
        {"id": each, "expires_at": chunk.expires_at}
        for each, chunk in refs.chunks.items()
        if each not in known or known[each] != chunk.expires_at
    ]


def _old(request: wire.PutWrites) -> Item:
    """Return the attributes of the task's old item that matter, in the table's form."""
    old = request.old
    if request.replaces and (old is None or old.expires_at is old.created_at is None):
        msg = "replaces goes with an old item; send its created_at and expires_at, or leave replaces out"
        raise CheckpointerInputError(msg)
    if old is None:
        return {}
    item: Item = {} if old.writes is None else {items.WRITES: {"B": old.writes}}
    numbers = {items.CREATED_AT: old.created_at, TTL_ATTRIBUTE: old.expires_at}
    return item | {name: {"N": str(value)} for name, value in numbers.items() if value is not None}
