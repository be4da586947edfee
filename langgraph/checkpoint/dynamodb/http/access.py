"""Access to the table through the gateway: what is asked of it, and what is remembered of its answers.

Who composes what is stored, and opens what is read, is the client; keys, write order, expiry and recovery are the
service's. What a saver's process remembers of a thread is the client's too, and goes along with what it asks. The
documents are those of docs/gateway.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import read_body
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import Chunk, expand, piece
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head
from langgraph.checkpoint.dynamodb._operations.commit_writes import Found, Outcome, TaskWrites
from langgraph.checkpoint.dynamodb._operations.draft import Needs
from langgraph.checkpoint.dynamodb._operations.get import entry_of
from langgraph.checkpoint.dynamodb._operations.reads import Group, Segments, open_segment
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, Lifetime, StoredSegment, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, result, work
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError

Document: TypeAlias = Mapping[str, Any]

# What a request has beside its segments: names, ids, a head or a task's writes, and the room that base64 takes.
_REST_BYTES = 128 * 1024
_ROOM = 0.7
# Of so many namespaces it is known which checkpoint was read or put last.
_NAMESPACES_MAX = 4096


def ask(endpoint: str, document: Document) -> Op[Any]:
    """Send a document to an endpoint and return the one that it answers."""
    outcomes = yield (Call(endpoint, document),)
    return result(outcomes[0])


@dataclass(frozen=True)
class About:
    """What the service says of itself: its table, and how much one request may have."""

    table_name: str
    body_bytes_max: int
    items_max: int


class Newest(dict[str, str]):
    """Of each partition the checkpoint that was read or put last, as far as that is remembered."""

    def __setitem__(self, pk: str, checkpoint_id: str) -> None:
        """Remember one, and begin anew where there are too many."""
        if len(self) > _NAMESPACES_MAX:
            self.clear()
        super().__setitem__(pk, checkpoint_id)


@dataclass(frozen=True)
class GatewayAccess:
    """Access through one service, for one call."""

    table: Table
    codec: Codec
    about: About
    newest: Newest

    # Reading

    def read(
        self, at: Partition, checkpoint_id: str | None, segments: str = "fitting"
    ) -> Op[tuple[Group, Segments] | None]:
        """The items of a checkpoint, or of the newest one that counts, and every segment that they name.

        Args:
            at: The namespace.
            checkpoint_id: The checkpoint; None for the newest.
            segments: "none" leaves them out; "checked" lets the service make sure first that they are there.

        Raises:
            CheckpointNotFoundError: Deletions of the thread kept interfering.
        """
        for _ in range(ATTEMPTS_MAX):
            held = self._held(at, checkpoint_id) if segments == "fitting" else None
            wanted = {"checkpoint_id": checkpoint_id, "segments": segments, "held": held}
            note = self._note(at, self.table.memory.thread(at.root))
            answer = yield from ask("get-tuple", {**place_of(at), "thread": note, **wanted})
            self._learn(at, answer["thread"])
            document = answer["checkpoint"]
            if document is None:
                return None
            group = group_of(at, document)
            known = Segments.of(group.head)
            known.counts = document["counts"]
            if segments == "none":
                return group, known
            yield from self.take(at, known, document)
            if not (yield from self.fill(at, known, group.ids())):
                self.newest[at.pk] = group.checkpoint_id
                return group, known
            # Some have gone; the service finds out whether the checkpoint ever counted.
            segments = "checked"
        msg = f"checkpoints of thread {at.thread_id!r} were deleted while they were being read, {ATTEMPTS_MAX} times"
        raise CheckpointNotFoundError(msg)

    def _held(self, at: Partition, checkpoint_id: str | None) -> Document | None:
        """The checkpoint whose segments the service need not send: the same, or the one that was read or put last."""
        for each in (checkpoint_id, self.newest.get(at.pk)):
            entry = None if each is None else self.table.memory.checkpoint(at.pk, each)
            if entry is not None and entry.counts:
                return {"checkpoint_id": each, "epoch": entry.epoch}
        return None

    def take(self, at: Partition, known: Segments, document: Document) -> Op[None]:
        """Open the segments that came with a checkpoint."""
        yield from self._open(at, known, document["segments"], {})

    def fill(self, at: Partition, known: Segments, ids: Iterable[bytes]) -> Op[set[bytes]]:
        """Read those of some segments, and of what they lead to, that are not known yet; return what has gone."""
        gone: set[bytes] = set()
        while wanted := set(expand(ids, known.contents)) - known.contents.keys() - gone:
            remembered: Mapping[bytes, StoredSegment] = {}
            if known.counts and known.epoch is not None:
                remembered = self.table.memory.segments(at.pk, known.epoch, wanted)
            yield from self._open(at, known, (), remembered)
            left = sorted(wanted - remembered.keys())
            while left:
                some, rest = left[: self.about.items_max], left[self.about.items_max :]
                answer = yield from ask("get-segments", {**place_of(at), "ids": some})
                yield from self._open(at, known, answer["segments"], {})
                left = [*answer["left"], *rest]
                gone |= set(some) - set(answer["left"]) - known.contents.keys()
        return gone

    def _open(
        self,
        at: Partition,
        known: Segments,
        documents: Sequence[Document],
        remembered: Mapping[bytes, StoredSegment],
    ) -> Op[None]:
        """Open segments that came, and that are remembered; remember those that came."""
        if not documents and not remembered:
            return
        came = {each["id"]: each for each in documents}
        sealed = {each: segment.sealed for each, segment in remembered.items()}
        sealed |= {each: document["data"] for each, document in came.items()}
        contents = yield from work(partial(_opened, self.codec, at, sealed), sum(map(len, sealed.values())))
        known.contents |= contents
        stored = {
            each: StoredSegment(document["data"], Chunk.of(piece(contents[each]), document["expires_at"]))
            for each, document in came.items()
        }
        known.chunks |= {each: segment.chunk for each, segment in {**remembered, **stored}.items()}
        if known.epoch is not None:
            self.table.memory.remember_segments(at.pk, known.epoch, stored)

    def entry(self, at: Partition, checkpoint_id: str) -> Op[Entry | None]:
        """What a child needs to know of a stored checkpoint, with the plaintexts of its segments."""
        return (yield from self._entry(at, checkpoint_id))

    def newest_entry(self, at: Partition) -> Op[Entry | None]:
        """The same of the newest checkpoint."""
        return (yield from self._entry(at, None))

    def _entry(self, at: Partition, checkpoint_id: str | None) -> Op[Entry | None]:
        read = yield from self.read(at, checkpoint_id)
        if read is None:
            return None
        group, known = read
        entry = entry_of(group, read_body(self.codec, group.head, known.contents), known)
        return replace(entry, contents=known.contents)

    def stored(self, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
        """Which of these checkpoints are in the table."""
        found = set()
        for at, checkpoint_id in wanted:
            if (yield from self.read(at, checkpoint_id, "none")) is not None:
                found.add((at, checkpoint_id))
        return found

    def look_for_other_savers(self, at: Partition) -> Op[None]:
        """Leave that to the service, which looks when it is asked to store something of an unknown thread."""
        del at
        yield from ()

    # Writing

    def commit(
        self,
        head: Head,
        thread: ThreadEntry | None,
        started_at: float,
        store_writes: Callable[[], Op[Any]] | None,
    ) -> Op[Committed]:
        """Let the service store a head and what it names."""
        if store_writes is not None:
            yield from store_writes()
        at, item = head.at, head.item
        sent = yield from self._send_ahead(at, head.needs, started_at, thread)
        texts = (items.PARENT, items.STARTED_FROM, items.REBUILT_FROM, RUN_ID, items.METADATA)
        named: dict[str, Any] = {name: items.text(item, name) for name in texts}
        named["body"] = items.binary(item, items.BODY)
        if items.SEALED_METADATA in item:
            named["sealed_metadata"] = items.binary(item, items.SEALED_METADATA)
        document = {
            **place_of(at),
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
        answer = yield from self._store("put", at, document, head.needs, 1.5)
        committed = Committed(
            _thread_in(answer["under"]),
            None if answer["thread"] is None else _thread_in(answer["thread"]),
            Lifetime(answer["ends_at"], answer["history_expires_at"]),
        )
        if committed.is_confirmed:
            self.table.memory.remember_segments(at.pk, committed.under.epoch, head.needs.stored())
            self.newest[at.pk] = document["checkpoint_id"]
        return committed

    def commit_writes(self, writes: TaskWrites, thread: ThreadEntry | None) -> Op[Outcome]:
        """Let the service store parts of a task's writes and what they name."""
        at, key = writes.at, writes.key
        document = {
            **place_of(at),
            **(yield from self._send_ahead(at, writes.needs, self.table.clock(), thread)),
            "checkpoint_id": items.checkpoint_id_of(key),
            "task_id": items.task_id_of(key),
            "parts": {name: part.attribute(writes.sk)["B"] for name, part in writes.parts.items()},
            "order": writes.order,
            "old": _old(writes.old),
            "replaces": writes.replaces,
        }
        answer = yield from self._store("put-writes", at, document, writes.needs, 2.5)
        known = None if answer["thread"] is None else _thread_in(answer["thread"])
        if answer["stored"] and known is not None and writes.needs.segments:
            self.table.memory.remember_segments(at.pk, known.epoch, writes.needs.stored())
        found = answer["found"]
        if found is not None:
            found = self._found(at, found)
        return Outcome(answer["stored"], known, found)

    def _found(self, at: Partition, document: Document) -> Found:
        """What a task has already."""
        contents = None
        if document["segments"] is not None:
            contents = _opened(self.codec, at, {each["id"]: each["data"] for each in document["segments"]})
        item = document["item"] and {**document["item"], PARTITION_KEY: {"S": at.pk}}
        return Found(item, document["is_gone"], contents, document["is_safe"])

    def _send_ahead(
        self, at: Partition, needs: Needs, started_at: float, thread: ThreadEntry | None
    ) -> Op[dict[str, Any]]:
        """Return the new segments that a request has, and the thread that it names.

        What names segments is stored under the epoch that the thread had before the first of them was sent. Otherwise a
        request that is carried out twice, with a deletion in between, would name under the new epoch what the deletion
        is about to remove.

        Where the segments do not fit into the request they are sent before it.
        """
        if thread is None and needs.segments:
            answer = yield from ask("put-segments", {**place_of(at), "thread": None, "segments": []})
            self._learn(at, answer["thread"])
            thread = _thread_in(answer["thread"])
        new = [{"id": each, "data": items.binary(item, items.DATA)} for each, item in needs.segments.items()]
        room = int(self.about.body_bytes_max * _ROOM) - _REST_BYTES
        groups = list(_grouped(new, room, self.about.items_max))
        if len(groups) == 1:
            return {"segments": new, "thread": self._note(at, thread)}
        for group in groups:
            document = {**place_of(at), "thread": self._note(at, thread), "segments": group}
            answer = yield from ask("put-segments", document)
            self._learn(at, answer["thread"])
            _take_expiries(needs, answer["segments"])
        uploading_seconds = max(0.0, self.table.clock() - started_at)
        return {"uploading_seconds": uploading_seconds, "thread": self._note(at, thread)}

    def _store(
        self, endpoint: str, at: Partition, document: Document, needs: Needs, lifetimes: float
    ) -> Op[Any]:
        """Ask for something to be stored, and tell what is reused as far as it may have to live longer.

        Args:
            endpoint: The endpoint.
            at: The namespace.
            document: What is to be stored.
            needs: What it names.
            lifetimes: How many times the thread's ttl what is named has to be there at most.
        """
        thread = self.table.memory.thread(at.root)
        soon = float("inf")
        if thread is not None:
            soon = self.table.clock() + lifetimes * (thread.ttl_seconds or 0)
        answer = yield from ask(endpoint, {**document, **_reused(needs, document, soon)})
        if "wants_reused" in answer:
            # The service's clock or ttl is another one than was thought here.
            answer = yield from ask(endpoint, {**document, **_reused(needs, document, float("inf"))})
        self._learn(at, answer["thread"])
        _take_expiries(needs, answer["segments"])
        return answer

    # What is remembered

    def _note(self, at: Partition, thread: ThreadEntry | None) -> Document | None:
        """Return what the service is told of a thread."""
        if thread is None:
            return None
        note: dict[str, Any] = {"epoch": thread.epoch, "ttl_seconds": thread.ttl_seconds}
        known = self.table.memory.namespaces(at.root, thread.epoch)
        if at.namespace in known:
            note |= {"registered": True, "registered_until": known[at.namespace]}
        return note

    def _learn(self, at: Partition, note: Document | None) -> None:
        """Remember what the service told of a thread."""
        if note is None:
            return
        thread = self.table.memory.remember_thread(at.root, note["epoch"], note["ttl_seconds"])
        if note.get("registered"):
            self.table.memory.remember_namespace(at.root, thread, at.namespace, note["registered_until"])


def _thread_in(note: Document) -> ThreadEntry:
    """Return the thread that an answer tells of."""
    return ThreadEntry(note["epoch"], note["ttl_seconds"])


def group_of(at: Partition, document: Document) -> Group:
    """A checkpoint's items, as the table has them."""
    found = [{**item, PARTITION_KEY: {"S": at.pk}} for item in document["items"]]
    items.check_format(found[0])
    return Group(found[0], found[1:])


def place_of(at: Partition) -> Document:
    """How a request names a namespace."""
    return {"thread_id": at.thread_id, "checkpoint_ns": at.namespace}


def _old(item: Item) -> Document | None:
    """Of a task's item what tells whether it has changed since."""
    if not item:
        return None
    return {
        "writes": item.get(items.WRITES, {}).get("B"),
        "created_at": items.number(item, items.CREATED_AT),
        "expires_at": items.number(item, TTL_ATTRIBUTE),
    }


def _opened(codec: Codec, at: Partition, sealed: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What segments hold."""
    contents: dict[bytes, bytes] = {}
    size = 0
    for segment_id, data in sealed.items():
        item = {**items.key(at.pk, items.segment_sk(segment_id)), items.DATA: {"B": data}}
        content = contents[segment_id] = open_segment(codec, item)
        size += len(content)
        codec.check_size(size // 3, item)
    return contents


def _reused(needs: Needs, document: Document, soon: float) -> Document:
    """The segments that are named again and expire before some time, and when the first of the others does."""
    new = {each["id"] for each in document.get("segments", ())}
    expiries = {
        each: chunk.expires_at
        for each, chunk in needs.chunks.items()
        if each not in new and chunk.expires_at is not None
    }
    listed = [{"id": each, "expires_at": end} for each, end in expiries.items() if end < soon]
    others = [end for end in expiries.values() if end >= soon]
    return {"reused": listed, "reused_until": min(others, default=None)}


def _take_expiries(needs: Needs, documents: Iterable[Document]) -> None:
    for each in documents:
        needs.chunks[each["id"]].expires_at = each["expires_at"]


def _grouped(
    segments: Collection[dict[str, Any]], bytes_max: int, count_max: int
) -> Iterator[list[dict[str, Any]]]:
    """Groups of segments that fit into one request each; one group where all do."""
    group: list[dict[str, Any]] = []
    size = 0
    for each in segments:
        if group and (size + len(each["data"]) > bytes_max or len(group) >= count_max):
            yield group
            group, size = [], 0
        group.append(each)
        size += len(each["data"])
    yield group
