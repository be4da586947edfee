"""Values as JSON, and the interrupts of tasks: for tools that read a checkpoint without its graph."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite
from langgraph.checkpoint.serde.types import INTERRUPT

from .inert import Stored


def as_json(value: Any) -> Any:
    """Return a value in JSON types: messages and other objects by their fields, bytes in base64."""
    if isinstance(value, Stored):
        content = as_json(value.content)
        if value.is_message or value.is_plain:
            return content
        return {"type": value.kind, "value": content}
    if isinstance(value, Mapping):
        return {key: as_json(each) for key, each in labelled(value).items()}
    if isinstance(value, (bytes, bytearray)):
        return {"type": "bytes", "base64": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(each) for each in value]
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if value is None or is_number or isinstance(value, str) else repr(value)


def labelled(entries: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mapping's entries by a text label for each: its key, as text if it is not."""
    found = {key: each for key, each in entries.items() if isinstance(key, str)}
    for key, each in entries.items():
        if not isinstance(key, str):
            label = str(key)
            while label in found:
                label += "'"
            found[label] = each
    return found


def interrupts_in(writes: Iterable[PendingWrite]) -> list[tuple[str, Any]]:
    """Return the open interrupts, each with its task. Those of tasks that have continued since are left out."""
    writes = list(writes)
    done = {task for task, channel, _ in writes if channel not in WRITES_IDX_MAP}
    return [
        (task, each)
        for task, channel, value in writes
        if channel == INTERRUPT and task not in done
        for each in (value if isinstance(value, (list, tuple)) else [value])
    ]


def interrupt_fields(interrupt: Any) -> Mapping[str, Any]:
    """Return the fields of an interrupt: Python stores an object, and JavaScript a mapping."""
    content = interrupt.content if isinstance(interrupt, Stored) else interrupt
    return content if isinstance(content, Mapping) and "value" in content else {"value": interrupt}


def asked(interrupt: Any) -> Any:
    """Return the value of an interrupt, without LangGraph's wrapping."""
    return interrupt_fields(interrupt)["value"]
