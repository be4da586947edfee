"""The interface between composing and committing: `LocalBackend` reaches the table directly.

A write is composed, which needs the serializer and the key, and then committed, which needs the table. In a client of
the gateway the two run in different processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, Partition
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head, commit
from langgraph.checkpoint.dynamodb._operations.commit_writes import Outcome, TaskWrites, commit_writes
from langgraph.checkpoint.dynamodb._operations.directory_table import (
    EntryPage,
    Newest,
    ThreadPosition,
    describe,
    look_up,
    read_entries,
)
from langgraph.checkpoint.dynamodb._operations.get import read_entry
from langgraph.checkpoint.dynamodb._operations.reads import NamespaceReader
from langgraph.checkpoint.dynamodb._runtime.cache import CachedCheckpoint, CachedThread
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage, Storage


class Backend(Protocol):
    """Commits composed heads and writes, and reads the checkpoints that they are composed from."""

    @property
    def storage(self) -> Storage:
        """The codec, cache and clock that writes are composed with."""

    def read_entry(self, partition: Partition, checkpoint_id: str) -> Op[CachedCheckpoint | None]:
        """Read a stored checkpoint and return its cache entry, with the plaintexts of its segments."""

    def newest_entry(self, partition: Partition) -> Op[CachedCheckpoint | None]:
        """Return the cache entry of the newest checkpoint, reading the checkpoint if it is not cached."""

    def stored(self, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
        """Find out which of some checkpoints are in the table."""

    def commit(
        self,
        head: Head,
        thread: CachedThread | None,
        started_at: float,
        store_writes: Callable[[], Op[Any]] | None,
    ) -> Op[Committed]:
        """Store a head and the segments that it names; the arguments are those of `commit`."""

    def commit_writes(self, writes: TaskWrites, thread: CachedThread | None) -> Op[Outcome]:
        """Store parts of a task's writes and the segments that they name, as the function `commit_writes` does."""

    def describe(self, root: Partition, entry: Item, old: Item | None) -> Op[Item | None]:
        """Enter a thread in the directory, or replace its entry, as the function `describe` does."""

    def entries(
        self, owner: str | None, since: int, before: ThreadPosition | None, count: int
    ) -> Op[EntryPage]:
        """Read entries of the directory, as the function `read_entries` does."""

    def newest(self, thread_ids: Sequence[str]) -> Op[list[Newest]]:
        """Read the status and step of the newest checkpoint of each thread."""


@dataclass(frozen=True)
class LocalBackend:
    """The backend of a process with access to the table."""

    storage: LocalStorage

    def read_entry(self, partition: Partition, checkpoint_id: str) -> Op[CachedCheckpoint | None]:
        """Read a stored checkpoint from the table and return its cache entry."""
        return read_entry(self.storage, partition, checkpoint_id)

    def newest_entry(self, partition: Partition) -> Op[CachedCheckpoint | None]:
        """Find the newest checkpoint in the table, and read it if it is not cached."""
        found = yield from NamespaceReader(self.storage, partition).page()
        if not found:
            return None
        entry = self.storage.cache.checkpoint(partition.pk, found[0].checkpoint_id)
        return entry or (yield from self.read_entry(partition, found[0].checkpoint_id))

    def stored(self, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
        """Read the heads of some checkpoints, and return which of them exist."""
        keys = {
            (partition.pk, items.checkpoint_prefix(each)): (partition, each) for partition, each in wanted
        }
        found = yield from self.storage.table.batch_get([items.key(*each) for each in keys], consistent=True)
        return {keys[item[PARTITION_KEY]["S"], item[SORT_KEY]["S"]] for item in found}

    def commit(
        self,
        head: Head,
        thread: CachedThread | None,
        started_at: float,
        store_writes: Callable[[], Op[Any]] | None,
    ) -> Op[Committed]:
        """Store a head and the segments that it names in the table."""
        return commit(self.storage, head, thread, started_at, store_writes)

    def commit_writes(self, writes: TaskWrites, thread: CachedThread | None) -> Op[Outcome]:
        """Store parts of a task's writes and the segments that they name in the table."""
        return commit_writes(self.storage, writes, thread)

    def describe(self, root: Partition, entry: Item, old: Item | None) -> Op[Item | None]:
        """Enter a thread in the table's directory, or replace its entry."""
        return describe(self.storage, root, entry, old)

    def entries(
        self, owner: str | None, since: int, before: ThreadPosition | None, count: int
    ) -> Op[EntryPage]:
        """Read entries from the table's indexes."""
        return read_entries(self.storage, owner, since, before, count)

    def newest(self, thread_ids: Sequence[str]) -> Op[list[Newest]]:
        """Read the newest checkpoint of each thread from the table, side by side."""
        return gather([look_up(self.storage, each) for each in thread_ids])
