"""The saver's operations on messages from the wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    BATCH_GET_ITEMS_MAX,
    INDEX_GROUP,
    SEGMENT_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import LAST_ACTIVE, OWNER, RUN_ID, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations.arguments import checked_ids
from langgraph.checkpoint.dynamodb._operations.commit import Head, commit
from langgraph.checkpoint.dynamodb._operations.commit_writes import (
    Outcome,
    TaskWrites,
    commit_writes,
)
from langgraph.checkpoint.dynamodb._operations.copy import Progress, copy_part
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import TableSource
from langgraph.checkpoint.dynamodb._operations.directory_table import (
    ThreadPosition,
    describe,
    read_entries,
    read_newest,
)
from langgraph.checkpoint.dynamodb._operations.error_collector import OF_ONE_THREAD
from langgraph.checkpoint.dynamodb._operations.get import read_checkpoint
from langgraph.checkpoint.dynamodb._operations.item_builder import (
    SegmentRefs,
    UnlistedExpiryError,
    store_segments,
)
from langgraph.checkpoint.dynamodb._operations.list import select
from langgraph.checkpoint.dynamodb._operations.overview import status_of
from langgraph.checkpoint.dynamodb._operations.reads import (
    LoadedSegments,
    StoredCheckpoint,
    find,
    load,
    segment_items,
)
from langgraph.checkpoint.dynamodb._operations.runs import list_runs
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch, read_thread
from langgraph.checkpoint.dynamodb._runtime.cache import Cache, Lifetime
from langgraph.checkpoint.dynamodb._runtime.drivers import Runner
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.checkpoint.dynamodb.base_saver import CACHE_BYTES
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.opaque_codec import OpaqueCodec
from langgraph.checkpoint.dynamodb.gateway.plain import PlainCheckpoint, Room
from langgraph.checkpoint.dynamodb.gateway.stored import (
    check_metadata,
    checkpoint_document,
    entry_item,
    item_document,
    parts_of,
    sealed,
    segment_refs_of,
    stored_segment_document,
)
from langgraph.checkpoint.dynamodb.gateway.table_requests import carried_out
from langgraph.checkpoint.dynamodb.gateway.thread_hints import cache_of, hint_of, thread_of
from langgraph.checkpoint.dynamodb.protocol import epoch_of, is_reusable

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
Load: TypeAlias = Callable[[LocalStorage, StoredCheckpoint, LoadedSegments], Op[StoredCheckpoint | None]]


class Operations:
    """One method for each endpoint: it takes the request's model and returns the answer's document.

    The documents are those of docs/gateway.md.
    """

    def __init__(
        self,
        storage: LocalStorage,
        runner: Runner,
        *,
        limits: Limits,
        segments_bytes_max: int,
        part_seconds: float,
    ) -> None:
        """Store the storage that is served, and the limits of one request.

        Args:
            storage: The storage.
            runner: Runs the operations.
            limits: How deep plain JSON may be, and how many values it may have.
            segments_bytes_max: How many bytes of segments one answer may have.
            part_seconds: After how long a copy, or a prune of many threads, stops and leaves the rest to the next
                request.
        """
        self._storage = storage
        self._runner = runner
        sealed = OpaqueCodec(JsonPlusSerializer(), bytes_max=self._storage.codec.bytes_max)
        # What is cached of sealed bytes is of no use to a saver that opens them, which may be the one that was given.
        cache = Cache(CACHE_BYTES, self._storage.cache.facts)
        self._sealed = replace(self._storage, codec=sealed, cache=cache)
        self._limits = limits
        self._segments_bytes_max = segments_bytes_max
        self._part_seconds = part_seconds

    # Reading

    async def get_tuple(self, request: wire.GetTuple) -> Document:
        """Read a checkpoint."""
        partition = _namespace(request)
        storage = self._storage_of(partition, request.thread)
        loader = {"none": _load_nothing, "checked": load}.get(request.segments, self._loader(request.held))
        found = await self._run(
            "get_tuple", read_checkpoint(storage, partition, request.checkpoint_id, loader)
        )
        document: Document = {"checkpoint": None, "thread": _last_hint(storage, partition)}
        if found is not None:
            document["checkpoint"] = checkpoint_document(partition, *found, (), self._segments_bytes_max)
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
            if count * SEGMENT_BYTES_MAX // 2 > self._segments_bytes_max:
                # The client asks for them by their ids, and may keep them if the checkpoint is committed.
                loaded.is_committed = yield from _is_committed(storage, checkpoint)
                return checkpoint
            return (yield from load(storage, checkpoint, loaded))

        return load_what_fits

    async def get_segments(self, request: wire.GetSegments) -> Document:
        """Read segments by their ids, as many as fit."""
        partition = _namespace(request)
        return await self._run("get_segments", self._segments(partition, request.ids))

    def _segments(self, partition: Partition, ids: list[bytes]) -> Op[Document]:
        left, found, size = list(dict.fromkeys(ids)), list[Item](), 0
        while left and size < self._segments_bytes_max:
            some, left = left[:BATCH_GET_ITEMS_MAX], left[BATCH_GET_ITEMS_MAX:]
            read = yield from segment_items(self._storage.table, partition.pk, some)
            found += read
            size += sum(len(items.binary(item, items.DATA)) for item in read)
        return {"segments": list(map(stored_segment_document, found)), "left": left}

    async def list(self, request: wire.List) -> AsyncIterator[Document]:
        """List checkpoints, newest first. Each comes with the segments that those before it did not need."""
        after, skipped = _position(request)
        config = _config(request)
        limit = None if request.limit is None else request.limit + skipped
        listing = select(self._sealed, config, request.filter, request.before, limit, _listed, after)
        sent: dict[str, set[bytes]] = {}
        count, size = 0, 0
        last: tuple[str, str] | None = None
        async for partition, checkpoint, loaded in self._runner.astream(listing):
            count += 1
            if count <= skipped:
                continue
            if config is not None and size > self._segments_bytes_max:
                yield {"cursor": _cursor(config, last, count - 1)}
                return
            if config is None:
                sent = {partition.pk: sent.get(partition.pk, set())}
            seen = sent.setdefault(partition.pk, set())
            document = checkpoint_document(partition, checkpoint, loaded, seen, self._segments_bytes_max)
            seen |= {each["id"] for each in document["segments"]}
            size += sum(len(each["data"]) for each in document["segments"]) + checkpoint.sealed_bytes()
            last = checkpoint.checkpoint_id, partition.namespace
            yield document
        is_at_limit = request.limit is not None and count - skipped >= request.limit
        yield {"cursor": _cursor(config, last, count) if is_at_limit and last is not None else None}

    async def get_plain(self, request: wire.GetPlain) -> Document:
        """Read a checkpoint as plain JSON."""
        partition = _namespace(request)
        found = await self._run("get_plain", read_checkpoint(self._sealed, partition, request.checkpoint_id))
        if found is None:
            return {"checkpoint": None}
        return {"checkpoint": await self._plain(partition, *found, self._room(), request.channels)}

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
                document = await self._plain(partition, checkpoint, loaded, room, request.channels)
            # A checkpoint with values left out for lack of room begins the next page, where it has all the room.
            if document is None or (found and room.was_short):
                last = found[-1]["checkpoint_id"], found[-1]["checkpoint_ns"]
                return {"checkpoints": found, "cursor": json.dumps(last)}
            found.append(document)
        return {"checkpoints": found, "cursor": None}

    def _room(self) -> Room:
        return Room(self._limits, self._segments_bytes_max)

    async def _plain(
        self,
        partition: Partition,
        stored: StoredCheckpoint,
        loaded: LoadedSegments,
        room: Room,
        channels: Sequence[str] | None,
    ) -> Document:
        """Open a checkpoint in a thread, since nothing stored tells beforehand how much work that is."""
        checkpoint = PlainCheckpoint(partition, stored, loaded, room)
        opening = work(partial(checkpoint.document, channels), self._segments_bytes_max)
        return await self._run("open_plain", opening)

    async def delta_channel_history(self, request: wire.DeltaChannelHistory) -> Document:
        """Read a checkpoint's ancestors, with the segments that hold their items' own content."""
        return await self._run("get_delta_channel_history", self._ancestors(_namespace(request), request))

    def _ancestors(self, partition: Partition, request: wire.DeltaChannelHistory) -> Op[Document]:
        source = TableSource(self._sealed, partition, below=request.after or request.checkpoint_id)
        if request.after is None:
            start = yield from source.start(request.checkpoint_id)
        else:
            start = yield from find(self._storage, partition, request.after, as_ancestor=True)
        if start is None:
            return {"checkpoints": [], "ended": True}
        path = yield from source.back(start.head, "", request.count)
        documents = []
        for each in (start, *path):
            checkpoint = yield from source.segments(each, each.ids(), indexes_only=True)
            checkpoint = yield from source.segments(checkpoint, checkpoint.own_ids())
            documents.append(
                checkpoint_document(partition, checkpoint, source.known, (), self._segments_bytes_max)
            )
        return {"checkpoints": documents, "ended": len(path) < request.count}

    # Writing

    async def put(self, request: wire.Put) -> Document:
        """Store a checkpoint."""
        partition = _namespace(request)
        storage = self._storing(partition, request)
        return await self._run("put", _listing_expiries(_put(storage, partition, request)))

    async def put_writes(self, request: wire.PutWrites) -> Document:
        """Store parts of a task's writes."""
        partition = _namespace(request)
        storage = self._storing(partition, request)
        return await self._run("put_writes", _listing_expiries(self._put_writes(storage, partition, request)))

    def _put_writes(
        self, storage: LocalStorage, partition: Partition, request: wire.PutWrites
    ) -> Op[Document]:
        refs = segment_refs_of(partition, request)
        sk = items.writes_sk(request.checkpoint_id, request.task_id)
        parts = parts_of(items.key(partition.pk, sk), request.parts.model_dump())
        writes = TaskWrites(partition, sk, parts, refs, request.order, _old(request), request.replaces)
        outcome = yield from commit_writes(storage, writes, thread_of(request.thread))
        return _outcome_document(storage, request, outcome, writes)

    async def put_segments(self, request: wire.PutSegments) -> Document:
        """Store segments before the item that will name them."""
        partition = _namespace(request)
        storage = self._storing(partition, request)
        return await self._run("put_segments", _put_segments(storage, partition, request))

    # Deleting and copying

    async def delete_thread(self, request: wire.DeleteThread) -> Document:
        """Delete a thread."""
        return await self._done(delete_thread(self._storage, request.thread_id))

    async def delete_for_runs(self, request: wire.DeleteForRuns) -> Document:
        """Delete the checkpoints of runs."""
        return await self._done(delete_for_runs(self._storage, request.run_ids))

    async def copy_thread(self, request: wire.CopyThread) -> Document:
        """Copy a thread that is not encrypted, or a part of it."""
        source, target = request.source_thread_id, request.target_thread_id
        now = self._storage.clock()
        copy = copy_part(
            self._storage,
            source,
            target,
            _progress(request, now),
            until=now + self._part_seconds,
        )
        stopped = await self._run("copy_thread", copy)
        return {"progress": None if stopped is None else asdict(stopped)}

    async def prune(self, request: wire.Prune) -> Document:
        """Prune as many threads as there is time for."""
        return {"left": await self._run("prune", self._prune(request))}

    def _prune(self, request: wire.Prune) -> Op[Sequence[str]]:
        """Prune one thread after the other, and return those that are left.

        A thread that cannot be pruned ends the request. If it is the first thread of the request, its error is raised;
        otherwise it is the first of those that are left.
        """
        until = self._storage.clock() + self._part_seconds
        left = wanted = checked_ids(request.thread_ids, "thread_ids")
        while True:
            try:
                yield from prune(self._storage, left[:1], request.strategy, request.keep_last)
            except OF_ONE_THREAD:
                if left is wanted:
                    raise
                return left
            left = left[1:]
            if not left or self._storage.clock() >= until:
                return left

    # The directory

    async def set_thread(self, request: wire.SetThread) -> Document:
        """Enter a thread in the directory, or replace its entry."""
        root = items.partition_of(request.thread_id)
        storage = self._storage_of(root, None)
        operation = describe(storage, root, entry_item(root, request.entry), _old_entry(request.old))
        found = await self._run("set_thread", operation)
        if found is not None:
            known = (items.EPOCH, items.ABOUT, LAST_ACTIVE, OWNER)
            found = {name: found[name] for name in known if name in found}
        return {"found": found}

    async def threads(self, request: wire.Threads) -> Document:
        """Read entries of the directory."""
        before, owner = None, None
        if request.before is not None:
            before = ThreadPosition(
                request.before.last_active, items.partition_of(request.before.at).thread_id
            )
        if request.owner is not None:
            owner = items.owner_key(request.owner)
        read = read_entries(self._storage, owner, request.since, before, request.count)
        page = await self._run("list_threads", read)
        entries = [
            {"thread_id": ThreadPosition.of(each).thread_id, "item": item_document(each)}
            for each in page.entries
        ]
        return {"entries": entries, "is_last": page.is_last}

    async def thread_status(self, request: wire.ThreadStatus) -> Document:
        """Read the newest checkpoint of each thread."""
        wanted = checked_ids(request.thread_ids, "thread_ids")
        return {"threads": await self._run("thread_status", self._newest(wanted))}

    def _newest(self, thread_ids: Sequence[str]) -> Op[Sequence[Document]]:
        read = yield from gather([read_newest(self._storage, each) for each in thread_ids])
        return [
            {
                "thread_id": thread_id,
                "status": status_of(found),
                "head": {
                    name: value for name, value in item_document(found.head).items() if name != items.BODY
                },
            }
            for thread_id, found in zip(thread_ids, read, strict=True)
            if found is not None
        ]

    async def runs(self, request: wire.Runs) -> Document:
        """List the runs of a thread."""
        return {
            "runs": list(
                map(asdict, await self._run("list_runs", list_runs(self._storage, request.thread_id)))
            )
        }

    # Memories and cached nodes

    async def get_item(self, request: wire.GetItem) -> Document:
        """Read an item."""
        return await self._carry_out("get_item", request)

    async def batch_get_item(self, request: wire.BatchGetItem) -> Document:
        """Read items, as many as fit."""
        return await self._carry_out("batch_get_item", request)

    async def query(self, request: wire.Query) -> Document:
        """Read a page of a partition, or what an index lists."""
        return await self._carry_out("query", request)

    async def put_item(self, request: wire.PutItem) -> Document:
        """Store an item."""
        return await self._carry_out("put_item", request)

    async def update_item(self, request: wire.UpdateItem) -> Document:
        """Change an item."""
        return await self._carry_out("update_item", request)

    async def delete_item(self, request: wire.DeleteItem) -> Document:
        """Delete an item."""
        return await self._carry_out("delete_item", request)

    async def batch_write_item(self, request: wire.BatchWriteItem) -> Document:
        """Store and delete items."""
        return await self._carry_out("batch_write_item", request)

    async def _carry_out(self, method: str, request: wire.TableRequest) -> Document:
        table = self._storage.table
        return await self._run(method, carried_out(table, method, request, self._segments_bytes_max))

    # Running

    def _storage_of(self, partition: Partition, hint: wire.ThreadHint | None) -> LocalStorage:
        """Return the storage with the client's thread hint in its cache."""
        return replace(self._sealed, cache=cache_of(self._storage.cache, partition, hint))

    def _storing(self, partition: Partition, request: wire.NewSegments) -> LocalStorage:
        """Return the storage for a request that may create its thread."""
        storage = self._storage_of(partition, request.thread)
        if request.entry is None:
            return storage
        entry = entry_item(items.partition_of(partition.thread_id), request.entry)
        return replace(storage, entry=lambda: entry)

    async def _run(self, name: str, operation: Op[T]) -> T:
        """Run an operation. Its events have the name of the saver's method, or of the endpoint."""
        return await self._runner.arun(operation, name)

    async def _done(self, operation: Op[None]) -> Document:
        await self._runner.arun(operation)
        return {}


def _namespace(request: wire.Namespace) -> Partition:
    return items.partition_of(request.thread_id, request.checkpoint_ns)


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


def _progress(request: wire.CopyThread, now: float) -> Progress | None:
    """Return how far a copy is. It cannot have begun later than now, which would let it live longer."""
    if request.progress is None:
        return None
    progress = Progress(**request.progress.model_dump())
    return replace(progress, began_at=min(progress.began_at, now))


# Writing


def _listing_expiries(operation: Op[Document]) -> Op[Document]:
    """Ask the client for all expiries if a segment has to live longer: only the client knows which."""
    try:
        return (yield from operation)
    except UnlistedExpiryError:
        return {"wants_reused": True}


def _put(storage: LocalStorage, partition: Partition, request: wire.Put) -> Op[Document]:
    """Store a checkpoint."""
    started_at = storage.clock() - request.uploading_seconds
    head = _head(partition, request)
    committed = yield from commit(storage, head, thread_of(request.thread), started_at)
    return {
        "under": hint_of(storage.cache, partition, committed.under),
        "thread": hint_of(storage.cache, partition, committed.thread),
        "confirmed": committed.is_confirmed,
        "ends_at": committed.lifetime.ends_at,
        "history_expires_at": committed.lifetime.history_expires_at,
        "segments": _expiries(head.refs, request.reused),
    }


def _head(partition: Partition, request: wire.Put) -> Head:
    given = request.parent_lifetime
    parent = None if given is None else Lifetime(given.ends_at, given.history_expires_at)
    refs = segment_refs_of(partition, request)
    key = items.key(partition.pk, items.checkpoint_prefix(request.checkpoint_id))
    head = request.head
    parts = parts_of(key, {items.BODY: head.body, items.SEALED_METADATA: head.sealed_metadata})
    metadata: Item = {}
    if head.metadata is not None:
        check_metadata(key, head.metadata)
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
    return Head(partition, item, refs, request.has_delta_channels, parent)


def _outcome_document(
    storage: LocalStorage, request: wire.PutWrites, outcome: Outcome, writes: TaskWrites
) -> Document:
    found = outcome.found
    return {
        "stored": outcome.stored,
        "thread": hint_of(storage.cache, writes.partition, outcome.thread),
        "segments": _expiries(writes.refs, request.reused),
        "found": None
        if found is None
        else {
            "item": item_document(found.item),
            "is_gone": found.is_gone,
            "is_safe": found.is_safe,
            "segments": None
            if found.contents is None
            else [{"id": each, "data": sealed(each, data)} for each, data in found.contents.items()],
        },
    }


def _last_hint(storage: LocalStorage, partition: Partition) -> Document | None:
    """Return the hint for the thread as this request last saw it."""
    return hint_of(storage.cache, partition, storage.cache.thread(partition.root))


def _expiries(refs: SegmentRefs, told: Iterable[wire.ReusedSegment]) -> list[Document]:
    """Return the expiries of segments that the client does not know."""
    known = {each.id: each.expires_at for each in told}
    return [
        {"id": each, "expires_at": chunk.expires_at}
        for each, chunk in refs.chunks.items()
        if each not in known or known[each] != chunk.expires_at
    ]


def _put_segments(storage: LocalStorage, partition: Partition, request: wire.PutSegments) -> Op[Document]:
    refs, thread = segment_refs_of(partition, request), thread_of(request.thread)
    if thread is None:
        thread = yield from ensure_epoch(storage, partition)
    yield from store_segments(
        storage, partition, refs, thread, Expiry.after(thread.ttl_seconds, storage.clock()), None
    )
    return {"thread": hint_of(storage.cache, partition, thread), "segments": _expiries(refs, ())}


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
