"""What a process remembers of what it stored or read: a bounded cache, never a source of truth.

A checkpoint's entry lets its child and its tasks' writes reuse segments without reading it back, and what a segment
holds never changes, so it need not be read again. Losing either costs a read; a stale entry is found out by the look at
the thread's epoch that follows every commit. Which checkpoints there are is never remembered: that the table says.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint.dynamodb._format.segments import Chunk, StoredValue
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process
from langgraph.checkpoint.dynamodb.protocol import is_reusable


@dataclass(frozen=True)
class Lifetime:
    """How long a checkpoint is there, in epoch seconds; None is for ever."""

    # When it counts as gone.
    ends_at: int | None = None
    # When the first of the ancestors expires that a delta channel is rebuilt from, or itself.
    history_expires_at: int | None = None


@dataclass(frozen=True)
class Entry:
    """How a stored checkpoint holds its values, as its child needs to know."""

    epoch: bytes
    versions: Mapping[str, Any]
    values: Mapping[str, StoredValue]
    chunks: Mapping[bytes, Chunk]
    # The ancestors that delta channels are rebuilt from, the oldest first; "" is the very first checkpoint.
    sources: Mapping[str, str]
    # The thread's, which the epoch implies.
    ttl_seconds: int | None = None
    lifetime: Lifetime = Lifetime()
    # Whether it was seen while its thread had this epoch; then nothing can take its segments as long as it is there.
    counts: bool = True
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
    """What a process knows of a thread: its epoch, its ttl, and until when its namespaces are registered."""

    epoch: bytes
    ttl_seconds: int | None
    namespaces: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory that the entry takes."""
        return 500 + 250 * len(self.namespaces)


class StoredSegment(NamedTuple):
    """A segment as it was stored or read: its bytes as they lie in the table, and what is known of its content.

    It stays sealed, which takes less memory, and leaves less plaintext in it where the saver encrypts.
    """

    sealed: bytes
    chunk: Chunk

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory that it takes."""
        return 700 + len(self.sealed)


_SegmentKey: TypeAlias = tuple[str, bytes, bytes]
"""A partition, the epoch under which the segment's expiry was known, and the segment's id."""
_Key: TypeAlias = tuple[str, str] | str | _SegmentKey


@dataclass
class Facts:
    """What a process has found out of a table once and for all."""

    is_shared: bool | None = None
    """Whether the table may hold another saver's threads; `None` until somebody has looked."""
    has_told_of_ttl: bool = False
    """Whether the log says that a thread has another ttl than the saver."""


class Memory:
    """Recently used segments and entries of checkpoints and threads, up to a size; safe to use from several threads."""

    def __init__(self, bytes_max: int, facts: Facts | None = None) -> None:
        """Take the bound on the estimated size of all entries, and what is known of the table."""
        self.facts = facts or Facts()
        self._bytes_max = bytes_max
        start_in_every_process(self)

    def start(self) -> None:
        """Remember nothing; also after a fork, which may have come while another thread was changing the entries."""
        self._bytes = 0
        self._entries: OrderedDict[_Key, Entry | ThreadEntry | StoredSegment] = OrderedDict()
        self._lock = threading.Lock()

    def checkpoint(self, pk: str, checkpoint_id: str) -> Entry | None:
        """The entry of a checkpoint, if it is remembered."""
        entry = self._get([(pk, checkpoint_id)])[0]
        return entry if isinstance(entry, Entry) else None

    def remember_checkpoint(self, pk: str, checkpoint_id: str, entry: Entry) -> None:
        """Keep a checkpoint's entry."""
        self._set({(pk, checkpoint_id): entry})

    def thread(self, root: str) -> ThreadEntry | None:
        """The entry of a thread, if it is remembered."""
        entry = self._get([root])[0]
        return entry if isinstance(entry, ThreadEntry) else None

    def remember_thread(self, root: str, epoch: bytes, ttl_seconds: int | None) -> ThreadEntry:
        """Keep a thread's epoch and ttl; what was known under others is forgotten."""
        entry = self.thread(root)
        if entry is None or not is_reusable(entry.epoch, epoch):
            entry = ThreadEntry(epoch, ttl_seconds)
            self._set({root: entry})
        return entry

    def namespaces(self, root: str, epoch: bytes) -> Mapping[str, int | None]:
        """Return until when a thread's namespaces are registered, as far as it is known under its epoch."""
        known = self.thread(root)
        return known.namespaces if known is not None and is_reusable(known.epoch, epoch) else {}

    def remember_namespace(
        self, root: str, known: ThreadEntry, namespace: str, expires_at: int | None
    ) -> None:
        """Keep that a thread's namespace is registered, and until when."""
        entry = self.remember_thread(root, known.epoch, known.ttl_seconds)
        self._set({root: replace(entry, namespaces={**entry.namespaces, namespace: expires_at})})

    def segments(self, pk: str, epoch: bytes, ids: Iterable[bytes]) -> dict[bytes, StoredSegment]:
        """Those of a partition's segments that are remembered from a time at which the thread had this epoch.

        A deletion may shorten expiries, and it ends the epoch first; so what is known under the thread's epoch is true.
        """
        wanted = list(ids)
        found = self._get([(pk, epoch, each) for each in wanted])
        return {
            each: entry for each, entry in zip(wanted, found, strict=True) if isinstance(entry, StoredSegment)
        }

    def remember_segments(self, pk: str, epoch: bytes, segments: Mapping[bytes, StoredSegment]) -> None:
        """Keep segments as they were stored, or read, while the thread had this epoch."""
        self._set({(pk, epoch, each): segment for each, segment in segments.items()})

    def forget(self, key: _Key) -> None:
        """Drop what is known of a checkpoint or a thread."""
        with self._lock:
            self._drop(key)

    def forget_all(self, beginning: str = "") -> None:
        """Drop all that is known of partitions whose keys begin so."""
        with self._lock:
            keys = [(key, key if isinstance(key, str) else key[0]) for key in self._entries]
            for key, pk in keys:
                if pk.startswith(beginning):
                    self._drop(key)

    def _get(self, keys: Iterable[_Key]) -> list[Entry | ThreadEntry | StoredSegment | None]:
        found = []
        with self._lock:
            for key in keys:
                found.append(self._entries.get(key))
                if found[-1] is not None:
                    self._entries.move_to_end(key)
        return found

    def _set(self, entries: Mapping[_Key, Entry | ThreadEntry | StoredSegment]) -> None:
        with self._lock:
            for key, entry in entries.items():
                self._drop(key)
                self._entries[key] = entry
                self._bytes += entry.size_bytes
            while self._bytes > self._bytes_max and self._entries:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size_bytes
