"""What a process remembers of what it stored or read: a bounded cache, never a source of truth.

A checkpoint's entry lets its child and its tasks' writes reuse segments without reading it back. Losing an entry costs
a read; a stale one is found out by the look at the thread's epoch that follows every commit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.checkpoint.dynamodb._format.segments import Chunk, StoredValue
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process


@dataclass(frozen=True)
class Entry:
    """How a stored checkpoint holds its values, as its child needs to know."""

    epoch: bytes
    versions: Mapping[str, Any]
    values: Mapping[str, StoredValue]
    chunks: Mapping[bytes, Chunk]
    # The ancestors that delta channels are rebuilt from, the oldest first; "" is the very first checkpoint.
    sources: Mapping[str, str]
    # When it counts as gone; None: never.
    ends_at: int | None = None
    # When the first of the ancestors expires that a delta channel is rebuilt from; None: never.
    history_expires_at: int | None = None
    # The plaintexts of the segments, where the entry was just read: what was reused may have to be rewritten.
    contents: Mapping[bytes, bytes] = field(default_factory=dict)

    def value_bytes(self, value: StoredValue) -> int:
        """How many bytes one of the values has, serialized."""
        sealed = sum(self.chunks[each].length for each in value.segments)
        return len(value.preamble) + sealed + len(value.tail)

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory that the entry takes."""
        inline = sum(len(value.tail) + 300 + 70 * len(value.segments) for value in self.values.values())
        return 1000 + inline + 100 * len(self.versions) + 150 * len(self.sources) + 300 * len(self.chunks)


@dataclass(frozen=True)
class ThreadEntry:
    """What a process knows of a thread: its epoch, the longest ttl in it, and until when its namespaces are entered."""

    epoch: bytes
    ttl_seconds: int | None
    namespaces: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory that the entry takes."""
        return 500 + 250 * len(self.namespaces)


class Memory:
    """Recently used entries of checkpoints and threads, up to a size; safe to use from several threads."""

    def __init__(self, bytes_max: int) -> None:
        """Take the bound on the estimated size of all entries."""
        self.is_shared: bool | None = None
        """Whether the table may hold another saver's threads; None until somebody has looked."""
        self._bytes_max = bytes_max
        start_in_every_process(self)

    def start(self) -> None:
        """Remember nothing; also after a fork, which may have come while another thread was changing the entries."""
        self._bytes = 0
        self._entries: OrderedDict[tuple[str, str] | str, Entry | ThreadEntry] = OrderedDict()
        self._lock = threading.Lock()

    def checkpoint(self, pk: str, checkpoint_id: str) -> Entry | None:
        """The entry of a checkpoint, if it is remembered."""
        entry = self._get((pk, checkpoint_id))
        return entry if isinstance(entry, Entry) else None

    def remember_checkpoint(self, pk: str, checkpoint_id: str, entry: Entry) -> None:
        """Keep a checkpoint's entry."""
        self._set((pk, checkpoint_id), entry)

    def thread(self, root: str) -> ThreadEntry | None:
        """The entry of a thread, if it is remembered."""
        entry = self._get(root)
        return entry if isinstance(entry, ThreadEntry) else None

    def remember_thread(self, root: str, epoch: bytes, ttl_seconds: int | None) -> ThreadEntry:
        """Keep a thread's epoch and ttl; what was known under others is forgotten."""
        entry = self.thread(root)
        if entry is None or (entry.epoch, entry.ttl_seconds) != (epoch, ttl_seconds):
            entry = ThreadEntry(epoch, ttl_seconds)
            self._set(root, entry)
        return entry

    def remember_namespace(
        self, root: str, known: ThreadEntry, namespace: str, expires_at: int | None
    ) -> None:
        """Keep that a thread's namespace is entered, and until when."""
        entry = self.remember_thread(root, known.epoch, known.ttl_seconds)
        self._set(root, replace(entry, namespaces={**entry.namespaces, namespace: expires_at}))

    def forget(self, key: tuple[str, str] | str) -> None:
        """Drop what is known of a checkpoint or a thread."""
        with self._lock:
            self._drop(key)

    def _get(self, key: tuple[str, str] | str) -> Entry | ThreadEntry | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def _set(self, key: tuple[str, str] | str, entry: Entry | ThreadEntry) -> None:
        with self._lock:
            self._drop(key)
            self._entries[key] = entry
            self._bytes += entry.size_bytes
            while self._bytes > self._bytes_max and self._entries:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: tuple[str, str] | str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size_bytes
