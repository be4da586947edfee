"""How what is composed reaches the table: directly, or through somebody who has access to it.

Writing is composing, which needs the serializer and the key, and committing, which needs the table. This is what the
one asks of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._operations.commit import Committed, Head, commit
from langgraph.checkpoint.dynamodb._operations.commit_writes import Outcome, TaskWrites, commit_writes
from langgraph.checkpoint.dynamodb._operations.get import read_entry
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import History
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op


class Access(Protocol):
    """What a writer asks of the table, and what it composes with."""

    @property
    def table(self) -> Table:
        """Options, clock, randomness and memory."""

    @property
    def codec(self) -> Codec:
        """What values are serialized and sealed with."""

    def entry(self, at: Partition, checkpoint_id: str) -> Op[Entry | None]:
        """What a child needs to know of a stored checkpoint, with the plaintexts of its segments."""

    def newest_entry(self, at: Partition) -> Op[Entry | None]:
        """The same of the newest checkpoint, which may be remembered."""

    def stored(self, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
        """Which of these checkpoints are in the table."""

    def look_for_other_savers(self, at: Partition) -> Op[None]:
        """Look whether a thread that is not known is another saver's."""

    def commit(
        self,
        head: Head,
        thread: ThreadEntry | None,
        started_at: float,
        store_writes: Callable[[], Op[Any]] | None,
    ) -> Op[Committed]:
        """Store a head and what it names; the arguments are those of `commit`."""

    def commit_writes(self, writes: TaskWrites, thread: ThreadEntry | None) -> Op[Outcome]:
        """Store parts of a task's writes and what they name; the arguments are those of `commit_writes`."""


@dataclass(frozen=True)
class DirectAccess:
    """Access to the table itself."""

    table: Table
    codec: Codec

    def entry(self, at: Partition, checkpoint_id: str) -> Op[Entry | None]:
        """Read the checkpoint."""
        return (yield from read_entry(self.table, self.codec, at, checkpoint_id))

    def newest_entry(self, at: Partition) -> Op[Entry | None]:
        """Find the checkpoint, and read it where it is not remembered."""
        groups = yield from History(self.table, at).page()
        if not groups:
            return None
        entry = self.table.memory.checkpoint(at.pk, groups[0].checkpoint_id)
        return entry or (yield from self.entry(at, groups[0].checkpoint_id))

    def stored(self, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
        """Read the heads."""
        keys = {(at.pk, items.checkpoint_prefix(each)): (at, each) for at, each in wanted}
        found = yield from self.table.batch_get([items.key(*each) for each in keys], consistent=True)
        return {keys[item[PARTITION_KEY]["S"], item[SORT_KEY]["S"]] for item in found}

    def look_for_other_savers(self, at: Partition) -> Op[None]:
        """Look into the table."""
        yield from look_for_other_savers(self.table, at)

    def commit(
        self,
        head: Head,
        thread: ThreadEntry | None,
        started_at: float,
        store_writes: Callable[[], Op[Any]] | None,
    ) -> Op[Committed]:
        """Write to the table."""
        return (yield from commit(self.table, head, thread, started_at, store_writes))

    def commit_writes(self, writes: TaskWrites, thread: ThreadEntry | None) -> Op[Outcome]:
        """Write to the table."""
        return (yield from commit_writes(self.table, self.codec, writes, thread))
