"""The saver's operations on what came over the wire."""

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
from langgraph.checkpoint.dynamodb._format.expiry import Expiry
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    BATCH_GET_ITEMS_MAX,
    INDEX_GROUP,
    SEGMENT_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import RUN_ID, TTL_ATTRIBUTE
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
from langgraph.checkpoint.dynamodb._operations.draft import Needs, UnlistedExpiryError, store_needs
from langgraph.checkpoint.dynamodb._operations.get import read_checkpoint
from langgraph.checkpoint.dynamodb._operations.list import select
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments, find, load, segment_items
from langgraph.checkpoint.dynamodb._operations.threads import ensure_epoch, read_thread
from langgraph.checkpoint.dynamodb._operations.unserved import OF_ONE_THREAD
from langgraph.checkpoint.dynamodb._runtime.memory import Lifetime
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway import wire
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.notes import memory_of, note_of, thread_of
from langgraph.checkpoint.dynamodb.gateway.plain import PlainCheckpoint, Room
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
from langgraph.checkpoint.dynamodb.protocol import epoch_of, is_reusable
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
Load: TypeAlias = Callable[[Table, Codec, Group, Segments], Op[Group | None]]


class Operations:
    """One method for each endpoint: it takes the request's model and gives the answer's document.

    The documents are those of docs/gateway.md.
    """

    def __init__(
        self, saver: DynamoDBSaver, *, limits: Limits, segments_bytes_max: int, part_seconds: float
    ) -> None:
        """Take the saver whose table is served, and how much one request may do.

        Args:
            saver: The saver.
            limits: How deep plain JSON may be, and how many values it may have.
            segments_bytes_max: How many bytes of segments one answer may have.
            part_seconds: After how long a copy, or a prune of many threads, is left for the next request.
        """
        self._table = saver._table
        self._codec = saver._codec
        self._driver = saver._async
        self._sealed = SealedCodec(JsonPlusSerializer(), bytes_max=self._codec.bytes_max)
        self._limits = limits
        self._segments_bytes_max = segments_bytes_max
        self._part_seconds = part_seconds

    # Reading

    async def get_tuple(self, request: wire.GetTuple) -> Document:
        """Read a checkpoint."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        loader = {"none": _load_nothing, "checked": load}.get(request.segments, self._loader(request.held))
        found = await self._run(read_checkpoint(table, self._sealed, at, request.checkpoint_id, loader))
        document: Document = {"checkpoint": None, "thread": _last_note(table, at)}
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
        return await self._run(self._segments(at, request.ids))

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
        after, skipped = _position(request)
        config = _config(request)
        limit = None if request.limit is None else request.limit + skipped
        listing = select(
            self._table, self._sealed, config, request.filter, request.before, limit, _listed, after
        )
        sent: dict[str, set[bytes]] = {}
        count, size = 0, 0
        last: tuple[str, str] | None = None
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
            last = group.checkpoint_id, at.namespace
            yield document
        is_at_limit = request.limit is not None and count - skipped >= request.limit
        yield {"cursor": _cursor(config, last, count) if is_at_limit and last is not None else None}

    async def get_plain(self, request: wire.GetPlain) -> Document:
        """Read a checkpoint as plain JSON."""
        at = _namespace(request)
        found = await self._run(read_checkpoint(self._table, self._sealed, at, request.checkpoint_id))
        if found is None:
            return {"checkpoint": None}
        return {"checkpoint": await self._plain(at, *found, self._room(), request.channels)}

    async def list_plain(self, request: wire.ListPlain) -> Document:
        """List checkpoints as plain JSON, as many as there is room for."""
        configurable = {"thread_id": request.thread_id, "checkpoint_ns": request.checkpoint_ns}
        after = None if request.cursor is None else tuple(json.loads(request.cursor))
        # One more says whether there is another page.
        limit = request.limit + 1
        listing = select(
            self._table, self._sealed, {"configurable": configurable}, {}, None, limit, _listed, after
        )
        room, found = self._room(), list[Document]()
        async for at, group, known in self._driver.stream(listing):
            document = None
            if len(found) < request.limit:
                document = await self._plain(at, group, known, room, request.channels)
            # What is left out for want of room begins the next page, where it has all of it.
            if document is None or (found and room.was_short):
                last = found[-1]["checkpoint_id"], found[-1]["checkpoint_ns"]
                return {"checkpoints": found, "cursor": json.dumps(last)}
            found.append(document)
        return {"checkpoints": found, "cursor": None}

    def _room(self) -> Room:
        return Room(self._limits, self._segments_bytes_max)

    async def _plain(
        self, at: Partition, group: Group, known: Segments, room: Room, channels: Sequence[str] | None
    ) -> Document:
        """Open a checkpoint in a thread: what that costs, nothing that is stored tells before."""
        checkpoint = PlainCheckpoint(at, group, known, room)
        opening = work(partial(checkpoint.document, channels), self._segments_bytes_max)
        return await self._run(opening)

    async def delta_channel_history(self, request: wire.DeltaChannelHistory) -> Document:
        """Read a checkpoint's ancestors, with the segments that their items' own content is in."""
        return await self._run(self._ancestors(_namespace(request), request))

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
        return await self._run(_listing_expiries(_put(table, at, request)))

    async def put_writes(self, request: wire.PutWrites) -> Document:
        """Store parts of a task's writes."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        return await self._run(_listing_expiries(self._put_writes(table, at, request)))

    def _put_writes(self, table: Table, at: Partition, request: wire.PutWrites) -> Op[Document]:
        needs = needs_of(at, request)
        sk = items.writes_sk(request.checkpoint_id, request.task_id)
        parts = parts_of(items.key(at.pk, sk), request.parts.model_dump())
        writes = TaskWrites(at, sk, parts, needs, request.order, _old(request), request.replaces)
        if request.thread is None:
            yield from look_for_other_savers(table, at)
        outcome = yield from commit_writes(table, self._sealed, writes, thread_of(request.thread))
        return _outcome_document(table, request, outcome, writes)

    async def put_segments(self, request: wire.PutSegments) -> Document:
        """Store segments before what will name them."""
        at = _namespace(request)
        table = self._table_of(at, request.thread)
        return await self._run(_put_segments(table, at, request))

    # Deleting and copying

    async def delete_thread(self, request: wire.DeleteThread) -> Document:
        """Delete a thread."""
        return await self._done(delete_thread(self._table, request.thread_id))

    async def delete_for_runs(self, request: wire.DeleteForRuns) -> Document:
        """Delete the checkpoints of runs."""
        return await self._done(delete_for_runs(self._table, request.run_ids))

    async def copy_thread(self, request: wire.CopyThread) -> Document:
        """Copy a thread that is not encrypted, or a part of it."""
        source, target = request.source_thread_id, request.target_thread_id
        now = self._table.clock()
        copy = copy_part(
            self._table, self._codec, source, target, _progress(request, now), until=now + self._part_seconds
        )
        stopped = await self._driver.run(copy)
        return {"progress": None if stopped is None else asdict(stopped)}

    async def prune(self, request: wire.Prune) -> Document:
        """Remove old checkpoints of as many threads as there is time for."""
        return {"left": await self._driver.run(self._prune(request))}

    def _prune(self, request: wire.Prune) -> Op[Sequence[str]]:
        """Prune one thread after the other; return those that are left.

        A thread that cannot be pruned ends the request: it is the first of those that are left, or raises as the first.
        """
        until = self._table.clock() + self._part_seconds
        left = wanted = checked_ids(request.thread_ids, "thread_ids")
        while True:
            try:
                yield from prune(self._table, left[:1], request.strategy, request.keep_last)
            except OF_ONE_THREAD:
                if left is wanted:
                    raise
                return left
            left = left[1:]
            if not left or self._table.clock() >= until:
                return left

    # Running

    def _table_of(self, at: Partition, note: wire.ThreadNote | None) -> Table:
        """The table, with what the client remembers."""
        return replace(self._table, memory=memory_of(self._table.memory, at, note))

    async def _run(self, operation: Op[T]) -> T:
        return await self._driver.run(operation)

    async def _done(self, operation: Op[None]) -> Document:
        await self._driver.run(operation)
        return {}


def _namespace(request: wire.Namespace) -> Partition:
    return items.partition(request.thread_id, request.checkpoint_ns)


# Reading


def _counts_for(table: Table, group: Group, held: wire.Held) -> Op[bool]:
    """Whether a checkpoint counts, under the epoch under which its reader has another one, or just this."""
    if not is_reusable(held.epoch, epoch_of(group.head, items.BODY)):
        return False
    return group.checkpoint_id == held.checkpoint_id or (yield from _counts(table, group))


def _counts(table: Table, group: Group) -> Op[bool]:
    """Whether a checkpoint's head has the thread's epoch."""
    thread = yield from read_thread(table, items.parse_partition(items.partition_key(group.head)))
    return thread is not None and is_reusable(epoch_of(group.head, items.BODY), thread.epoch)


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


def _position(request: wire.List) -> tuple[tuple[str, str] | None, int]:
    """After which checkpoint of a thread a list goes on, or after how many of all threads."""
    if request.cursor is None:
        return None, 0
    if request.thread_id is None:
        return None, int(request.cursor)
    checkpoint_id, namespace = json.loads(request.cursor)
    return (checkpoint_id, namespace), 0


def _cursor(config: RunnableConfig | None, last: tuple[str, str] | None, count: int) -> str:
    return str(count) if config is None else json.dumps(last)


def _progress(request: wire.CopyThread, now: float) -> Progress | None:
    """How far a copy is. It cannot have begun later than now, which would let it live longer."""
    if request.progress is None:
        return None
    progress = Progress(**request.progress.model_dump())
    return replace(progress, began_at=min(progress.began_at, now))


# Writing


def _listing_expiries(operation: Op[Document]) -> Op[Document]:
    """Ask the client for all expiries where some segment has to live longer: only the client knows which."""
    try:
        return (yield from operation)
    except UnlistedExpiryError:
        return {"wants_reused": True}


def _put(table: Table, at: Partition, request: wire.Put) -> Op[Document]:
    """Store a checkpoint."""
    started_at = table.clock() - request.uploading_seconds
    head = _head(at, request)
    if request.thread is None:
        yield from look_for_other_savers(table, at)
    committed = yield from commit(table, head, thread_of(request.thread), started_at)
    return {
        "under": note_of(table.memory, at, committed.under),
        "thread": note_of(table.memory, at, committed.thread),
        "confirmed": committed.is_confirmed,
        "ends_at": committed.lifetime.ends_at,
        "history_expires_at": committed.lifetime.history_expires_at,
        "segments": _expiries(head.needs, request.reused),
    }


def _head(at: Partition, request: wire.Put) -> Head:
    given = request.parent_lifetime
    parent = None if given is None else Lifetime(given.ends_at, given.history_expires_at)
    needs = needs_of(at, request)
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
    return Head(at, item, needs, request.has_delta_channels, parent)


def _outcome_document(
    table: Table, request: wire.PutWrites, outcome: Outcome, writes: TaskWrites
) -> Document:
    found = outcome.found
    return {
        "stored": outcome.stored,
        "thread": note_of(table.memory, writes.at, outcome.thread),
        "segments": _expiries(writes.needs, request.reused),
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


def _last_note(table: Table, at: Partition) -> Document | None:
    """Return what a request has found out of a thread."""
    return note_of(table.memory, at, table.memory.thread(at.root))


def _expiries(needs: Needs, told: Iterable[wire.ReusedSegment]) -> list[Document]:
    """When segments expire, as far as the client does not know it."""
    known = {each.id: each.expires_at for each in told}
    return [
        {"id": each, "expires_at": chunk.expires_at}
        for each, chunk in needs.chunks.items()
        if each not in known or known[each] != chunk.expires_at
    ]


def _put_segments(table: Table, at: Partition, request: wire.PutSegments) -> Op[Document]:
    needs, thread = needs_of(at, request), thread_of(request.thread)
    if thread is None:
        yield from look_for_other_savers(table, at)
        thread = yield from ensure_epoch(table, at)
    yield from store_needs(table, at, needs, thread, Expiry.after(thread.ttl_seconds, table.clock()), None)
    return {"thread": note_of(table.memory, at, thread), "segments": _expiries(needs, ())}


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
