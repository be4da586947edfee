"""A thread of a table for moves within tables: it can be locked, read, compared, copied and deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError, CheckpointFormatError
from langgraph.checkpoint.dynamodb.locks import ThreadLock
from langgraph.checkpoint.dynamodb.migrate.record import Comparison, Record, Ref
from langgraph.checkpoint.dynamodb.migrate.table import TableEndpoint
from langgraph.checkpoint.dynamodb.protocol import Thread

# The lock of a process that died lasts this long. The next attempt waits for it.
LOCK_TTL_SECONDS = 20.0
LOCK_WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class StoredThread:
    """One thread of one table."""

    store: TableEndpoint
    thread_id: str
    if_damaged: str
    """The remedy if it cannot be read."""

    def __str__(self) -> str:
        """Name it in an error."""
        return f"thread {self.thread_id!r} of table {self.store.table_name}"

    def locked(self) -> ThreadLock:
        """Return its lock, to be entered. Runners that take the lock wait meanwhile, or are refused."""
        return self.store.saver.thread_lock(self.thread_id, ttl=LOCK_TTL_SECONDS, wait=LOCK_WAIT_SECONDS)

    def item(self) -> Thread | None:
        """Read its thread item, strongly consistent."""
        return self.store.thread(self.thread_id)

    def write_units(self) -> int:
        """Return how many write units it takes to write all of it, or to delete it."""
        return self.store.write_units(self.thread_id)

    def refs(self) -> set[Ref]:
        """Read the refs of its checkpoints."""
        with self._named():
            return set(self.store.refs(self.thread_id))

    def holds(self, part: StoredThread, comparison: Comparison) -> bool:
        """Tell whether it has every checkpoint of another thread, equal, with its writes."""
        refs = sorted(part.refs())
        return all(
            record is None or (other is not None and not comparison.differences(record, other))
            for record, other in zip(part._records(refs), self._records(refs), strict=True)
        )

    def copy_to(self, target: StoredThread) -> None:
        """Copy all of it to another thread, and leave in place what the other one has."""
        target.store.copy(self.store, self.thread_id, target.thread_id)

    def carry_entry_to(self, target: StoredThread) -> None:
        """Enter another thread in the directory as this one is, unless it is there."""
        target.store.carry_entry(self.store, self.thread_id, target.thread_id)

    def delete(self) -> None:
        """Delete it, with everything it ever stored."""
        self.store.saver.delete_thread(self.thread_id)

    def _records(self, refs: Iterable[Ref]) -> Iterator[Record | None]:
        """Read some of its checkpoints. Yield None for those that were never committed."""
        with self._named():
            yield from self.store.records(self.thread_id, refs)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Add the thread's name to errors about damage."""
        try:
            yield
        except (CheckpointCorruptionError, CheckpointFormatError) as error:
            msg = f"{self}: {error}. {self.if_damaged}"
            raise type(error)(msg) from error


def beside_each_other(*stores: TableEndpoint) -> Comparison:
    """Make stores of tables with one serializer keep values as stored. Return a comparison of their records."""
    if all(each.can_pass_through() for each in stores):
        for each in stores:
            each.keep_values()
    return Comparison(stores[0].dumps, stores[0].same, positions=True)
