"""Moving threads from one saver to another, several at a time. A move can be interrupted and repeated at any point.

A thread is moved checkpoint by checkpoint, oldest first, each before its writes. So an interrupted move leaves the
beginning of the thread, and only its last checkpoint may lack writes. Every checkpoint is read back on both sides and
compared before a thread is reported as moved or complete: agents that continue at the source may write to any of them.
"""

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from .._operations import arguments, entries
from ..errors import CheckpointerError, CheckpointerInputError
from .file import FileEndpoint
from .record import WRITES_DIFFER, Comparison, Record, Ref, kind_of_versions, own_writes, translated
from .saver_endpoint import SaverEndpoint, each_once

Source: TypeAlias = SaverEndpoint | FileEndpoint
"""An endpoint that threads can be moved from."""
# How often a thread is read again for checkpoints that arrived during the move.
_PASSES_MAX = 5
# How many threads wait for each that is moved at a time: their ids may be millions.
_WAITING_MAX = 100
# This many threads in a row do not fail for reasons of their own.
_FAILURES_MAX = 20
_DIFFERENCES_SHOWN = 3


class Status(str, Enum):
    """The outcome for a thread."""

    MOVED = "moved"
    """The target has every checkpoint of the source, as it was when they were compared."""
    COMPLETE = "complete"
    """Everything was in the target already."""
    AHEAD = "ahead"
    """The conversation continued in the target; nothing was changed."""
    GOING_ON = "going on"
    """It was moved, but its conversation continues at the source. Move it again when that has stopped."""
    ABSENT = "absent"
    """The source has no such thread."""
    FAILED = "failed"
    """It was not moved completely, or is not equal; the report says why."""


@dataclass
class ThreadReport:
    """The outcome for one thread, with its numbers."""

    thread_id: str
    status: Status = Status.FAILED
    checkpoints: int = 0
    """How many checkpoints were stored, or would be."""
    writes: int = 0
    """How many pending writes were stored with them."""
    owner: str | None = None
    """Its owner in the target's directory; `None` if it has none there."""
    problems: list[str] = field(default_factory=list)
    """Why it failed: an error, or the differences."""


def migrate(
    source: Source,
    target: SaverEndpoint,
    thread_ids: Iterable[str],
    *,
    parallel: int = 4,
    dry_run: bool = False,
) -> Iterator[ThreadReport]:
    """Move threads from one saver to another, and compare both sides. A thread that fails does not stop the others.

    Args:
        source: The endpoint that has the threads. It is only read.
        target: The endpoint to move them to. Checkpoints that it has already are not stored again.
        thread_ids: The ids of the threads. An id that comes twice is moved once.
        parallel: How many threads are moved at a time.
        dry_run: Whether to read and compare as a move does, and store nothing. The reports say what a move would do.

    Yields:
        A report for each thread, in the order of the ids.

    Raises:
        CheckpointerInputError: `parallel` is not a whole number above 0.
        CheckpointerError: Twenty threads in a row failed, so the cause is not a single thread.
    """
    if type(parallel) is not int or parallel < 1:
        msg = f"parallel is {parallel!r}; give the number of threads to move at a time, 1 or more"
        raise CheckpointerInputError(msg)
    if source.can_pass_through() and target.can_pass_through():
        source.keep_values()
        target.keep_values()
    return _reports(source, target, thread_ids, parallel, dry_run)


def _reports(
    source: Source, target: SaverEndpoint, thread_ids: Iterable[str], parallel: int, dry_run: bool
) -> Iterator[ThreadReport]:
    ids, failures, stopped = each_once(thread_ids), 0, threading.Event()
    pool = ThreadPoolExecutor(parallel, thread_name_prefix="migrate")
    try:
        while group := list(islice(ids, parallel * _WAITING_MAX)):
            for report in pool.map(partial(_moved, source, target, stopped, dry_run), group):
                failures = failures + 1 if report.status is Status.FAILED else 0
                yield report
                if failures >= _FAILURES_MAX:
                    msg = f"{failures} threads in a row failed; the last: {report.problems[0]}"
                    raise CheckpointerError(msg)
    finally:
        # Interrupted: each thread under way ends with its current checkpoint.
        stopped.set()
        pool.shutdown(cancel_futures=True)


def _moved(
    source: Source, target: SaverEndpoint, stopped: threading.Event, dry_run: bool, thread_id: str
) -> ThreadReport:
    report = ThreadReport(thread_id)
    try:
        report.status = _Move(source, target, report, stopped, dry_run).run()
    except Exception as error:  # noqa: BLE001 - any saver may raise anything, and other threads are to be moved.
        report.status = Status.FAILED
        report.problems.append(f"{type(error).__name__}: {error}")
    return report


@dataclass
class _Move:
    """The move of one thread."""

    _source: Source
    _target: SaverEndpoint
    _report: ThreadReport
    _stopped: threading.Event
    _dry_run: bool = False
    # Checkpoints that were deleted meanwhile, or were never committed, so nobody could read them.
    _unread: set[Ref] = field(default_factory=set)

    @property
    def _thread_id(self) -> str:
        return self._report.thread_id

    def run(self) -> Status:
        """Move what the target lacks, until it lacks nothing. Return the outcome."""
        for _ in range(_PASSES_MAX):
            wanted = set(self._source.refs(self._thread_id)) - self._unread
            there = set(self._target.refs(self._thread_id))
            missing = sorted(wanted - there)
            if not wanted and not there:
                return Status.ABSENT
            about = self._begun(there)
            if there - wanted:
                return self._gone_on(sorted(there - wanted), missing)
            lacking, ahead = self._compared(sorted(there))
            if ahead:
                return self._gone_on(ahead, lacking + missing)
            if not there or about is not None:
                self._describe(about or entries.ThreadDescription(), sorted(wanted))
            self._mend(lacking)
            self._put(missing)
            if self._stopped.is_set():
                self._report.problems.append(
                    "interrupted; move the thread again, and the move continues from here"
                )
            if self._report.problems:
                return Status.FAILED
            if self._dry_run or not (missing or lacking):
                return self._outcome(there)
        return Status.GOING_ON

    def _begun(self, there: set[Ref]) -> entries.ThreadDescription | None:
        """Return what the target's directory tells of the thread, of which it has some checkpoints, or none."""
        if not (there or self._dry_run):
            self._target.clear(self._thread_id)
        about = self._target.description(self._thread_id)
        if about is not None:
            self._report.owner = about.owner
        return about

    def _outcome(self, there: set[Ref]) -> Status:
        """Return the outcome for a thread of which the target has everything, or would have after a move."""
        if self._report.checkpoints or self._report.writes:
            return Status.MOVED
        return Status.COMPLETE if there else Status.ABSENT

    def _describe(self, there: entries.ThreadDescription, refs: list[Ref]) -> None:
        """Give the thread in the target the owner, title and metadata that it lacks, before its first checkpoint.

        The owner is the source's, or the one that a run would have taken: that of the oldest checkpoint with one.
        """
        if not self._target.has_directory:
            return
        found = self._source.description(self._thread_id) or entries.ThreadDescription()
        about = entries.ThreadDescription(
            there.owner or found.owner or self._named_owner(refs),
            there.title or found.title,
            there.metadata or found.metadata,
        )
        if about != there and not self._dry_run:
            self._target.describe(self._thread_id, about)
        self._report.owner = about.owner

    def _named_owner(self, refs: list[Ref]) -> str | None:
        """Return the owner that the oldest checkpoint names of those that name one."""
        key = self._target.owner_from
        if key is None:
            return None
        records = self._source.records(self._thread_id, [each for each in refs if not each.namespace])
        named: Iterator[Any] = (record.metadata.get(key) for record in records if record is not None)
        return next((arguments.checked_id(each, "owner") for each in named if each is not None), None)

    def _gone_on(self, extra: list[Ref], missing: list[Ref]) -> Status:
        """Return the outcome for a thread of which the target has something that the source lacks."""
        if not missing:
            return Status.AHEAD
        self._report.problems.append(
            f"the target has checkpoints or writes that the source lacks (the first: {extra[0].checkpoint_id!r}), and"
            f" {len(missing)} checkpoints of the source are not, or not whole, in the target: they are different"
            " conversations by now."
            " Nothing was changed; delete the thread in the target to move it anew, or leave it out"
        )
        return Status.FAILED

    def _compared(self, refs: list[Ref]) -> tuple[list[Ref], list[Ref]]:
        """Compare checkpoints. Return those that differ in the target, and those with writes only in the target."""
        lacking, ahead = list[Ref](), list[Ref]()
        for ref, record, other in self._both(refs):
            if self._stopped.is_set():
                break
            if record is None:
                continue
            if other is not None and own_writes(other, record):
                ahead.append(ref)
                if not own_writes(record, other):
                    continue
            if self._differences(record, other):
                lacking.append(ref)
        return lacking, ahead

    def _mend(self, lacking: list[Ref]) -> None:
        """Store checkpoints of the target again, or only their writes, and check that they are equal then."""
        for ref in lacking:
            if self._stopped.is_set():
                return
            [(_, record, other)] = self._both([ref])
            if record is None:
                continue
            new = self._for_target(record)
            only_writes = self._differences(record, other) == [WRITES_DIFFER]
            self._report.checkpoints += not only_writes
            self._report.writes += len(new.writes)
            if self._dry_run:
                continue
            store = self._target.put_writes if only_writes else self._target.put
            store(self._thread_id, new)
            [(_, record, stored)] = self._both([ref])
            found = [] if record is None else self._differences(record, stored)
            if found:
                self._unequal(
                    ref, [*found, "it was stored again; delete the thread in the target to move it anew"]
                )

    def _both(self, refs: list[Ref]) -> Iterator[tuple[Ref, Record | None, Record | None]]:
        """Read checkpoints on both sides."""
        records, others = (side.records(self._thread_id, refs) for side in (self._source, self._target))
        return zip(refs, records, others, strict=True)

    def _differences(self, record: Record, other: Record | None) -> list[str]:
        if other is None:
            return ["the target lacks it"]
        positions = self._source.knows_positions and self._target.knows_positions
        comparison = Comparison(self._target.dumps, self._target.same, positions)
        return comparison.differences(self._for_target(record), other)

    def _put(self, missing: list[Ref]) -> None:
        """Store checkpoints with their writes."""
        records = self._source.records(self._thread_id, missing)
        for ref, record in zip(missing, records, strict=True):
            if self._stopped.is_set():
                return
            if record is None:
                self._unread.add(ref)
                continue
            if not self._dry_run:
                self._target.put(self._thread_id, self._for_target(record))
            self._report.checkpoints += 1
            self._report.writes += len(record.writes)

    def _for_target(self, record: Record) -> Record:
        """Return the record with versions as the target's saver gives them."""
        kind = kind_of_versions(self._target.next_version, record.checkpoint)
        return record if kind is None else translated(record, kind, self._target.dumps)

    def _unequal(self, ref: Ref, found: list[str]) -> None:
        if len(self._report.problems) < _DIFFERENCES_SHOWN:
            name = f"checkpoint {ref.checkpoint_id!r}" + (f" of {ref.namespace!r}" if ref.namespace else "")
            self._report.problems.append(f"{name}: {'; '.join(found)}")
