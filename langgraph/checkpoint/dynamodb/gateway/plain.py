"""Checkpoints as plain JSON: what LangGraph's serializer wrote, read without making an object or running code.

Whoever may write to a thread chooses what is read here. So everything that is opened, decoded and answered is counted
first, and what does not fit is named instead of shown. Encrypted values stay closed: the service has no key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from typing_extensions import override

from langgraph.checkpoint.dynamodb._format import content, items
from langgraph.checkpoint.dynamodb._format.codec import Codec, EncryptedError, Ids, UnreadableError
from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer, Stored
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.plain import as_json, asked, interrupts_in
from langgraph.checkpoint.dynamodb._format.segments import StoredValue, expand, inline_bytes, is_index
from langgraph.checkpoint.dynamodb._operations.reads import LoadedSegments, StoredCheckpoint
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.media import JSON
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.size_limits import check_json, count_msgpack

Document: TypeAlias = dict[str, Any]
_OrderedWrite: TypeAlias = tuple[tuple[str, str, int], content.Write, Item]
# A value is counted when it is opened, joined, decoded and encoded, and its objects when they are copied out of each
# other.
_COPIES_MAX = 16
_TOO_LARGE = 413


class Room:
    """The budget of one answer: bytes of JSON, values, and bytes that are read on the way."""

    def __init__(self, limits: Limits, bytes_max: int) -> None:
        """Start with the limits of a document.

        Args:
            limits: How deep a document may be, and how many values it may have.
            bytes_max: How many bytes of JSON all values may take.
        """
        self._limits = limits
        self._bytes = bytes_max
        self._values = limits.values_max
        self._reading = _COPIES_MAX * bytes_max
        self._reading_min = 0
        # Parsers do not pass on the errors of what they call, so it is noted here.
        self._is_over = False
        self.was_short = False
        """Whether anything did not fit."""

    def read(self, data: bytes) -> None:
        """Count bytes that are read."""
        self._reading -= len(data)
        if self._reading < self._reading_min or len(data) > self._bytes:
            self._is_over = True
            raise ProblemError(_TOO_LARGE, "the value does not fit into one answer")

    def read_msgpack(self, data: bytes) -> None:
        """Count msgpack before it is decoded: a byte of it can become a list of 56 bytes in memory."""
        self.read(data)
        with self._within_limits():
            self._values -= count_msgpack(data, self._limits.nesting_max, self._values)

    def read_json(self, data: bytes) -> None:
        """Count JSON before it is decoded."""
        self.read(data)
        with self._within_limits():
            check_json(data, self._limits)

    def json(self, value: Any) -> Any:
        """Return a value as JSON, and count its bytes in the answer."""
        found = as_json(value)
        encoded = JSON.encode(found)
        self.read_json(encoded)
        self._bytes -= len(encoded)
        return found

    @contextmanager
    def showing(self, stored_bytes: int) -> Iterator[None]:
        """Show a value in the block, or raise an error that says why not.

        Args:
            stored_bytes: How many bytes are stored of the value.

        Raises:
            LeftOutError: The value is not shown.
        """
        self._is_over = False
        # No value takes more than half of what is left, so that an expensive one hides no other.
        self._reading_min = self._reading // 2
        try:
            yield
        except (UnreadableError, ProblemError, RecursionError) as error:
            if isinstance(error, EncryptedError) or isinstance(error.__cause__, EncryptedError):
                raise LeftOutError("sealed", stored_bytes) from error
            self.was_short |= self._is_over
            raise LeftOutError("too_large" if self._is_over else "unreadable", stored_bytes) from error

    @contextmanager
    def _within_limits(self) -> Iterator[None]:
        try:
            yield
        except ProblemError as error:
            self._is_over = error.status == _TOO_LARGE
            raise


class LeftOutError(Exception):
    """A value is not shown.

    Args:
        reason: Why: it is sealed, too large or unreadable.
        stored_bytes: How many bytes are stored of it.
    """

    def __init__(self, reason: str, stored_bytes: int) -> None:
        """Make the document that is shown instead."""
        super().__init__(reason)
        self.omission: Document = {"reason": reason, "bytes": stored_bytes}

    def document(self) -> Document:
        """Return the document that is shown instead."""
        if self.omission["reason"] == "sealed":
            return {"sealed": True, "bytes": self.omission["bytes"]}
        return {"omitted": self.omission}


class _Counted:
    """A cache that keeps nothing. It counts each object in a value before the object is read."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def get(self, key: tuple[int, bytes], /) -> None:
        self._room.read_msgpack(key[1])

    def keep(self, key: tuple[int, bytes], value: Any, size_bytes: int, /) -> None:
        """Keep nothing."""


class _CountingSerializer(LookingSerializer):
    """Reads values as data, within the room."""

    def __init__(self, room: Room) -> None:
        super().__init__(_Counted(room))
        self._room = room

    @override
    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, raw = data
        if "+" in kind:
            # LangGraph's encrypting serializer names its output this way. Inside another serializer it has no envelope.
            msg = f"it is encrypted as {kind!r}"
            raise EncryptedError(msg)
        count = {"msgpack": self._room.read_msgpack, "json": self._room.read_json}
        count.get(kind, self._room.read)(raw)
        return super().loads_typed(data)


class _CountingCodec(Codec):
    """Opens what is not encrypted, within the room."""

    def __init__(self, room: Room) -> None:
        super().__init__(_CountingSerializer(room))
        self._room = room

    @override
    def open(self, sealed: bytes, item: Item, name: str, ids: Ids = ((), ())) -> bytes:
        raw = super().open(sealed, item, name, ids)
        self._room.read(raw)
        return raw

    @override
    def unpack(self, raw: bytes) -> Any:
        self._room.read_msgpack(raw)
        return super().unpack(raw)


class PlainCheckpoint:
    """A checkpoint whose items and segments were read and are still sealed."""

    def __init__(
        self, partition: Partition, checkpoint: StoredCheckpoint, loaded: LoadedSegments, room: Room
    ) -> None:
        """Store the parts. Nothing is opened yet."""
        self._partition = partition
        self._head = checkpoint.head
        self._tasks = checkpoint.writes
        self._sealed = loaded.contents
        # Index segments need no key, so they are already open.
        self._indexes = {each: data for each, data in loaded.contents.items() if is_index(each)}
        self._room = room
        self._codec = _CountingCodec(room)

    def document(self, channels: Collection[str] | None) -> Document:
        """Return the checkpoint as plain JSON, with the values of some channels, or of all."""
        return {
            "thread_id": self._partition.thread_id,
            "checkpoint_ns": self._partition.namespace,
            "checkpoint_id": items.checkpoint_id_of(self._head),
            "parent_checkpoint_id": items.text(self._head, items.PARENT),
            **self._state(channels),
            **self._pending(),
        }

    def _state(self, channels: Collection[str] | None) -> Document:
        document: Document = {"ts": None, "metadata": {}, "values": {}, "omitted": {}}
        deltas: set[str] = set()
        own = items.own_ids([self._head])
        try:
            with self._room.showing(self._stored_bytes(self._head, items.SEALED_METADATA)):
                metadata = content.read_metadata(self._codec, self._head, self._opened(own))
                document["metadata"] = self._room.json(metadata)
                deltas = content.delta_counters(document["metadata"])
        except LeftOutError as error:
            document["metadata"] = error.document()
        try:
            with self._room.showing(self._stored_bytes(self._head, items.BODY)):
                body = content.read_body(self._codec, self._head, self._opened(own))
                # Names take room, too.
                document["ts"], *names = self._room.json([_text(body.checkpoint.get("ts")), *body.values])
        except LeftOutError as error:
            return document | {"values": error.document()}
        sizes = {name: self._value_bytes(each) for name, each in body.values.items()}
        # Small values first, so that a large one does not take their room.
        for name in sorted(names, key=sizes.__getitem__):
            if channels is None or name in channels:
                try:
                    with self._room.showing(sizes[name]):
                        document["values"][name] = self._value(body.values[name])
                except LeftOutError as error:
                    document["omitted"][name] = error.omission
        for name in deltas - body.values.keys():
            if channels is None or name in channels:
                document["omitted"][name] = {"reason": "delta_channel", "bytes": 0}
        return document

    def _value(self, stored: StoredValue) -> Any:
        contents = self._opened(stored.segments)
        # A value may name the same segment very often, so each time is counted.
        for each in stored.segments:
            self._room.read(contents[each])
        return self._room.json(self._codec.loads(stored.kind, stored.join(contents), self._head))

    def _pending(self) -> Document:
        """Return the pending writes in the order in which a run applies them, and the interrupts among them."""
        found: list[_OrderedWrite] = []
        closed: list[Document] = []
        for item in self._tasks:
            writes = self._writes(item)
            if isinstance(writes, LeftOutError):
                closed.append({"task_id": items.task_id_of(item), **writes.document()})
            else:
                found += writes
        found.sort(key=lambda each: each[0])
        shown = [self._write(write, item) for _, write, item in found]
        writes_by_task = [(each["task_id"], each["channel"], value) for each, value in shown]
        interrupts = [self._interrupt(*each) for each in interrupts_in(writes_by_task)]
        return {
            "pending_writes": [*(each for each, _ in shown), *closed],
            # A closed write may hold interrupts, and answers to known ones.
            "interrupts": None if closed else interrupts,
        }

    def _writes(self, item: Item) -> list[_OrderedWrite] | LeftOutError:
        """Return a task's writes, or the error that says why they are not shown."""
        try:
            with self._room.showing(self._stored_bytes(item)):
                contents = self._opened(items.own_ids([item]))
                return [(*each, item) for each in content.writes_of(self._codec, item, contents)]
        except LeftOutError as error:
            return error

    def _write(self, write: content.Write, item: Item) -> tuple[Document, Any]:
        """Return a write's document and its value, or the error that says why the value is not shown."""
        document: Document = {"task_id": items.task_id_of(item), "channel": write.channel}
        try:
            with self._room.showing(len(write.data)):
                value = self._codec.loads(write.kind, write.data, item)
                return document | {"value": self._room.json(value)}, value
        except LeftOutError as error:
            return document | error.document(), error

    def _interrupt(self, task_id: str, interrupt: Any) -> Document:
        fields = interrupt.content if isinstance(interrupt, Stored) else None
        named = _text(fields.get("id")) if isinstance(fields, dict) else None
        document: Document = {"task_id": task_id, "id": named}
        if isinstance(interrupt, LeftOutError):
            return document | interrupt.document()
        try:
            with self._room.showing(0):
                return document | {"value": self._room.json(asked(interrupt))}
        except LeftOutError as error:
            return document | error.document()

    def _opened(self, ids: Iterable[bytes]) -> dict[bytes, bytes]:
        """Open segments. Index segments are open already."""
        return self._indexes | {
            each: self._codec.open(
                self._sealed[each], items.key(self._partition.pk, items.segment_sk(each)), items.DATA
            )
            for each in dict.fromkeys(expand(ids, self._indexes))
        }

    def _stored_bytes(self, item: Item, *names: str) -> int:
        """Return how many bytes are stored of some parts of an item, or of all. A shared segment is counted once."""
        parts = [part for name, part in items.parts_of(item) if not names or name in names]
        segments = {each for part in parts for each in expand(part.ids, self._indexes)}
        return sum(len(part.sealed) for part in parts) + self._segment_bytes(segments)

    def _value_bytes(self, stored: StoredValue) -> int:
        return inline_bytes([stored]) + self._segment_bytes(set(stored.segments))

    def _segment_bytes(self, ids: Iterable[bytes]) -> int:
        return sum(len(self._sealed[each]) for each in ids)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
