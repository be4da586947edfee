"""Another ttl for a thread that exists: it is copied, deleted, and copied back under the new ttl.

A thread has the ttl of its first put, and everything in it follows that. So a thread with another ttl is a new
thread, and a copy holds its checkpoints while there is none under its id. The copy's own thread item says which of the
two is the thread, so an attempt that died leaves nothing to guess:

    copy        thread                              the next attempt
    ---------   ---------------------------------   --------------------------------------------------
    none        as it was                           copies it
    partial     as it was                           deletes the copy, and copies it
    whole       as it was, a part of it, or none    deletes the thread, and copies it back
    whole       under the new ttl                   revokes the copy: it is partial from here on
    partial     under the new ttl                   deletes the copy

A copy becomes whole by one request (`complete_copy`) and partial by another one (`revoke_copy`), each after both have
been compared. The copy has no ttl, so it is there whenever somebody repeats the command.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from langgraph.checkpoint.dynamodb._runtime.options import check_thread_ttl
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerInputError,
    CheckpointNotFoundError,
    ThreadBusyError,
)
from langgraph.checkpoint.dynamodb.locks import ThreadLock
from langgraph.checkpoint.dynamodb.migrate.stored_thread import StoredThread, beside_each_other
from langgraph.checkpoint.dynamodb.migrate.table import TableEndpoint

_SUFFIX = ".set-ttl"
_IF_DAMAGED = "Restore it from a point in time, or delete it"


def copy_id(thread_id: str) -> str:
    """Return the id of the copy that `TtlChange` makes of a thread."""
    return f"{thread_id}{_SUFFIX}"


class _Stage(Enum):
    """The next step."""

    COPY = "copy"
    SWAP = "swap"
    CLEAN_UP = "clean up"
    DONE = "done"


@dataclass(frozen=True)
class TtlProspect:
    """The plan of a change of a thread's ttl."""

    checkpoints: int
    """How many checkpoints the thread has, or its copy if that stands for it."""
    is_done: bool
    """Whether the thread has the ttl already, and nothing is left of an earlier attempt."""
    write_units: int
    """Approximately how many write units it takes."""


class TtlChange:
    """The change of one thread's ttl."""

    def __init__(self, store: TableEndpoint, thread_id: str, ttl_seconds: int | None) -> None:
        """Define the change. No request is made yet.

        Args:
            store: The table.
            thread_id: The thread.
            ttl_seconds: The new ttl, counted from the change; `None` is forever.

        Raises:
            CheckpointerInputError: No thread can have this ttl.
        """
        check_thread_ttl(ttl_seconds)
        without_ttl, with_ttl = store.with_ttl(None), store.with_ttl(ttl_seconds)
        self._comparison = beside_each_other(without_ttl, with_ttl)
        self._ttl_seconds = ttl_seconds
        self._thread = StoredThread(with_ttl, thread_id, _IF_DAMAGED)
        self._copy = StoredThread(without_ttl, copy_id(thread_id), _IF_DAMAGED)

    def look(self) -> TtlProspect:
        """Return what `run` would do. This reads the thread and its copy, and changes neither.

        Raises:
            CheckpointNotFoundError: There is no such thread, or it has expired.
            CheckpointCorruptionError: The thread or its copy is damaged; the message says which.
            CheckpointerInputError: The thread is such a copy itself, or the copy's id belongs to another conversation.
            ThreadBusyError: The thread continued when it was only copied, or only partly copied back.
        """
        stage = self._stage()
        truth = self._copy if stage is _Stage.SWAP else self._thread
        units = 0 if stage is _Stage.DONE else self._write_units(stage)
        return TtlProspect(len(truth.refs()), stage is _Stage.DONE, units)

    def run(self) -> None:
        """Change the ttl, or continue what an earlier attempt began.

        The thread's lock is held meanwhile, so runners that take the lock wait or are refused. Stop those that do not.

        Raises:
            ThreadBusyError: A runner has the thread, or continued it meanwhile without the lock.
            ThreadLockLostError: This process stood still for so long that a runner may have the thread.
            CheckpointerError: Any error of `look`.
        """
        with self._thread.locked() as lock:
            try:
                stage = self._stage()
                if stage is _Stage.COPY:
                    self._copy_thread()
            except CheckpointNotFoundError:
                # The thread expired while it was copied, by this attempt or an earlier one.
                if self._is_copying():
                    self._clean_up()
                raise
            if stage in (_Stage.COPY, _Stage.SWAP):
                self._swap(lock)
            elif stage is _Stage.CLEAN_UP:
                # An earlier attempt may have died between the last checkpoint and the thread's entry in the directory.
                self._copy.carry_entry_to(self._thread)
            if stage is not _Stage.DONE:
                self._clean_up()

    # Where an earlier attempt stopped

    def _stage(self) -> _Stage:
        thread = self._thread.item()
        if thread is not None and thread.is_copy:
            original = self._thread.thread_id.removesuffix(_SUFFIX)
            msg = (
                f"{self._thread} is the copy that an interrupted set-ttl has left of thread {original!r};"
                f" repeat set-ttl for {original!r}"
            )
            raise CheckpointerInputError(msg)
        copy = self._copy.item()
        if copy is not None and copy.is_whole:
            return self._stage_of_whole_copy()
        self._check_exists()
        is_copying = self._is_copying()
        if self._has_ttl():
            return _Stage.CLEAN_UP if is_copying else _Stage.DONE
        if not is_copying and self._copy.refs():
            msg = (
                f"{self._copy} is another conversation, and set-ttl needs its id for the copy; nothing was changed."
                " Copy that conversation to another id, and delete it"
            )
            raise CheckpointerInputError(msg)
        return _Stage.COPY

    def _stage_of_whole_copy(self) -> _Stage:
        is_all_copied = self._copy.holds(self._thread, self._comparison)
        is_all_there = self._thread.holds(self._copy, self._comparison)
        if is_all_there and self._has_ttl():
            return _Stage.CLEAN_UP
        if is_all_copied:
            return _Stage.SWAP
        if is_all_there:
            # The thread continued before anything of it was deleted, so the copy is out of date.
            return _Stage.COPY
        msg = (
            f"{self._thread} continued while set-ttl was interrupted; its earlier state is thread"
            f" {self._copy.thread_id!r}. Delete the one that you do not need, and repeat set-ttl"
        )
        raise ThreadBusyError(msg)

    def _check_exists(self) -> None:
        if not self._thread.refs():
            msg = f"{self._thread} does not exist, or has expired"
            raise CheckpointNotFoundError(msg)

    def _has_ttl(self) -> bool:
        thread = self._thread.item()
        return thread is not None and thread.ttl_seconds == self._ttl_seconds

    def _is_copying(self) -> bool:
        copy = self._copy.item()
        return copy is not None and copy.is_copy

    def _write_units(self, stage: _Stage) -> int:
        copy = self._copy.write_units()
        if stage is _Stage.CLEAN_UP:
            return copy
        thread = self._thread.write_units()
        if stage is _Stage.SWAP:
            # The rest of the thread is deleted, the copy is copied back, and then deleted.
            return thread + 2 * copy
        # The rest of an earlier attempt's copy is deleted first; then come all steps.
        return copy + 4 * thread

    # The steps

    def _copy_thread(self) -> None:
        """Make the copy, and let it stand for the thread once it holds everything."""
        if self._copy.item() is not None:
            self._clean_up()
        store, copy_id = self._copy.store, self._copy.thread_id
        epoch = store.create_copy(copy_id)
        self._thread.copy_to(self._copy)
        if not self._copy.holds(self._thread, self._comparison):
            raise ThreadBusyError(self._went_on())
        self._check_exists()
        store.complete_copy(copy_id, epoch)

    def _swap(self, lock: ThreadLock) -> None:
        """Replace the thread by the copy."""
        # A process that stood still for longer than the lock lasts must not delete what another runner has stored.
        lock.check()
        self._thread.delete()
        if self._thread.refs():
            raise ThreadBusyError(self._went_on())
        self._copy.copy_to(self._thread)
        is_equal = self._copy.holds(self._thread, self._comparison) and self._thread.holds(
            self._copy, self._comparison
        )
        if not is_equal or not self._has_ttl():
            raise ThreadBusyError(self._went_on())

    def _clean_up(self) -> None:
        """Delete the copy, after revoking it so that it no longer stands for the thread."""
        self._copy.store.revoke_copy(self._copy.thread_id)
        self._copy.delete()

    def _went_on(self) -> str:
        return f"{self._thread} continued while its ttl was changed; stop its agent, and repeat set-ttl"
