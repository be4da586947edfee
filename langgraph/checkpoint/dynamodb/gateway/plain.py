"""Checkpoints as plain JSON: what LangGraph's serializer wrote, read without making an object or running code.

Whoever may write to a thread chooses what is read here. So everything that is decoded and answered is counted first,
and what does not fit is named instead of shown. What a client has encrypted stays closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple
from typing_extensions import override

from langgraph.checkpoint.dynamodb._format.content import delta_counters
from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer
from langgraph.checkpoint.dynamodb._format.plain import as_json, asked, interrupt_fields, interrupts_in
from langgraph.checkpoint.dynamodb.gateway.documents import place_document
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.media import JSON
from langgraph.checkpoint.dynamodb.gateway.opaque import Typed, TypedMetadata
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.size_limits import check_json, count_msgpack

Document: TypeAlias = dict[str, Any]
# A value is counted when it is decoded and encoded, and its objects when they are copied out of each other.
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
        except (ProblemError, ValueError, RecursionError) as error:
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
            # LangGraph's encrypting serializer names its output this way.
            raise LeftOutError("sealed", len(raw))
        count = {"msgpack": self._room.read_msgpack, "json": self._room.read_json}
        count.get(kind, self._room.read)(raw)
        return super().loads_typed(data)


def plain_document(
    found: CheckpointTuple, channels: Collection[str] | None, limits: Limits, bytes_max: int
) -> Document:
    """Return a checkpoint as plain JSON, with the values of some channels, or of all.

    Args:
        found: The checkpoint, with opaque values.
        channels: The channels whose values are wanted; `None` for all.
        limits: How deep the document may be, and how many values it may have.
        bytes_max: How many bytes of JSON all values may take.
    """
    return _PlainCheckpoint(found, Room(limits, bytes_max)).document(channels)


class _PlainCheckpoint:
    def __init__(self, found: CheckpointTuple, room: Room) -> None:
        self._found = found
        self._room = room
        self._serde = _CountingSerializer(room)

    def document(self, channels: Collection[str] | None) -> Document:
        return {**place_document(self._found), **self._state(channels), **self._pending()}

    def _state(self, channels: Collection[str] | None) -> Document:
        values: dict[str, Typed] = self._found.checkpoint["channel_values"]
        document: Document = {"ts": None, "metadata": self._metadata(), "values": {}, "omitted": {}}
        try:
            with self._room.showing(0):
                # Names take room, too.
                document["ts"], *names = self._room.json([_text(self._found.checkpoint.get("ts")), *values])
        except LeftOutError as error:
            return document | {"values": error.document()}
        # Small values first, so that a large one does not take their room.
        for name in sorted(names, key=lambda each: len(values[each].data)):
            if channels is None or name in channels:
                try:
                    document["values"][name] = self._read(values[name])[1]
                except LeftOutError as error:
                    document["omitted"][name] = error.omission
        for name in delta_counters(self._found.metadata) - values.keys():
            if channels is None or name in channels:
                document["omitted"][name] = {"reason": "delta_channel", "bytes": 0}
        return document

    def _metadata(self) -> Document:
        metadata = self._found.metadata
        try:
            if isinstance(metadata, TypedMetadata) and not metadata.is_readable:
                metadata, _ = self._read(metadata.typed)
            if not isinstance(metadata, dict):
                raise LeftOutError("unreadable", 0)
            with self._room.showing(0):
                found: Document = self._room.json(metadata)
                return found
        except LeftOutError as error:
            return error.document()

    def _read(self, value: Typed) -> tuple[Any, Any]:
        """Return a value as inert data, and as JSON."""
        with self._room.showing(len(value.data)):
            data = self._serde.loads_typed((value.type, value.data))
            return data, self._room.json(data)

    def _pending(self) -> Document:
        """Return the pending writes in the order in which a run applies them, and the interrupts among them."""
        shown = [self._write(*each) for each in self._found.pending_writes or ()]
        writes_by_task = [(each["task_id"], each["channel"], value) for each, value in shown]
        return {
            "pending_writes": [each for each, _ in shown],
            "interrupts": [self._interrupt(*each) for each in interrupts_in(writes_by_task)],
        }

    def _write(self, task_id: str, channel: str, value: Typed) -> tuple[Document, Any]:
        """Return a write's document and its value, or the error that says why the value is not shown."""
        document: Document = {"task_id": task_id, "channel": channel}
        try:
            data, shown = self._read(value)
            return document | {"value": shown}, data
        except LeftOutError as error:
            return document | error.document(), error

    def _interrupt(self, task_id: str, interrupt: Any) -> Document:
        document: Document = {"task_id": task_id, "id": _text(interrupt_fields(interrupt).get("id"))}
        if isinstance(interrupt, LeftOutError):
            return document | interrupt.document()
        try:
            with self._room.showing(0):
                return document | {"value": self._room.json(asked(interrupt))}
        except LeftOutError as error:
            return document | error.document()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
