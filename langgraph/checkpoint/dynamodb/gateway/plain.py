"""Checkpoints as plain JSON: what LangGraph's serializer wrote, read without making an object or running code.

Whoever may write to a thread chooses what is read here. So everything that is decoded and answered is counted first,
and what does not fit is named instead of shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format.content import delta_counters
from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer
from langgraph.checkpoint.dynamodb._format.plain import as_json, asked, interrupt_fields, interrupts_in
from langgraph.checkpoint.dynamodb.gateway.media import JSON
from langgraph.checkpoint.dynamodb.gateway.opaque import OpaqueMetadata, OpaqueValue, place_document
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.size_limits import VALUES_MAX, check_json, count_msgpack

Document: TypeAlias = dict[str, Any]
_TOO_LARGE = 413
_LOOKING = LookingSerializer()


def plain_document(found: CheckpointTuple, channels: Collection[str] | None, bytes_max: int) -> Document:
    """Return a checkpoint as plain JSON, with the values of some channels, or of all.

    Args:
        found: The checkpoint, with opaque values.
        channels: The channels whose values are wanted; `None` for all.
        bytes_max: How many bytes of JSON all values may take.
    """
    return _PlainCheckpoint(found, bytes_max).document(channels)


class _Omitted(dict[str, Any]):
    """The document that is shown instead of a value: why it is not shown, and how many bytes are stored of it."""

    def __init__(self, reason: str, stored_bytes: int) -> None:
        super().__init__(omitted={"reason": reason, "bytes": stored_bytes})


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
        # Names take room, too.
        _, names = self._shown([_text(self._found.checkpoint.get("ts")), *values])
        if isinstance(names, _Omitted):
            return document | {"values": names}
        document["ts"] = names[0]
        # Small values first, so that a large one does not take their room.
        for name in sorted(values, key=lambda each: len(values[each].data)):
            if channels is None or name in channels:
                _, shown = self._shown(values[name])
                if isinstance(shown, _Omitted):
                    document["omitted"][name] = shown["omitted"]
                else:
                    document["values"][name] = shown
        for name in delta_counters(self._found.metadata) - values.keys():
            if channels is None or name in channels:
                document["omitted"][name] = {"reason": "delta_channel", "bytes": 0}
        return document

    def _metadata(self) -> Any:
        metadata: Any = self._found.metadata
        is_closed = isinstance(metadata, OpaqueMetadata) and not metadata.is_readable
        data, shown = self._shown(metadata.typed if is_closed else metadata)
        return shown if isinstance(data, dict) else _Omitted("unreadable", 0)

    def _pending(self) -> Document:
        """Return the pending writes in the order in which a run applies them, and the interrupts among them."""
        writes = [
            (task_id, channel, *self._shown(value))
            for task_id, channel, value in self._found.pending_writes or ()
        ]
        interrupts = interrupts_in((task_id, channel, data) for task_id, channel, data, _ in writes)
        return {
            "pending_writes": [
                {"task_id": task_id, "channel": channel, **_as_value(shown)}
                for task_id, channel, _, shown in writes
            ],
            "interrupts": [self._interrupt(*each) for each in interrupts],
        }

    def _interrupt(self, task_id: str, interrupt: Any) -> Document:
        _, shown = self._shown(asked(interrupt))
        return {
            "task_id": task_id,
            "id": _text(interrupt_fields(interrupt).get("id")),
            **_as_value(shown),
        }

    def _shown(self, value: Any) -> tuple[Any, Any]:
        """Return inert data, and its JSON; or twice what is shown instead. An opaque value is read first."""
        if isinstance(value, _Omitted):
            return value, value
        stored_bytes = len(value.data) if isinstance(value, OpaqueValue) else 0
        try:
            data = self._read(value) if isinstance(value, OpaqueValue) else value
            found = as_json(data)
            size = len(JSON.encode(found))
            _check_room(size, self._bytes)
        except ProblemError as error:
            omitted = _Omitted("too_large" if error.status == _TOO_LARGE else "unreadable", stored_bytes)
        except (ValueError, RecursionError):
            omitted = _Omitted("unreadable", stored_bytes)
        else:
            self._bytes -= size
            return data, found
        return omitted, omitted

    def _read(self, value: OpaqueValue) -> Any:
        _check_room(len(value.data), self._bytes)
        # A byte can become a list of 56 bytes in memory.
        if value.type == "msgpack":
            self._values -= count_msgpack(value.data, self._values)
        elif value.type == "json":
            self._values -= check_json(value.data, values_max=self._values)
        return _LOOKING.loads_typed(value)


def _check_room(size_bytes: int, left_bytes: int) -> None:
    if size_bytes > left_bytes:
        raise ProblemError(_TOO_LARGE, "the value does not fit into one answer")


def _as_value(shown: Any) -> Document:
    return shown if isinstance(shown, _Omitted) else {"value": shown}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
