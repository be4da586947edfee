"""Restoration of one thread from a restored table: complete, and never mixed with the thread in use.

The thread in use is copied to another id before it is deleted. No step needs to know how far an earlier attempt came:
each looks at what the two threads and the kept copy hold. An attempt that died left one of these:

    the thread as it was         and none, a part or all of it as the kept copy
    less of it, or nothing       and all of it as the kept copy
    a part of the restored one   which holds nothing that the restored table has not

So checkpoints that are in the restored table need not be kept, and those that the kept copy has are not copied again.
Whatever remains may be deleted before the restored thread is copied, its newest checkpoint first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerInputError,
    CheckpointNotFoundError,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb.migrate.stored_thread import StoredThread, beside_each_other
from langgraph.checkpoint.dynamodb.migrate.table import TableEndpoint

_NOT_KEPT = (
    "It cannot be kept as it is: restore beside it, under another id; or delete it first, since point-in-time recovery"
    " has it still"
)


@dataclass(frozen=True)
class Prospect:
    """The plan of a restoration."""

    checkpoints: int
    """How many checkpoints the restored table has of the thread."""
    present: int
    """How many checkpoints the table in use has under the id that it is restored to."""
    is_restored: bool
    """Whether both are the same already."""
    kept_as: str | None
    """The id under which the thread in use is kept. None if the restored table has all of it."""


class Restoration:
    """The restoration of one thread."""

    def __init__(
        self,
        target: TableEndpoint,
        restored_table: str,
        thread_id: str,
        *,
        as_id: str | None = None,
        keep_as: str | None = None,
    ) -> None:
        """Define the restoration. No request is made yet.

        Args:
            target: The table in use.
            restored_table: Name or ARN of the table that was restored from it, in the same account and region.
            thread_id: The thread.
            as_id: Another id for the restored thread, which leaves the one in use alone; None restores it in its place.
            keep_as: The id under which the thread in use is kept; None derives one from the names of the thread and of
                the restored table.

        Raises:
            CheckpointerInputError: The names contradict each other.
        """
        if restored_table == target.table_name:
            msg = f"{restored_table!r} is the table in use; give the one that was restored from it"
            raise CheckpointerInputError(msg)
        if as_id is not None and keep_as is not None:
            msg = (
                "keep_as has no effect with as_id, which leaves the thread in use alone; give one of the two"
            )
            raise CheckpointerInputError(msg)
        source = target.beside(restored_table)
        self._comparison = beside_each_other(target, source)
        kept_id = f"{thread_id}.before-{restored_table.rpartition('/')[2]}" if keep_as is None else keep_as
        if kept_id == thread_id:
            msg = f"{kept_id!r} is the thread itself; give another id to keep it under"
            raise CheckpointerInputError(msg)
        self._beside = as_id is not None
        self._source = StoredThread(source, thread_id, "Restore the table to an earlier point in time")
        self._target = StoredThread(target, thread_id if as_id is None else as_id, _NOT_KEPT)
        self._kept = StoredThread(target, kept_id, "Keep what is there under another id")

    def look(self) -> Prospect:
        """Return what `run` would do. This reads all threads and changes none.

        Raises:
            CheckpointNotFoundError: The restored table has no such thread.
            CheckpointCorruptionError: One of the threads is damaged; the message says which.
            CheckpointerInputError: The id to restore it as, or to keep it as, belongs to another conversation.
        """
        wanted, present = self._source.refs(), self._target.refs()
        if not wanted:
            msg = (
                f"table {self._source.store.table_name} has no thread {self._source.thread_id!r}; check its id, and"
                " the point in time that the table was restored to"
            )
            raise CheckpointNotFoundError(msg)
        is_in_source = self._holds(self._source, self._target)
        is_restored = is_in_source and self._holds(self._target, self._source)
        kept_as = None
        if not is_in_source:
            if self._beside:
                raise CheckpointerInputError(_taken(self._target))
            if not self._holds(self._kept, self._target) and not self._holds(self._target, self._kept):
                raise CheckpointerInputError(_taken(self._kept))
            kept_as = self._kept.thread_id
        return Prospect(len(wanted), len(present), is_restored, kept_as)

    def run(self) -> Prospect:
        """Restore the thread, or continue what an earlier attempt began.

        Its lock is held meanwhile, so runners that take the lock wait or are refused. Stop those that do not.

        Returns:
            What there was to do, with the id under which the thread in use is kept, even by an earlier attempt.

        Raises:
            ThreadBusyError: A runner has the thread, or continued it meanwhile without the lock.
            CheckpointerError: Any error of `look`.
        """
        with self._target.locked():
            prospect = self.look()
            if prospect.is_restored:
                return prospect
            if prospect.kept_as is not None:
                self._keep()
            self._target.delete()
            self._source.copy_to(self._target)
            if not self._holds(self._source, self._target) or not self._holds(self._target, self._source):
                raise ThreadBusyError(_went_on(self._target))
        has_kept = not self._beside and self._kept.refs()
        return replace(prospect, kept_as=self._kept.thread_id if has_kept else None)

    def _keep(self) -> None:
        """Copy the thread in use, unless it was copied already."""
        if self._holds(self._kept, self._target):
            return
        self._target.copy_to(self._kept)
        if not self._holds(self._kept, self._target):
            raise ThreadBusyError(_went_on(self._target))

    def _holds(self, whole: StoredThread, part: StoredThread) -> bool:
        return whole.holds(part, self._comparison)


def _taken(thread: StoredThread) -> str:
    return f"{thread} is another conversation, which would be mixed with this one; nothing was changed. Give another id"


def _went_on(thread: StoredThread) -> str:
    return (
        f"thread {thread.thread_id!r} continued while it was restored; stop its agent, and restore it again with"
        " another id to keep it under"
    )
