"""`copy` and `migrate`: threads from a thread, a table or a saver to another one."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from .._format.items import Partition
from .._operations import overview, thread_item
from .._operations.copy import checked_places, copy_thread
from .._runtime.options import is_table_name
from .._runtime.storage import Cache, Storage
from ..migrate import ENDPOINTS, SaverEndpoint, Source, Status, TableEndpoint, ThreadReport, open_endpoint
from ..migrate import migrate as migrate_threads
from . import CommandError, Exit, many
from .context import CommandContext
from .output import counted

_FROM, _TO = "LANGGRAPH_MIGRATE_FROM", "LANGGRAPH_MIGRATE_TO"
_DONE = (Status.MOVED, Status.COMPLETE, Status.AHEAD)


def copy(context: CommandContext, source: str, target: str, *, from_: str | None = None) -> None:
    """Copy a thread to another id, or from another table.

    It copies every checkpoint with its pending writes, as it is stored. If the target has other checkpoints, they stay,
    and the command says so. The copy has the owner, the title and the metadata of the thread, and the ttl of the
    configuration. If the command is interrupted, run it again.

    Options:
        source SOURCE: The thread to copy.
        target TARGET: The id of the copy.
        from_ TABLE: The name or ARN of the table that has the thread, such as one restored to a point in time.
    """
    read = context.storage if from_ is None else _storage_of(context, from_)
    places = checked_places(read, context.storage, source, target)
    if not context.run(overview.is_stored(read, source)):
        msg = f"table {read.table.name} has no thread {source!r}; `threads` lists those that there are"
        raise CommandError(Exit.NOT_FOUND, msg)
    present = context.run(overview.is_stored(context.storage, target))
    beside = ", beside what it has" if present else ""
    what = (
        f"thread {source!r} of table {read.table.name} to thread {target!r} of table"
        f" {context.options.table_name}{beside}"
    )
    _say_which_ttl(context, read, *places)
    document = {"source": source, "target": target, "present": present}
    context.confirm(f"Copy {what}?")
    if not context.dry_run:
        context.run(copy_thread(context.storage, source, target, source_storage=read))
    verb = "would copy" if context.dry_run else "copied"
    context.output.result({**document, "copied": not context.dry_run}, f"{verb}: {what}")


def _say_which_ttl(context: CommandContext, read: Storage, source: Partition, target: Partition) -> None:
    """Say so if the copy has another ttl than the thread: without a configuration it would never expire."""
    thread = context.run(thread_item.read_thread(read, source))
    there = context.run(thread_item.read_thread(context.storage, target))
    ttl_seconds = context.storage.ttl_seconds
    if there is not None and there.has_ttl and there.is_alive(context.storage.clock()):
        ttl_seconds = there.life.ttl_seconds
    if thread is not None and thread.life.ttl_seconds != ttl_seconds:
        context.output.note(
            f"The thread has ttl_seconds={thread.life.ttl_seconds}, and the copy has {ttl_seconds}. A new thread takes"
            " that of the configuration (--config)."
        )


def _storage_of(context: CommandContext, table_name: str) -> Storage:
    """Return the storage of a table beside the configured one, with the same key and the same name bound to values."""
    if not is_table_name(table_name):
        msg = f"--from {table_name!r} cannot be the name of a table; give a name or an ARN"
        raise CommandError(Exit.USAGE, msg)
    table = replace(context.storage.table, name=table_name)
    return replace(context.storage, table=table, cache=Cache(0))


def migrate(
    context: CommandContext,
    thread_ids: many.ThreadIds = None,
    *,
    from_: str | None = None,
    to: str | None = None,
    file: many.From = None,
) -> None:
    """Move threads from another saver into the table, or back.

    It moves everything that a thread has, and reads it back on both sides to compare. Without thread ids, it moves all
    threads of the source. It only reads the source, and skips what the target already has. So run the same command
    again to continue after an interruption, or to move what was stored since.

    Options:
        from_ PLACE: The source of the threads; `langgraph-dynamodb docs migrating` lists the places. Pass a password in
            the environment, as LANGGRAPH_MIGRATE_FROM.
        to PLACE: The target for threads of the table, another place of those. In the environment it is
            LANGGRAPH_MIGRATE_TO.
    """
    source, target = from_, to
    if source is None and target is None:
        # An option goes over both variables: who moves threads back may have left the other one set.
        source, target = (os.environ.get(name) or None for name in (_FROM, _TO))
    with _opened(context, source, target) as (old, new):
        named = bool(thread_ids) or file is not None
        wanted = many.chosen(context, thread_ids, file) if named else _all_threads(context, old)
        where = f"{'out of' if source is None else 'into'} table {context.options.table_name}"
        context.confirm(f"Move {counted(len(wanted), 'thread')} {where}?")
        moved = _Moved(context.dry_run, [] if new.has_directory else None)
        reports = migrate_threads(old, new, wanted, parallel=context.parallel, dry_run=context.dry_run)
        try:
            for report in context.output.track("moving threads", reports, len(wanted)):
                moved.add(report)
        except KeyboardInterrupt:
            context.output.note(f"moved before this ended: {counted(moved.checkpoints, 'checkpoint')}")
            raise
        _conclude(context, moved)
        if moved.threads_without_owner and not context.dry_run:
            many.check_owned(len(moved.threads_without_owner), new.owner_from)


@contextmanager
def _opened(
    context: CommandContext, source: str | None, target: str | None
) -> Iterator[tuple[SaverEndpoint, SaverEndpoint]]:
    """Open the source and the target, one of which is the table."""
    if (source is None) == (target is None):
        raise CommandError(Exit.USAGE, f"give either --from or --to\n{ENDPOINTS}")
    table = TableEndpoint(context.saver)
    with open_endpoint(source or target or "", parallel=context.parallel, as_target=source is None) as other:
        yield (other, table) if source is not None else (table, other)


def _all_threads(context: CommandContext, source: Source) -> list[str]:
    """Find the threads of a source before any is moved, so that the progress bar knows how many there are."""
    if isinstance(source, TableEndpoint):
        context.announce_scan()
    return list(context.output.track("finding threads", source.thread_ids()))


@dataclass
class _Moved:
    """The outcome for all threads."""

    dry_run: bool
    threads_without_owner: list[str] | None
    """The threads without an owner in the target; `None` if it has no directory of them."""
    with_owner: int = 0
    threads: Counter[str] = field(default_factory=Counter)
    """How many threads have which status."""
    checkpoints: int = 0
    writes: int = 0
    left: dict[str, ThreadReport] = field(default_factory=dict)

    def add(self, report: ThreadReport) -> None:
        self.threads[report.status.value] += 1
        self.checkpoints += report.checkpoints
        self.writes += report.writes
        if report.status not in _DONE:
            self.left[report.thread_id] = report
        elif report.owner is not None:
            self.with_owner += 1
        elif self.threads_without_owner is not None:
            self.threads_without_owner.append(report.thread_id)


def _conclude(context: CommandContext, moved: _Moved) -> None:
    """Print what was moved, or would be.

    Raises:
        CommandError: Some threads were not moved completely, or do not exist.
    """
    if context.output.as_json:
        left = {
            thread_id: {"status": report.status.value, "problems": report.problems}
            for thread_id, report in moved.left.items()
        }
        context.output.json({**vars(moved), "left": left})
    else:
        shown = ", ".join(f"{count:,} {status}" for status, count in moved.threads.items()) or "none"
        context.output.field("threads would be" if moved.dry_run else "threads", shown)
        checkpoints = f"{moved.checkpoints:,} with {counted(moved.writes, 'pending write')}"
        context.output.field("checkpoints", checkpoints)
        if moved.threads_without_owner is not None:
            owners = f"{moved.with_owner:,} with owner, {len(moved.threads_without_owner):,} without owner"
            context.output.field("owners", owners)
        for thread_id, report in moved.left.items():
            context.output.field(thread_id, "\n".join((report.status.value, *report.problems)))
    absent = sum(report.status is Status.ABSENT for report in moved.left.values())
    if len(moved.left) > absent:
        unfinished = counted(len(moved.left) - absent, "thread")
        msg = f"{unfinished} not moved to the end; run the same command again to continue"
        raise CommandError(Exit.PROBLEMS, msg)
    if absent:
        raise CommandError(Exit.NOT_FOUND, f"{counted(absent, 'thread')} not found at the source")
