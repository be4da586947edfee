"""What a client remembers of a thread, as the memory of the one request that it sends it with."""

from __future__ import annotations

import sys
from typing import Any

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._runtime.memory import Memory, ThreadEntry
from langgraph.checkpoint.dynamodb.gateway import wire


def memory_of(shared: Memory, at: Partition, note: wire.ThreadNote | None) -> Memory:
    """Return a memory that has what the client knows, and of the service's own what it has found out of the table."""
    memory = Memory(sys.maxsize, shared.facts)
    if note is not None:
        known = memory.remember_thread(at.root, note.epoch, note.ttl_seconds)
        if note.registered:
            memory.remember_namespace(at.root, known, at.namespace, note.registered_until)
    return memory


def thread_of(note: wire.ThreadNote | None) -> ThreadEntry | None:
    """Return the thread that a client names."""
    return None if note is None else ThreadEntry(note.epoch, note.ttl_seconds)


def note_of(memory: Memory, at: Partition, thread: ThreadEntry | None) -> dict[str, Any] | None:
    """Return what the client has to know of a thread from now on."""
    if thread is None:
        return None
    note: dict[str, Any] = {"epoch": thread.epoch, "ttl_seconds": thread.ttl_seconds}
    known = memory.namespaces(at.root, thread.epoch)
    if at.namespace in known:
        note |= {"registered": True, "registered_until": known[at.namespace]}
    return note
