"""The saver's operations on what came over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BATCH_GET_ITEMS_MAX,
    INDEX_GROUP,
    SEGMENT_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import is_index
from langgraph.checkpoint.dynamodb._operations.access import DirectAccess
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head, commit
from langgraph.checkpoint.dynamodb._operations.commit_writes import (
    Outcome,
    TaskWrites,
    commit_writes,
    expiries_of,
)
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.delete import delete_for_runs, delete_thread, prune
from langgraph.checkpoint.dynamodb._operations.delta_history import TableSource
from langgraph.checkpoint.dynamodb._operations.draft import Needs, store_needs
from langgraph.checkpoint.dynamodb._operations.get import read_checkpoint
from langgraph.checkpoint.dynamodb._operations.list import select
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments, find, load, segment_items
from langgraph.checkpoint.dynamodb._operations.threads import lasting, lives_shorter, outliving, take_epoch
from langgraph.checkpoint.dynamodb._runtime.memory import Lifetime
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.notes import memory_of, note_of
from langgraph.checkpoint.dynamodb.gateway.sealed import SealedCodec
from langgraph.checkpoint.dynamodb.gateway.stored import (
    check_metadata,
    checkpoint_document,
    item_document,
    needs_of,
    parts_of,
    sealed,
    stored_segment_document,
)
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
Load: TypeAlias = Callable[[Table, Codec, Group, Segments], Op[Group | None]]


class Operations:
    """One method for each endpoint: it takes the request's model and gives the answer's document.

    The documents are those of docs/gateway.md.
    """

    def __init__(self, saver: DynamoDBSaver, *, segments_bytes_max: int) -> None:
        """Take the saver whose table is served, and how many bytes of segments one answer may have."""
        self._table = saver._table
        self._codec = saver._codec
        self._driver = saver._async
        self._sealed = SealedCodec(JsonPlusSerializer(), bytes_max=self._codec.bytes_max)
        self._segments_bytes_max = segments_bytes_max

    # Reading

    async def get_tuple(self, request: wire.GetTuple) -> Document:
        """Read a checkpoint."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        loader = {"none": _load_nothing, "checked": load}.get(request.segments, self._loader(request.held))
        found = await self._run(
            table, read_checkpoint(table, self._sealed, at, request.checkpoint_id, loader)
        )
        document: Document = {"checkpoint": None, "thread": note_of(table.memory, at)}
        if found is not None:
            document["checkpoint"] = checkpoint_document(at, *found, (), self._segments_bytes_max)
        return document

    def _loader(self, held: wire.Held | None) -> Load:
        """Read the segments that a checkpoint names, but not for a client that has most of them, or more than fit."""

        def load_what_fits(table: Table, codec: Codec, group: Group, known: Segments) -> Op[Group | None]:
            if held is not None and (yield from _counts_for(table, group, held)):
                known.counts = True
                return group
            count = sum(INDEX_GROUP if is_index(each) else 1 for each in group.ids())
            if count * SEGMENT_BYTES_MAX // 2 > self._segments_bytes_max:
                # The client asks for them by their ids, and may keep them if the checkpoint counts.
                known.counts = yield from _counts(table, group)
                return group
            return (yield from load(table, codec, group, known))

        return load_what_fits

    async def get_segments(self, request: wire.GetSegments) -> Document:
        """Read segments by their ids, as many as fit."""
        at = _namespace(request)
        return await self._run(self._table, self._segments(at, request.ids))

    def _segments(self, at: Partition, ids: list[bytes]) -> Op[Document]:
        left, found, size = list(dict.fromkeys(ids)), list[Item](), 0
        while left and size < self._segments_bytes_max:
            some, left = left[:BATCH_GET_ITEMS_MAX], left[BATCH_GET_ITEMS_MAX:]
            read = yield from segment_items(self._table, at.pk, some)
            found += read
            size += sum(len(items.binary(item, items.DATA)) for item in read)
        return {"segments": list(map(stored_segment_document, found)), "left": left}

    async def list(self, request: wire.List) -> AsyncIterator[Document]:
        """List checkpoints, newest first; each comes with the segments that those before it did not need."""
        before, skipped = _position(request)
        config = _config(request)
        listing = select(
            self._table, self._sealed, config, request.filter, before, _plus(request.limit, skipped), _listed
        )
        sent: dict[str, set[bytes]] = {}
        count, size, last = 0, 0, None
        async for at, group, known in self._driver.stream(listing):
            count += 1
            if count <= skipped:
                continue
            if config is not None and size > self._segments_bytes_max:
                yield {"cursor": _cursor(config, last, count - 1)}
                return
            if config is None:
                sent = {at.pk: sent.get(at.pk, set())}
            seen = sent.setdefault(at.pk, set())
            document = checkpoint_document(at, group, known, seen, self._segments_bytes_max)
            seen |= {each["id"] for each in document["segments"]}
            size += sum(len(each["data"]) for each in document["segments"]) + group.sealed_bytes()
            last = group.checkpoint_id
            yield document
        is_at_limit = request.limit is not None and count - skipped >= request.limit
        yield {"cursor": _cursor(config, last, count) if is_at_limit and last is not None else None}

    async def delta_channel_history(self, request: wire.DeltaChannelHistory) -> Document:
        """Read a checkpoint's ancestors, with the segments that their items' own content is in."""
        return await self._run(self._table, self._ancestors(_namespace(request), request))

    def _ancestors(self, at: Partition, request: wire.DeltaChannelHistory) -> Op[Document]:
        source = TableSource(self._table, self._sealed, at, below=request.after or request.checkpoint_id)
        if request.after is None:
            start = yield from source.start(request.checkpoint_id)
        else:
            start = yield from find(self._table, at, request.after, as_ancestor=True)
        if start is None:
            return {"checkpoints": [], "ended": True}
        path = yield from source.back(start.head, "", request.count)
        documents = []
        for each in (start, *path):
            group = yield from source.segments(each, each.ids(), indexes_only=True)
            group = yield from source.segments(group, group.own_ids())
            documents.append(checkpoint_document(at, group, source.known, (), self._segments_bytes_max))
        return {"checkpoints": documents, "ended": len(path) < request.count}

    # Writing

    async def put(self, request: wire.Put) -> Document:
        """Store a checkpoint."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        return await self._run(table, _put(table, at, request))

    async def put_writes(self, request: wire.PutWrites) -> Document:
        """Store parts of a task's writes."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        return await self._run(table, self._put_writes(table, at, request))

    def _put_writes(self, table: Table, at: Partition, request: wire.PutWrites) -> Op[Document]:
        lasts = lasting(table, table.memory.thread(at.root))
        old = _old(request)
        if old:
            lasts = outliving(lasts, items.number(old, TTL_ATTRIBUTE))
        expiries = expiries_of(lasts)
        if lives_shorter(request.reused_until, lasts.expires_at(2)):
            return {"wants_reused": True}
        needs = needs_of(lasts, at, request.segments, request)
        sk = items.writes_sk(request.checkpoint_id, request.task_id)
        parts = parts_of(items.key(at.pk, sk), request.parts.model_dump())
        writes = TaskWrites(at, sk, parts, needs, lasts, expiries, request.order, old, request.replaces)
        if request.epoch is None and request.thread is None:
            yield from look_for_other_savers(table, at)
        outcome = yield from commit_writes(table, self._sealed, writes, request.epoch)
        return _outcome_document(table, request, outcome, writes)

    async def put_segments(self, request: wire.PutSegments) -> Document:
        """Store segments before what will name them."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        return await self._run(table, _put_segments(table, at, request))

    async def put_with_writes(self, request: wire.PutWithWrites) -> Document:
        """Store a checkpoint, and before it writes: those of checkpoints that are there, or of this one."""
        at = _namespace(request.put)
        table = self._table_of(at, request.put.thread)
        return await self._run(table, self._put_with_writes(table, at, request))

    def _put_with_writes(self, table: Table, at: Partition, request: wire.PutWithWrites) -> Op[Document]:
        own = (at, request.put.checkpoint_id)
        places = [(_namespace(each), each.checkpoint_id) for each in request.writes]
        there = {own, *(yield from DirectAccess(table, self._sealed).stored(set(places) - {own}))}
        outcomes: list[Document] = []
        for place, each in zip(places, request.writes, strict=True):
            if place in there:
                outcomes.append((yield from self._put_writes(table, place[0], each)))
        if not all(each.get("stored") for each in outcomes):
            # The client merges them with what was found, and asks again; nothing names them without the checkpoint.
            return {"writes": outcomes, "put": None}
        return {"writes": outcomes, "put": (yield from _put(table, at, request.put))}

    # Deleting and copying

    async def delete_thread(self, request: wire.DeleteThread) -> Document:
        """Delete a thread."""
        return await self._done(delete_thread(self._table, request.thread_id))

    async def delete_for_runs(self, request: wire.DeleteForRuns) -> Document:
        """Delete the checkpoints of runs."""
        return await self._done(delete_for_runs(self._table, request.run_ids))

    async def copy_thread(self, request: wire.CopyThread) -> Document:
        """Copy a thread that is not encrypted."""
        source, target = request.source_thread_id, request.target_thread_id
        return await self._done(copy_thread(self._table, self._codec, source, target))

    async def prune(self, request: wire.Prune) -> Document:
        """Remove old checkpoints."""
        return await self._done(prune(self._table, request.thread_ids, request.strategy, request.keep_last))

    # Running

    def _table_of(self, at: Partition, note: wire.ThreadNote | None) -> Table:
        """The table, with what the client remembers."""
        return replace(self._table, memory=memory_of(self._table.memory, at, note))

    async def _run(self, table: Table, operation: Op[T]) -> T:
        result = await self._driver.run(operation)
        self._table.memory.is_shared = table.memory.is_shared
        return result

    async def _done(self, operation: Op[None]) -> Document:
        await self._driver.run(operation)
        return {}


def _namespace(request: wire.Namespace) -> Partition:
    return items.partition(request.thread_id, request.checkpoint_ns)


# Reading


def _counts_for(table: Table, group: Group, held: wire.Held) -> Op[bool]:
    """Whether a checkpoint counts, under the epoch under which its reader has another one, or just this."""
    if items.binary(group.head, items.EPOCH) != held.epoch:
        return False
    return group.checkpoint_id == held.checkpoint_id or (yield from _counts(table, group))


def _counts(table: Table, group: Group) -> Op[bool]:
    """Whether a checkpoint's head has the thread's epoch."""
    thread = yield from table.get(items.parse_partition(items.partition_key(group.head)).root, items.THREAD)
    return thread is not None and thread.get(items.EPOCH) == group.head[items.EPOCH]


def _load_nothing(_table: Table, _codec: Codec, group: Group, _known: Segments) -> Op[Group | None]:
    """Leave the segments that a checkpoint names where they are."""
    yield from ()
    return group


def _listed(at: Partition, _codec: Codec, group: Group, known: Segments) -> tuple[Partition, Group, Segments]:
    return at, group, known


def _config(request: wire.List) -> RunnableConfig | None:
    if request.thread_id is None:
        return None
    named = {"checkpoint_ns": request.checkpoint_ns, "checkpoint_id": request.checkpoint_id}
    return {"configurable": {"thread_id": request.thread_id, **named}}


def _position(request: wire.List) -> tuple[str | None, int]:
    """Before which checkpoint a list begins, and how many of all threads come before it."""
    if request.cursor is None:
        return request.before, 0
    if request.thread_id is None:
        return request.before, int(request.cursor)
    return request.cursor, 0


def _cursor(config: RunnableConfig | None, last: str | None, count: int) -> str | None:
    return str(count) if config is None else last


def _plus(limit: int | None, count: int) -> int | None:
    return None if limit is None else limit + count


# Writing


def _put(table: Table, at: Partition, request: wire.Put) -> Op[Document]:
    """Store a checkpoint; again, with the same segments, where it turns out that the thread lives for longer."""
    started_at = table.clock() - request.uploading_seconds
    if request.epoch is None and request.thread is None:
        yield from look_for_other_savers(table, at)
    thread = table.memory.thread(at.root)
    for _ in range(ATTEMPTS_MAX):
        lasts = lasting(table, thread)
        head = _head(lasts, at, request)
        if lives_shorter(request.reused_until, items.ends_at(head.item)):
            # Some have to be renewed, and only the client knows which.
            return {"wants_reused": True}
        committed = yield from commit(lasts, head, request.epoch, started_at)
        thread = committed.thread
        if not committed.counts or lasting(table, thread) == lasts:
            break
    return _committed_document(table, request, committed, head)


def _head(table: Table, at: Partition, request: wire.Put) -> Head:
    given = request.parent_lifetime
    parent = None if given is None else Lifetime(given.ends_at, given.history_expires_at)
    outlives = table if parent is None else outliving(table, parent.ends_at)
    needs = needs_of(outlives, at, request.segments, request)
    key = items.key(at.pk, items.checkpoint_prefix(request.checkpoint_id))
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
        at,
        request.checkpoint_id,
        texts={
            items.PARENT: head.parent,
            items.STARTED_FROM: head.started_from,
            items.REBUILT_FROM: head.rebuilt_from,
            RUN_ID: head.run_id,
        },
        metadata=metadata,
        body=parts[items.BODY],
    )
    return Head.expiring(
        outlives, at, item, needs, has_delta_channels=request.has_delta_channels, parent=parent
    )


def _committed_document(table: Table, request: wire.Put, committed: Committed, head: Head) -> Document:
    return {
        "epoch": committed.epoch,
        "counts": committed.counts,
        "thread": None if committed.thread is None else note_of(table.memory, head.at),
        "ends_at": committed.lifetime.ends_at,
        "history_expires_at": committed.lifetime.history_expires_at,
        "segments": _expiries(head.needs, request.reused),
    }


def _outcome_document(
    table: Table, request: wire.PutWrites, outcome: Outcome, writes: TaskWrites
) -> Document:
    found = outcome.found
    return {
        "stored": outcome.stored,
        "epoch": outcome.epoch,
        "thread": note_of(table.memory, writes.at),
        "segments": _expiries(writes.needs, request.reused),
        "found": None
        if found is None
        else {
            "item": item_document(found.item),
            "is_gone": found.is_gone,
            "ends_at": found.ends_at,
            "is_safe": found.is_safe,
            "segments": None
            if found.contents is None
            else [{"id": each, "data": sealed(each, data)} for each, data in found.contents.items()],
        },
    }


def _expiries(needs: Needs, told: Iterable[wire.ReusedSegment]) -> list[Document]:
    """When segments expire, as far as the client does not know it."""
    known = {each.id: each.expires_at for each in told}
    return [
        {"id": each, "expires_at": chunk.expires_at}
        for each, chunk in needs.chunks.items()
        if each not in known or known[each] != chunk.expires_at
    ]


def _put_segments(table: Table, at: Partition, request: wire.PutSegments) -> Op[Document]:
    thread = table.memory.thread(at.root)
    if thread is None:
        yield from look_for_other_savers(table, at)
        thread = yield from take_epoch(table, at)
    lasts = lasting(table, thread)
    needs = needs_of(lasts, at, request.segments)
    yield from store_needs(lasts, at, needs, thread.epoch, None)
    return {"thread": note_of(table.memory, at), "segments": _expiries(needs, ())}


def _old(request: wire.PutWrites) -> Item:
    """What the task had, as far as it matters, in the table's form."""
    old = request.old
    if request.replaces and (old is None or old.expires_at is old.created_at is None):
        msg = "replaces goes with an old item; send its created_at and expires_at, or leave replaces out"
        raise CheckpointerInputError(msg)
    if old is None:
        return {}
    item: Item = {} if old.writes is None else {items.WRITES: {"B": old.writes}}
    numbers = {items.CREATED_AT: old.created_at, TTL_ATTRIBUTE: old.expires_at}
    return item | {name: {"N": str(value)} for name, value in numbers.items() if value is not None}
