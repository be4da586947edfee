"""Checkpoints as plain JSON: what LangGraph's serializer wrote, read without making an object or running code.

Whoever may write to a thread chooses what is read here. So everything that is decoded and answered is counted first,
and what does not fit is named instead of shown. What a client has encrypted stays closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format.content import delta_counters
from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer
from langgraph.checkpoint.dynamodb._format.plain import as_json, asked, interrupt_fields, interrupts_in
from langgraph.checkpoint.dynamodb.gateway.documents import place_document
from langgraph.checkpoint.dynamodb.gateway.media import JSON
from langgraph.checkpoint.dynamodb.gateway.opaque import OpaqueMetadata, OpaqueValue
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.size_limits import VALUES_MAX, check_json, count_msgpack

Document: TypeAlias = dict[str, Any]
_TOO_LARGE = 413
_LOOKING = LookingSerializer()


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


def plain_document(found: CheckpointTuple, channels: Collection[str] | None, bytes_max: int) -> Document:
    """Return a checkpoint as plain JSON, with the values of some channels, or of all.

    Args:
        found: The checkpoint, with opaque values.
        channels: The channels whose values are wanted; `None` for all.
        bytes_max: How many bytes of JSON all values may take.
    """
    return _PlainCheckpoint(found, bytes_max).document(channels)


class _PlainCheckpoint:
    def __init__(self, found: CheckpointTuple, bytes_max: int) -> None:
        self._found = found
        # What is left for this answer.
        self._bytes = bytes_max
        self._values = VALUES_MAX

    def document(self, channels: Collection[str] | None) -> Document:
        return {**place_document(self._found), **self._state(channels), **self._pending()}

    def _state(self, channels: Collection[str] | None) -> Document:
        values: dict[str, OpaqueValue] = self._found.checkpoint["channel_values"]
        document: Document = {"ts": None, "metadata": self._metadata(), "values": {}, "omitted": {}}
        try:
            with _showing(0):
                # Names take room, too.
                document["ts"], *names = self._json([_text(self._found.checkpoint.get("ts")), *values])
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
            if isinstance(metadata, OpaqueMetadata) and not metadata.is_readable:
                metadata, _ = self._read(metadata.typed)
            if not isinstance(metadata, dict):
                raise LeftOutError("unreadable", 0)
            with _showing(0):
                found: Document = self._json(metadata)
                return found
        except LeftOutError as error:
            return error.document()

    def _read(self, value: OpaqueValue) -> tuple[Any, Any]:
        """Return a value as inert data, and as JSON."""
        kind, raw = value.type, value.data
        if "+" in kind:
            # LangGraph's encrypting serializer names its output this way.
            raise LeftOutError("sealed", len(raw))
        with _showing(len(raw)):
            if len(raw) > self._bytes:
                raise ProblemError(_TOO_LARGE, "the value does not fit into one answer")
            # A byte can become a list of 56 bytes in memory.
            if kind == "msgpack":
                self._values -= count_msgpack(raw, self._values)
            elif kind == "json":
                self._values -= check_json(raw, values_max=self._values)
            data = _LOOKING.loads_typed((kind, raw))
            return data, self._json(data)

    def _json(self, value: Any) -> Any:
        """Return a value as JSON, and count its bytes in the answer."""
        found = as_json(value)
        size = len(JSON.encode(found))
        if size > self._bytes:
            raise ProblemError(_TOO_LARGE, "the value does not fit into one answer")
        self._bytes -= size
        return found

    def _pending(self) -> Document:
        """Return the pending writes in the order in which a run applies them, and the interrupts among them."""
        shown = [self._write(*each) for each in self._found.pending_writes or ()]
        writes_by_task = [(each["task_id"], each["channel"], value) for each, value in shown]
        return {
            "pending_writes": [each for each, _ in shown],
            "interrupts": [self._interrupt(*each) for each in interrupts_in(writes_by_task)],
        }

    def _write(self, task_id: str, channel: str, value: OpaqueValue) -> tuple[Document, Any]:
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
            with _showing(0):
                return document | {"value": self._json(asked(interrupt))}
        except LeftOutError as error:
            return document | error.document()


@contextmanager
def _showing(stored_bytes: int) -> Iterator[None]:
    """Show a value of so many stored bytes in the block, or raise an error that says why not.

    Raises:
        LeftOutError: The value is not shown.
    """
    try:
        yield
    except ProblemError as error:
        reason = "too_large" if error.status == _TOO_LARGE else "unreadable"
        raise LeftOutError(reason, stored_bytes) from error
    except (ValueError, RecursionError) as error:
        raise LeftOutError("unreadable", stored_bytes) from error


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
