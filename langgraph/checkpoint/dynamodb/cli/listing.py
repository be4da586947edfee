"""`threads` lists threads, and `directory` enters them in the directory that lists them without a scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Annotated, Any, TypeAlias

import typer

from .._format import items, moments, pricing
from .._format.schema import OWNER
from .._operations.entries import enter_thread
from .._operations.error_collector import OF_ONE_THREAD
from .._operations.threads import ThreadQuery, ThreadSummary, list_threads, look_up
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from . import CommandError, Exit
from .command import Limit
from .context import CommandContext
from .many import From, ThreadIds, check_owned, chosen, conclude, scanned, serve
from .output import counted, moment, parse_age, priced

# How many threads of the directory are read at a time. Each is looked up for its status.
_PAGE_THREADS = 100
# How many threads are read in parallel.
_THREADS_AT_ONCE = 8
# How many rounds of a scan look for the newest threads: 256 MB of the table, 32,768 read units or $0.004, some seconds.
_ROUNDS_MAX = 32
_DIRECTORY_HEADER = ("thread", "last active", "status", "step", "owner", "title", "created")
_HEADER = ("thread", "last active", "status", "step", "problem")
Owner: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--owner", metavar="NAME", help="The threads of an owner, found by the directory without a scan."
    ),
]
# The thread item and its entries in two indexes.
_WRITE_UNITS = 3


def threads(
    context: CommandContext,
    *,
    owner: Owner = None,
    since: Annotated[timedelta | None, typer.Option(parser=parse_age)] = None,
    waiting: bool = False,
    without_owner: bool = False,
    expired: bool = False,
    limit: Limit = 50,
) -> None:
    """List threads: last activity and step, waiting or not.

    --owner and --since list threads of the directory, newest activity first. The saver's option owner_from, or
    set_thread, enters threads in it.

    Without these, the command scans the table, and first says how much it may read and what that costs. To
    find the newest threads it reads up to 256 MB. If the table is larger, it lists the newest of what it has read, and
    says so. --limit 0 and --without-owner read everything. With --json, a list of the whole table has the bytes that
    each thread stores; for that, the command transfers what it reads. It deserializes nothing. A thread is "waiting"
    if a task of its newest checkpoint called interrupt().

    Options:
        since AGE: Only threads that were active since, such as 7d, found by the directory without a scan.
        waiting: Only threads that wait for a human.
        without_owner: Only threads that the directory lacks, or has without an owner.
        expired: With --owner or --since: also what expired for readers and is still stored.
    """
    of_index = owner is not None or since is not None
    if of_index and without_owner:
        raise CommandError(Exit.USAGE, "give --without-owner, or --owner and --since, not both")
    if expired and not of_index:
        raise CommandError(Exit.USAGE, "--expired needs --owner or --since")
    if of_index:
        query = ThreadQuery(
            owner=owner,
            status="waiting" if waiting else None,
            limit=_PAGE_THREADS,
            since=None if since is None else datetime.now(timezone.utc) - since,
            with_status=True,
        )
        _list_directory(context, _of_directory(context, query, for_operators=expired), limit)
        return
    listed = _ownerless(context, limit) if without_owner else _newest(context, limit)
    found = listed.thread_ids
    rows: list[ScannedThread] = []
    with context.output.progress("looking at threads", len(found)) as advance:
        for start in range(0, len(found), _THREADS_AT_ONCE):
            some = [
                _looked_up(context.storage, listed, each) for each in found[start : start + _THREADS_AT_ONCE]
            ]
            rows += context.run(gather(some))
            advance(len(some))
    if waiting:
        rows = [each for each in rows if each.status == "waiting"]
        context.output.note(f"Looked at {counted(len(found), 'thread')} and found {len(rows):,} waiting.")
    documents = [asdict(each) for each in rows]
    context.output.table(documents, _HEADER, [tuple(each.values())[: len(_HEADER)] for each in documents])
    if listed.note is not None:
        context.output.note(listed.note)


def _list_directory(context: CommandContext, listing: Iterator[ThreadSummary], limit: int) -> None:
    """Print threads of the directory, and a note on those that it may lack."""
    found = list(islice(listing, limit + 1 if limit else None))
    shown = found[:limit] if limit else found
    context.output.table(list(map(summary_as_json, shown)), _DIRECTORY_HEADER, map(_summary_row, shown))
    if len(found) > len(shown):
        context.output.note(f"Listed: the newest {limit}; --limit 0 lists all.")
    context.output.note("Threads that are not in the directory are not listed.")


def _of_directory(
    context: CommandContext, query: ThreadQuery, *, for_operators: bool
) -> Iterator[ThreadSummary]:
    """Yield threads of the directory, newest activity first; for operators with what users do not see."""
    while True:
        page = context.run(list_threads(context.read_only_saver.storage, query, for_operators=for_operators))
        yield from page.threads
        if page.cursor is None:
            return
        query = replace(query, before=page.cursor)


def summary_as_json(found: ThreadSummary) -> dict[str, Any]:
    """Return an entry of the directory as JSON has it."""
    times = {"created_at": found.created_at, "last_active": found.last_active}
    return {**asdict(found), **{name: when and when.isoformat() for name, when in times.items()}}


def _summary_row(found: ThreadSummary) -> Sequence[object]:
    return (
        found.thread_id,
        moment(found.last_active),
        found.status,
        found.step,
        found.owner,
        found.title,
        moment(found.created_at),
    )


@dataclass(frozen=True)
class _ScannedThreads:
    """The newest threads of the table, or of the part of it that was read."""

    thread_ids: Sequence[str]
    bytes: Mapping[str, int] | None = None
    """By the key of the root's partition, the bytes of all threads, if the whole table was read for JSON."""
    note: str | None = None

    def limited(self, limit: int, of: str) -> _ScannedThreads:
        """Return as many threads as are wanted, with a note if there are more."""
        if not limit or len(self.thread_ids) <= limit:
            return self
        note = f"Listed: {limit} of {of}; --limit 0 lists all."
        return _ScannedThreads(self.thread_ids[:limit], self.bytes, note)


def _ownerless(context: CommandContext, limit: int) -> _ScannedThreads:
    """Return the newest threads whose item names no owner."""
    listed = _newest(context, 0)
    ordered = listed.thread_ids
    keys = [items.thread_key(items.partition_of(each)) for each in ordered]
    read = context.run(context.storage.table.batch_get(keys, consistent=False))
    owned = {items.parse_partition(items.partition_key(each)).thread_id for each in read if OWNER in each}
    found = [each for each in ordered if each not in owned]
    return replace(listed, thread_ids=found).limited(limit, f"{len(found):,} threads without an owner")


def _newest(context: CommandContext, limit: int) -> _ScannedThreads:
    """Return the newest threads of the table, or of the part of it that was read."""
    newest: dict[str, str] = {}
    sizes = Counter[str]()
    is_whole, with_bytes = True, context.output.as_json
    for rounds, page in enumerate(scanned(context, with_bytes=with_bytes), 1):
        sizes.update(page.bytes)
        for thread_id in page.thread_ids:
            newest.setdefault(thread_id, "")
        for thread_id, key in page.newest.items():
            newest[thread_id] = max(key, newest[thread_id])
        if limit and len(newest) >= limit and rounds >= _ROUNDS_MAX:
            is_whole = False
            break
    ordered = sorted(newest, key=newest.__getitem__, reverse=True)
    count = counted(len(ordered), "thread")
    if is_whole:
        return _ScannedThreads(ordered, sizes if with_bytes else None).limited(limit, count)
    note = (
        f"Listed: the newest {limit} of the {count} in the part of the table that was read; there may be newer ones."
        " --limit 0 reads the whole table."
    )
    return _ScannedThreads(ordered[:limit], note=note)


@dataclass(frozen=True)
class ScannedThread:
    """A thread that a scan found, by its newest checkpoint."""

    thread_id: str
    last_active: str | None = None
    status: str | None = None
    step: int | None = None
    problem: str | None = None
    """Why the checkpoint cannot be read."""
    stored_bytes: int | None = None
    """The bytes of all its items; `None` if the whole table was not read for JSON."""


def _looked_up(storage: Storage, listed: _ScannedThreads, thread_id: str) -> Op[ScannedThread]:
    """Look up a thread. Damage is noted and not raised, so that the list can show the others."""
    size = None if listed.bytes is None else listed.bytes[items.partition_of(thread_id).pk]
    try:
        newest = yield from look_up(storage, thread_id)
    except OF_ONE_THREAD as error:
        return ScannedThread(thread_id, problem=str(error), stored_bytes=size)
    stored = moments.stored_at(newest.checkpoint_id)
    last_active = None if stored is None else stored.isoformat()
    return ScannedThread(thread_id, last_active, newest.status, newest.step, stored_bytes=size)


def directory(
    context: CommandContext, thread_ids: ThreadIds = None, *, file: From = None, owner_from: str = "user_id"
) -> None:
    """Enter existing threads in the directory that lists them.

    Without threads as arguments, it scans the table and enters all threads. It first says what the scan reads and
    costs, and asks before it writes. The owner comes from the oldest checkpoint whose metadata name one, because
    LangGraph keeps the keys of a config there. Threads that are already in the directory stay as they are, so you can
    repeat the command. There are two exceptions: a thread without an owner gets one, and if the saver encrypts, it
    encrypts owners that are still readable.

    If no checkpoint of a thread names an owner, the thread is entered without one, and --owner of other commands does
    not find it. The command lists such threads, and ends with exit code 8.

    Options:
        owner_from KEY: The key of a checkpoint's metadata with the owner.
    """
    if not owner_from:
        raise CommandError(Exit.USAGE, "--owner-from is empty; give a key of the metadata, such as user_id")
    found = chosen(context, thread_ids, file, scan=not thread_ids and file is None)
    units = _WRITE_UNITS * len(found)
    cost = f"up to {priced(units, 'write unit', pricing.WRITE_UNIT_DOLLARS)}"
    what = f"{counted(len(found), 'thread')} of table {context.options.table_name}"
    if context.dry_run:
        context.output.result({"would_enter": found, "write_units": units}, f"would enter: {what}, {cost}")
        return
    context.confirm(f"Enter {what} in the directory, for {cost}?")

    def one(thread_id: str) -> str | None:
        return context.run(enter_thread(context.storage, thread_id, owner_from))

    served = serve(context, "entering", found, one)
    ownerless = sorted(each for each, owner in served.done.items() if owner is None)
    totals = {"with_owner": len(served.done) - len(ownerless), "without_owner": len(ownerless)}
    conclude(context, "entered", served, totals, {"threads_without_owner": ownerless} if ownerless else None)
    check_owned(len(ownerless), owner_from)
