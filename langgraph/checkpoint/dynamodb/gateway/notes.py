"""What a client remembers of a thread, as the memory of the one request that it sends it with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._runtime.memory import Memory, ThreadEntry
from langgraph.checkpoint.dynamodb.gateway import wire


def memory_of(shared: Memory, at: Partition, note: wire.ThreadNote | None) -> Memory:
    """A memory that has what the client knows, and of the service's own only whether the table is shared."""
    memory = Memory(sys.maxsize)
    memory.is_shared = shared.is_shared
    if note is not None:
        known = memory.remember_thread(at.root, note.epoch, note.ttl_seconds)
        if note.entered:
            memory.remember_namespace(at.root, known, at.namespace, note.entered_until)
    return memory


def note_of(memory: Memory, at: Partition) -> dict[str, Any] | None:
    """What the client is to know of the thread from now on."""
    thread = memory.thread(at.root)
    return None if thread is None else _note(thread, at.namespace)


def _note(thread: ThreadEntry, namespace: str) -> dict[str, Any]:
    note = {"epoch": thread.epoch, "ttl_seconds": thread.ttl_seconds}
    entered: Mapping[str, int | None] = thread.namespaces
    if namespace in entered:
        note |= {"entered": True, "entered_until": entered[namespace]}
    return note
