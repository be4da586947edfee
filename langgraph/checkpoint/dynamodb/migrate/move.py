"""Moving threads from one store to another, several at a time; safe to break off, and to begin again, at any point.

A thread is moved checkpoint by checkpoint, the oldest first, each before its writes. So what a broken-off move has left
is the beginning of the thread, of which only the last checkpoint may lack writes. Agents that go on at the source may
write to any checkpoint, so what the target has already is compared before a thread is called moved or complete.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import Enum

from langgraph.checkpoint.dynamodb.errors import CheckpointerError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.migrate.record import WRITES_DIFFER, Comparison, Record, Ref, own_writes
from langgraph.checkpoint.dynamodb.migrate.store import SaverStore, Source
from langgraph.checkpoint.dynamodb.migrate.versions import Pair, kind_of_versions, translated

# How often a thread whose conversation goes on is looked at again for what has come meanwhile.
_PASSES_MAX = 5
# So many threads in a row do not fail for reasons of their own.
_FAILURES_MAX = 20
# How many checkpoints stand ready as the parents of later ones.
_PARENTS_KEPT = 64
_DIFFERENCES_SHOWN = 3


class Status(str, Enum):
    """What became of a thread."""

    MOVED = "moved"
    """Everything that the source has of it is in the target now."""
    COMPLETE = "complete"
    """Everything was in the target already."""
    AHEAD = "ahead"
    """The conversation has gone on in the target; nothing was changed."""
    GOING_ON = "going on"
    """It was moved, but its conversation goes on at the source: to be moved again when that stands still."""
    ABSENT = "absent"
    """The source has no such thread."""
    FAILED = "failed"
    """It was not moved to its end, or is not equal; the report says why."""


@dataclass
class ThreadReport:
    """What became of one thread, and what it took."""

    thread_id: str
    status: Status = Status.FAILED
    checkpoints: int = 0
    """How many checkpoints were stored."""
    writes: int = 0
    """How many pending writes were stored with them."""
    verified: int | None = None
    """How many checkpoints were read back on both sides and compared; None where none were."""
    source_bytes: int | None = None
    """What the thread takes up in the source; None where that is not known."""
    target_bytes: int | None = None
    """What it takes up in the target; None where that is not known."""
    problems: list[str] = field(default_factory=list)
    """Why it failed: an error, or what is not equal."""


def migrate(
    source: Source,
    target: SaverStore,
    thread_ids: Iterable[str],
    *,
    parallel: int = 4,
    verify: bool = False,
    measure: bool = True,
) -> Iterator[ThreadReport]:
    """Move threads; a thread that cannot be moved does not keep others from being moved.

    Args:
        source: Where the threads are. It is only read.
        target: Where they are to be. What it has of a thread already is not stored again.
        thread_ids: Which threads; one that comes twice is moved once.
        parallel: How many threads are moved at a time.
        verify: Whether to read each thread back on both sides afterwards and compare.
        measure: Whether to find out what each thread takes up on both sides, for which this package's tables are read.

    Yields:
        A report for each thread, as they end.

    Raises:
        CheckpointerInputError: `parallel` is not a whole number above 0.
        Exception: What the last of very many threads that failed in a row failed with: it is not a thread's own matter.
    """
    if type(parallel) is not int or parallel < 1:
        msg = f"parallel is {parallel!r}; give the number of threads to move at a time, 1 or more"
        raise CheckpointerInputError(msg)
    if source.can_keep() and target.can_keep():
        source.keep_values()
        target.keep_values()
    run = _Run(source, target, verify=verify, measure=measure)
    return run.all(thread_ids, parallel)


class _Run:
    """One call of `migrate`."""

    def __init__(self, source: Source, target: SaverStore, *, verify: bool, measure: bool) -> None:
        self._source = source
        self._target = target
        self._verify = verify
        self._measure = measure
        self._stopped = threading.Event()
        self._failures = 0

    def all(self, thread_ids: Iterable[str], parallel: int) -> Iterator[ThreadReport]:
        """Move threads as their ids come, and hand on each report as its thread ends."""
        waiting = set[Future[ThreadReport]]()
        with ThreadPoolExecutor(parallel, thread_name_prefix="migrate") as pool:
            try:
                for thread_id in _each_once(thread_ids):
                    waiting.add(pool.submit(self._one, thread_id))
                    if len(waiting) >= 2 * parallel:
                        ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        yield from self._reports(ended)
                while waiting:
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from self._reports(ended)
            finally:
                # Interrupted: what is under way ends with the checkpoint that it is at.
                self._stopped.set()
                for future in waiting:
                    future.cancel()

    def _reports(self, ended: Iterable[Future[ThreadReport]]) -> Iterator[ThreadReport]:
        for future in ended:
            report = future.result()
            self._failures = self._failures + 1 if report.status is Status.FAILED else 0
            yield report
            if self._failures >= _FAILURES_MAX:
                msg = f"{self._failures} threads in a row failed; the last: {report.problems[0]}"
                raise CheckpointerError(msg)

    def _one(self, thread_id: str) -> ThreadReport:
        report = ThreadReport(thread_id)
        try:
            move = _Move(self._source, self._target, report, self._stopped)
            report.status = move.run()
            if report.status not in (Status.MOVED, Status.COMPLETE):
                # Of what is not there, or goes on in one of them, the two sides need not have the same.
                return report
            if self._measure:
                report.source_bytes = self._source.stored_bytes(thread_id)
                report.target_bytes = self._target.stored_bytes(thread_id)
            if self._verify:
                move.verify()
        except Exception as error:  # noqa: BLE001 - any saver may raise anything, and other threads are to be moved.
            report.status = Status.FAILED
            report.problems.append(f"{type(error).__name__}: {error}")
        return report


def _each_once(thread_ids: Iterable[str]) -> Iterator[str]:
    seen = set[str]()
    for thread_id in thread_ids:
        if thread_id not in seen:
            seen.add(thread_id)
            yield thread_id


class _Move:
    """The move of one thread."""

    def __init__(
        self, source: Source, target: SaverStore, report: ThreadReport, stopped: threading.Event
    ) -> None:
        self._source = source
        self._target = target
        self._report = report
        self._thread_id = report.thread_id
        self._stopped = stopped
        places = source.knows_places and target.knows_places
        self._comparison = Comparison(target.dumps, target.same, places)
        # What was deleted meanwhile, or never was a checkpoint to anybody who read it.
        self._unread = set[Ref]()
        self._pairs = dict[Ref, Pair | None]()

    def run(self) -> Status:
        """Move what the target lacks, until it lacks nothing; say what became of the thread."""
        for number in range(_PASSES_MAX):
            wanted = set(self._source.refs(self._thread_id)) - self._unread
            there = set(self._target.refs(self._thread_id))
            missing = sorted(wanted - there)
            if not wanted and not there:
                return Status.ABSENT
            if there - wanted:
                return self._gone_on(sorted(there - wanted), missing)
            # What an earlier pass has put was read from the source by this run; only the newest is likely to change.
            lacking, ahead = self._compared(_newest(there) if number else sorted(there))
            if ahead:
                return self._gone_on(ahead, lacking + missing)
            self._mend(lacking)
            self._put(missing)
            if self._stopped.is_set():
                self._report.problems.append("interrupted; move the thread again, which goes on from here")
            if self._report.problems:
                return Status.FAILED
            if not missing and not lacking:
                return Status.MOVED if self._report.checkpoints or self._report.writes else Status.COMPLETE
        return Status.GOING_ON

    def _gone_on(self, extra: list[Ref], missing: list[Ref]) -> Status:
        """What becomes of a thread of which the target has what the source has not."""
        if not missing:
            return Status.AHEAD
        self._report.problems.append(
            f"the target has a checkpoint or writes that the source has not (the first: {extra[0].checkpoint_id!r}),"
            f" and lacks some of {len(missing)} checkpoints that it has: they are different conversations by now."
            " Nothing was changed; delete the thread in the target to move it anew, or leave it out"
        )
        return Status.FAILED

    def _compared(self, refs: list[Ref]) -> tuple[list[Ref], list[Ref]]:
        """Compare checkpoints; return those that are not equal in the target, and those that have writes of its own."""
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
        """Store checkpoints of the target again, or only their writes, and make sure that they are equal then."""
        for ref in lacking:
            if self._stopped.wait(self._target.seconds_to_wait()):
                return
            [(_, record, other)] = self._both([ref])
            if record is None:
                continue
            new = self._for_target(record)
            if self._differences(record, other) == [WRITES_DIFFER]:
                self._target.put_writes(self._thread_id, new)
            else:
                self._target.put(self._thread_id, new)
                self._report.checkpoints += 1
            self._report.writes += len(new.writes)
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
            return ["the target has it not"]
        return self._comparison.differences(self._for_target(record), other)

    def _put(self, missing: list[Ref]) -> None:
        """Store checkpoints with their writes."""
        records = self._source.records(self._thread_id, missing)
        for ref, record in zip(missing, records, strict=True):
            if self._stopped.wait(self._target.seconds_to_wait()):
                return
            if record is None:
                self._unread.add(ref)
                continue
            self._target.put(self._thread_id, self._for_target(record))
            self._report.checkpoints += 1
            self._report.writes += len(record.writes)

    def _for_target(self, record: Record) -> Record:
        """The record with versions that the target's saver can count on from."""
        kind = kind_of_versions(self._target.next_version, record.checkpoint)
        if kind is None:
            return record
        parent = None if record.parent_id is None else self._pair(Ref(record.parent_id, record.namespace))
        new = translated(record, kind, parent)
        self._remember(record.ref, (record.checkpoint, new.checkpoint))
        return new

    def _pair(self, ref: Ref) -> Pair | None:
        """A checkpoint as both sides have it; None where one of them has not."""
        if ref not in self._pairs:
            [one] = self._source.records(self._thread_id, [ref])
            [other] = self._target.records(self._thread_id, [ref])
            self._remember(ref, (one.checkpoint, other.checkpoint) if one and other else None)
        return self._pairs[ref]

    def _remember(self, ref: Ref, pair: Pair | None) -> None:
        self._pairs[ref] = pair
        if len(self._pairs) > _PARENTS_KEPT:
            del self._pairs[next(iter(self._pairs))]

    def verify(self) -> None:
        """Read the thread on both sides and compare every checkpoint that the source has."""
        self._report.verified = 0
        for ref, record, other in self._both(self._source.refs(self._thread_id)):
            if record is None:
                continue
            found = self._differences(record, other)
            if found:
                self._unequal(ref, found)
            self._report.verified += 1

    def _unequal(self, ref: Ref, found: list[str]) -> None:
        self._report.status = Status.FAILED
        if len(self._report.problems) < _DIFFERENCES_SHOWN:
            name = f"checkpoint {ref.checkpoint_id!r}" + (f" of {ref.namespace!r}" if ref.namespace else "")
            self._report.problems.append(f"{name}: {'; '.join(found)}")


def _newest(there: Iterable[Ref]) -> list[Ref]:
    """The newest checkpoint of each namespace, to which a conversation that goes on writes."""
    newest = {ref.namespace: ref for ref in sorted(there)}
    return sorted(newest.values())
