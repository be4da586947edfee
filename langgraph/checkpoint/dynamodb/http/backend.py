"""The backend through the gateway: its requests, and the caching of its responses.

The client composes what is stored, and opens what is read. The service is responsible for keys, write order, expiry
and recovery. The client also caches what it knows of a thread, and sends it with its requests. docs/gateway.md
describes the documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import read_body, read_metadata
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.schema import OWNER, PARTITION_KEY, RUN_ID, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import Chunk, expand, is_index, piece
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head
from langgraph.checkpoint.dynamodb._operations.commit_writes import Found, Outcome, TaskWrites
from langgraph.checkpoint.dynamodb._operations.directory_table import EntryPage, Newest, ThreadPosition
from langgraph.checkpoint.dynamodb._operations.entries import About as AboutThread
from langgraph.checkpoint.dynamodb._operations.entries import entry_of as new_entry_of
from langgraph.checkpoint.dynamodb._operations.get import entry_of
from langgraph.checkpoint.dynamodb._operations.item_builder import SegmentRefs
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments, StoredCheckpoint, open_segment
from langgraph.checkpoint.dynamodb._runtime.cache import (
    CachedCheckpoint,
    CachedSegment,
    CachedThread,
    Lifetime,
)
from langgraph.checkpoint.dynamodb._runtime.requests import grouped
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, result, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb._runtime.thread_hints import hint_of, remember_hint, thread_of
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.protocol import is_reusable

Document: TypeAlias = Mapping[str, Any]

# A request's size beside its segments (names, ids, a head or a task's writes), and the share that base64 leaves.
_REST_BYTES = 128 * 1024
_ROOM = 0.7
# Of how many threads an answer may have the heads. Without its body, a head has up to some 10 KB.
_STATUSES_AT_ONCE = 50


def ask(endpoint: str, document: Document) -> Op[Any]:
    """Send a document to an endpoint and return the document of the response."""
    outcomes = yield (Call(endpoint, document),)
    return result(outcomes[0])


@dataclass(frozen=True)
class About:
    """The service's description of itself: its table, and the limits of one request."""

    table_name: str
    body_bytes_max: int
    items_max: int
    owner: str | None = None
    """The owner whose threads the credentials are for."""


@dataclass(frozen=True)
class RemoteBackend:
    """The backend through a gateway, for one call."""

    storage: Storage
    about: About

    # Reading

    def read(
        self, partition: Partition, checkpoint_id: str | None, segments: str = "fitting"
    ) -> Op[tuple[StoredCheckpoint, LoadedSegments] | None]:
        """Read the items of a checkpoint, or of the newest acknowledged one, and all segments that they name.

        Args:
            partition: The namespace.
            checkpoint_id: The checkpoint; `None` for the newest.
            segments: "none" leaves segments out; "checked" makes the service check first that they exist.

        Raises:
            CheckpointNotFoundError: Deletions of the thread kept interfering.
        """
        for _ in range(ATTEMPTS_MAX):
            held = self._held(partition, checkpoint_id) if segments == "fitting" else None
            wanted = {"checkpoint_id": checkpoint_id, "segments": segments, "held": held}
            hint = hint_of(self.storage.cache, partition, self.storage.cache.thread(partition.root))
            answer = yield from ask("get-tuple", {**place_of(partition), "thread": hint, **wanted})
            remember_hint(self.storage.cache, partition, answer["thread"])
            document = answer["checkpoint"]
            if document is None:
                return None
            checkpoint = yield from self.whole(partition, document, segments)
            if checkpoint is None:
                continue
            loaded = LoadedSegments.of(checkpoint.head)
            loaded.is_committed = document["committed"]
            if segments == "none":
                return checkpoint, loaded
            yield from self.open(partition, loaded, document["segments"])
            if not (yield from self.fill(partition, loaded, checkpoint.ids())):
                return checkpoint, loaded
            # Some segments are missing. Let the service find out whether the checkpoint was ever acknowledged.
            segments = "checked"
        msg = (
            f"checkpoints of thread {partition.thread_id!r} were deleted while they were read, in each of"
            f" {ATTEMPTS_MAX} attempts; retry the call"
        )
        raise CheckpointNotFoundError(msg)

    def whole(
        self, partition: Partition, document: Document, segments: str = "none"
    ) -> Op[StoredCheckpoint | None]:
        """Return the items of a checkpoint; read those that did not fit into the answer. `None` if they have gone."""
        checkpoint = checkpoint_of(partition, document)
        epoch = items.binary(checkpoint.head, items.EPOCH)
        writes, left = [*checkpoint.writes], document["left"]
        while left:
            some, rest = left[: self.about.items_max], left[self.about.items_max :]
            wanted = {"checkpoint_id": checkpoint.checkpoint_id, "segments": segments, "tasks": some}
            others = (yield from ask("get-tuple", {**place_of(partition), **wanted}))["checkpoint"]
            if others is None:
                return None
            more = checkpoint_of(partition, others)
            is_same = is_reusable(epoch, items.binary(more.head, items.EPOCH))
            if not is_same or len(more.writes) + len(others["left"]) < len(some):
                return None
            writes += more.writes
            left = [*others["left"], *rest]
        return replace(checkpoint, writes=writes)

    def _held(self, partition: Partition, checkpoint_id: str | None) -> Document | None:
        """Return the cached checkpoint whose segments the service need not send: the same one, or the last one used."""
        for each in (checkpoint_id, self.storage.cache.latest(partition.pk)):
            entry = None if each is None else self.storage.cache.checkpoint(partition.pk, each)
            if entry is not None and entry.is_committed:
                return {"checkpoint_id": each, "epoch": entry.epoch}
        return None

    def fill(
        self,
        partition: Partition,
        loaded: LoadedSegments,
        ids: Iterable[bytes],
        *,
        indexes_only: bool = False,
    ) -> Op[set[bytes]]:
        """Read segments that are not loaded yet, and those that index segments name; return the ids of missing ones."""
        gone: set[bytes] = set()

        def wanted_now() -> set[bytes]:
            named = expand(ids, loaded.contents)
            return set(filter(is_index, named) if indexes_only else named) - loaded.contents.keys() - gone

        while wanted := wanted_now():
            remembered: Mapping[bytes, CachedSegment] = {}
            if loaded.is_committed and loaded.epoch is not None:
                remembered = self.storage.cache.segments(partition.pk, loaded.epoch, wanted)
            yield from self.open(partition, loaded, (), remembered)
            left = sorted(wanted - remembered.keys())
            while left:
                some, rest = left[: self.about.items_max], left[self.about.items_max :]
                answer = yield from ask("get-segments", {**place_of(partition), "ids": some})
                yield from self.open(partition, loaded, answer["segments"])
                left = [*answer["left"], *rest]
                gone |= set(some) - set(answer["left"]) - loaded.contents.keys()
        return gone

    def open(
        self,
        partition: Partition,
        loaded: LoadedSegments,
        documents: Sequence[Document],
        remembered: Mapping[bytes, CachedSegment] = MappingProxyType({}),
    ) -> Op[None]:
        """Open received and cached segments, and cache the received ones."""
        if not documents and not remembered:
            return
        came = {each["id"]: each for each in documents}
        sealed = {each: segment.sealed for each, segment in remembered.items()}
        sealed |= {each: document["data"] for each, document in came.items()}
        contents = yield from work(
            partial(_opened, self.storage.codec, partition, sealed), sum(map(len, sealed.values()))
        )
        loaded.contents |= contents
        stored = {
            each: CachedSegment(document["data"], Chunk.of(piece(contents[each]), document["expires_at"]))
            for each, document in came.items()
        }
        loaded.chunks |= {each: segment.chunk for each, segment in {**remembered, **stored}.items()}
        if loaded.epoch is not None:
            self.storage.cache.remember_segments(partition.pk, loaded.epoch, stored)

    def read_entry(self, partition: Partition, checkpoint_id: str) -> Op[CachedCheckpoint | None]:
        """Read a stored checkpoint and return its cache entry, with the plaintexts of its segments."""
        return (yield from self._entry(partition, checkpoint_id))

    def newest_entry(self, partition: Partition) -> Op[CachedCheckpoint | None]:
        """Read the newest checkpoint and return its cache entry, with the plaintexts of its segments."""
        return (yield from self._entry(partition, None))

    def _entry(self, partition: Partition, checkpoint_id: str | None) -> Op[CachedCheckpoint | None]:
        read = yield from self.read(partition, checkpoint_id)
        if read is None:
            return None
        checkpoint, loaded = read
        entry = entry_of(checkpoint, read_body(self.storage.codec, checkpoint.head, loaded.contents), loaded)
        return replace(entry, contents=loaded.contents)

    def stored(self, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
        """Find out which of some checkpoints are in the table."""
        found = set()
        for partition, checkpoint_id in wanted:
            if (yield from self.read(partition, checkpoint_id, "none")) is not None:
                found.add((partition, checkpoint_id))
        return found

    # Writing

    def commit(
        self,
        head: Head,
        thread: CachedThread | None,
        started_at: float,
        store_writes: Callable[[], Op[Any]] | None,
    ) -> Op[Committed]:
        """Let the service store a head and the segments that it names."""
        if store_writes is not None:
            yield from store_writes()
        partition, item = head.partition, head.item
        sent = yield from self._send_ahead(partition, head.refs, started_at, thread)
        texts = (items.PARENT, items.STARTED_FROM, items.REBUILT_FROM, RUN_ID, items.METADATA)
        named: dict[str, Any] = {name: items.text(item, name) for name in texts}
        named["body"] = items.binary(item, items.BODY)
        if items.SEALED_METADATA in item:
            named["sealed_metadata"] = items.binary(item, items.SEALED_METADATA)
        document = {
            **sent,
            "checkpoint_id": items.checkpoint_id_of(item),
            "head": named,
            "has_delta_channels": head.has_delta_channels,
        }
        if head.parent is not None:
            document["parent_lifetime"] = {
                "ends_at": head.parent.ends_at,
                "history_expires_at": head.parent.history_expires_at,
            }
        answer = yield from self._store("put", partition, document, head.refs, 1.5)
        under = answer["under"]
        committed = Committed(
            CachedThread(under["epoch"], under["ttl_seconds"]),
            thread_of(answer["thread"]),
            Lifetime(answer["ends_at"], answer["history_expires_at"]),
        )
        if committed.is_confirmed:
            self.storage.cache.remember_segments(partition.pk, committed.under.epoch, head.refs.stored())
        return committed

    def commit_writes(self, writes: TaskWrites, thread: CachedThread | None) -> Op[Outcome]:
        """Let the service store parts of a task's writes and the segments that they name."""
        partition, key = writes.partition, writes.key
        document = {
            **(yield from self._send_ahead(partition, writes.refs, self.storage.clock(), thread)),
            "checkpoint_id": items.checkpoint_id_of(key),
            "task_id": items.task_id_of(key),
            "parts": {name: part.attribute(writes.sk)["B"] for name, part in writes.parts.items()},
            "order": writes.order,
            "old": _old(writes.old),
            "replaces": writes.replaces,
        }
        answer = yield from self._store("put-writes", partition, document, writes.refs, 2.5)
        known = thread_of(answer["thread"])
        if answer["stored"] and known is not None and writes.refs.segments:
            self.storage.cache.remember_segments(partition.pk, known.epoch, writes.refs.stored())
        found = answer["found"]
        if found is not None:
            found = yield from self._found(partition, found)
        return Outcome(answer["stored"], known, found)

    def _found(self, partition: Partition, document: Document) -> Op[Found]:
        """Decode the stored writes of a task, and read those of their segments that did not fit into the answer."""
        item = document["item"] and {**document["item"], PARTITION_KEY: {"S": partition.pk}}
        contents = None
        if document["segments"] is not None:
            loaded, part = LoadedSegments(partition.pk), items.parse_part(item, items.WRITES)
            loaded.contents |= _opened(
                self.storage.codec, partition, {each["id"]: each["data"] for each in document["segments"]}
            )
            # Without those of its segments that have been deleted meanwhile it cannot be merged, only replaced.
            gone = part is not None and (yield from self.fill(partition, loaded, part.own))
            contents = None if gone else loaded.contents
        return Found(item, document["is_gone"], contents, document["is_safe"])

    def _send_ahead(
        self, partition: Partition, refs: SegmentRefs, started_at: float, thread: CachedThread | None
    ) -> Op[dict[str, Any]]:
        """Send segments ahead if they do not fit into one request; return what that says of its segments and thread.

        An item is stored under the epoch that the thread had before the first of its segments was sent. Otherwise a
        request that takes effect twice, with a deletion in between, would name segments under the new epoch that the
        deletion is about to remove.
        """
        cache, place = self.storage.cache, {**place_of(partition), "entry": self.entry_of(partition)}
        if thread is None and refs.segments:
            answer = yield from ask("put-segments", {**place, "thread": None, "segments": []})
            remember_hint(cache, partition, answer["thread"])
            thread = thread_of(answer["thread"])
        new = [{"id": each, "data": items.binary(item, items.DATA)} for each, item in refs.segments.items()]
        room = int(self.about.body_bytes_max * _ROOM) - _REST_BYTES
        groups = list(grouped(new, lambda each: len(each["data"]), room, self.about.items_max))
        if len(groups) == 1:
            return {**place, "segments": new, "thread": hint_of(cache, partition, thread)}
        for group in groups:
            document = {**place, "thread": hint_of(cache, partition, thread), "segments": group}
            answer = yield from ask("put-segments", document)
            remember_hint(cache, partition, answer["thread"])
            _take_expiries(refs, answer["segments"])
        uploading_seconds = max(0.0, self.storage.clock() - started_at)
        return {**place, "uploading_seconds": uploading_seconds, "thread": hint_of(cache, partition, thread)}

    def _store(
        self, endpoint: str, partition: Partition, document: Document, refs: SegmentRefs, lifetimes: float
    ) -> Op[Any]:
        """Ask the service to store an item, and list the reused segments whose expiry it may have to extend.

        Args:
            endpoint: The endpoint.
            partition: The namespace.
            document: The document with the item.
            refs: The segments that the item names.
            lifetimes: For how many ttls of the thread its segments have to exist at most.
        """
        thread = self.storage.cache.thread(partition.root)
        soon = float("inf")
        if thread is not None:
            soon = self.storage.clock() + lifetimes * (thread.ttl_seconds or 0)
        answer = yield from ask(endpoint, {**document, **_reused(refs, document, soon)})
        if "wants_reused" in answer:
            # The service has another clock or ttl than assumed here, so list all of them.
            answer = yield from ask(endpoint, {**document, **_reused(refs, document, float("inf"))})
        remember_hint(self.storage.cache, partition, answer["thread"])
        _take_expiries(refs, answer["segments"])
        return answer

    # The directory

    def entry_of(self, partition: Partition) -> Document | None:
        """Return what the directory gets of a thread that is new in it; `None` to keep it out."""
        root = items.partition_of(partition.thread_id)
        if self.storage.entry is not None:
            return _entry_document(self.storage.entry())
        if self.storage.owner is not None:
            return _entry_document(new_entry_of(self.storage, root, AboutThread(self.storage.owner)))
        return None

    def describe(self, root: Partition, entry: Item, old: Item | None) -> Op[Item | None]:
        """Let the service enter a thread in the directory, or replace its entry."""
        known = None
        if old is not None:
            known = {"epoch": items.binary(old, items.EPOCH), "about": _entry_document(old)["about"]}
        document = {"thread_id": root.thread_id, "entry": _entry_document(entry), "old": known}
        found = (yield from ask("set-thread", document))["found"]
        return None if found is None else {**items.thread_key(root), **found}

    def entries(
        self, owner: str | None, since: int, before: ThreadPosition | None, count: int
    ) -> Op[EntryPage]:
        """Let the service read entries of the directory."""
        position = None if before is None else {"last_active": before.last_active, "at": before.thread_id}
        named = None if owner is None else items.unescape(owner)
        document = {"owner": named, "since": since, "before": position, "count": count}
        answer = yield from ask("threads", document)
        entries = [
            {**items.thread_key(items.partition_of(each["thread_id"])), **each["item"]}
            for each in answer["entries"]
        ]
        return EntryPage(entries, answer["is_last"])

    def newest(self, thread_ids: Sequence[str]) -> Op[list[Newest]]:
        """Let the service read the newest checkpoint of each thread, and open its metadata."""
        found: dict[str, Newest] = {}
        left = list(thread_ids)
        while left:
            count = min(self.about.items_max, _STATUSES_AT_ONCE)
            some, left = left[:count], left[count:]
            answer = yield from ask("thread-status", {"thread_ids": some})
            for each in answer["threads"]:
                found[each["thread_id"]] = yield from self._newest(each)
        return [found.get(each) or Newest("idle") for each in thread_ids]

    def _newest(self, document: Document) -> Op[Newest]:
        partition = items.partition_of(document["thread_id"])
        head = {**document["head"], PARTITION_KEY: {"S": partition.pk}}
        loaded, part = LoadedSegments(partition.pk), items.parse_part(head, items.SEALED_METADATA)
        try:
            if part is not None:
                yield from self.fill(partition, loaded, part.own)
            metadata = read_metadata(self.storage.codec, head, loaded.contents)
        except CheckpointerConfigurationError:
            # They are encrypted with another key.
            return Newest(document["status"])
        return Newest(document["status"], metadata.get("step"))


def checkpoint_of(partition: Partition, document: Document) -> StoredCheckpoint:
    """Return the items of a checkpoint, as they are in the table."""
    found = [{**item, PARTITION_KEY: {"S": partition.pk}} for item in document["items"]]
    items.check_format(found[0])
    return StoredCheckpoint(found[0], found[1:])


def place_of(partition: Partition) -> Document:
    """Return the fields by which a request names a namespace."""
    return {"thread_id": partition.thread_id, "checkpoint_ns": partition.namespace}


def _entry_document(entry: Item) -> dict[str, Any]:
    """Return an entry of the directory as it travels."""
    about, owner = entry.get(items.ABOUT), items.text(entry, OWNER)
    return {
        "owner": None if owner is None else items.unescape(owner),
        "about": None if about is None else about["B"],
    }


def _old(item: Item) -> Document | None:
    """Return the attributes of a task's item that tell whether it has changed since."""
    if not item:
        return None
    return {
        "writes": item.get(items.WRITES, {}).get("B"),
        "created_at": items.number(item, items.CREATED_AT),
        "expires_at": items.number(item, TTL_ATTRIBUTE),
    }


def _opened(codec: Codec, partition: Partition, sealed: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Open segments and return their contents."""
    contents: dict[bytes, bytes] = {}
    size = 0
    for segment_id, data in sealed.items():
        item = {**items.key(partition.pk, items.segment_sk(segment_id)), items.DATA: {"B": data}}
        content = contents[segment_id] = open_segment(codec, item)
        size += len(content)
        codec.check_size(size // 3, item)
    return contents


def _reused(refs: SegmentRefs, document: Document, soon: float) -> Document:
    """List the reused segments that expire before a time, and say when the first of the others expires."""
    new = {each["id"] for each in document.get("segments", ())}
    expiries = {
        each: chunk.expires_at
        for each, chunk in refs.chunks.items()
        if each not in new and chunk.expires_at is not None
    }
    listed = [{"id": each, "expires_at": end} for each, end in expiries.items() if end < soon]
    others = [end for end in expiries.values() if end >= soon]
    return {"reused": listed, "reused_until": min(others, default=None)}


def _take_expiries(refs: SegmentRefs, documents: Iterable[Document]) -> None:
    for each in documents:
        refs.chunks[each["id"]].expires_at = each["expires_at"]
