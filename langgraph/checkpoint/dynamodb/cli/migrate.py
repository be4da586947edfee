"""`migrate`: threads from another saver into the table, and back."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated

import typer

from ..migrate import ENDPOINTS, SaverEndpoint, Source, Status, TableEndpoint, ThreadReport, open_endpoint
from ..migrate import migrate as migrate_threads
from .command import DryRun, Yes
from .context import CommandContext
from .many import From, Parallel, ThreadIds, check_owned, chosen
from .outcome import CommandError, Exit
from .values import counted

_FROM, _TO = "LANGGRAPH_MIGRATE_FROM", "LANGGRAPH_MIGRATE_TO"
_DONE = (Status.MOVED, Status.COMPLETE, Status.AHEAD)


def migrate(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="The source of the threads; `langgraph-dynamodb docs migrating` lists the places. Pass a password"
            f" in the environment, as {_FROM}.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="The target for threads of the table, another place of those. In the environment it is"
            f" {_TO}.",
        ),
    ] = None,
    file: From = None,
    parallel: Parallel = 4,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Move threads from another saver into the table, or back.

    It moves everything that a thread has, and reads it back on both sides to compare. Without thread ids, it moves all
    threads of the source. It only reads the source, and skips what the target already has. So run the same command
    again to continue after an interruption, or to move what was stored since.
    """
    if source is None and target is None:
        # An option goes over both variables: who moves threads back may have left the other one set.
        source, target = (os.environ.get(name) or None for name in (_FROM, _TO))
    with _opened(context, source, target, parallel) as (old, new):
        named = bool(thread_ids) or file is not None
        wanted = chosen(context, thread_ids, file) if named else _all_threads(context, old)
        if not dry_run:
            where = f"{'out of' if source is None else 'into'} table {context.options.table_name}"
            context.confirm(f"Move {counted(len(wanted), 'thread')} {where}?", yes=yes)
        moved = _Moved(dry_run, [] if new.has_directory else None)
        reports = migrate_threads(old, new, wanted, parallel=parallel, dry_run=dry_run)
        try:
            for report in context.output.track("moving threads", reports, len(wanted)):
                moved.add(report)
        except KeyboardInterrupt:
            context.output.note(f"moved before this ended: {counted(moved.checkpoints, 'checkpoint')}")
            raise
        _conclude(context, moved)
        if moved.threads_without_owner and not dry_run:
            check_owned(len(moved.threads_without_owner), new.owner_from)


@contextmanager
def _opened(
    context: CommandContext, source: str | None, target: str | None, parallel: int
) -> Iterator[tuple[SaverEndpoint, SaverEndpoint]]:
    """Open the source and the target, one of which is the table."""
    if (source is None) == (target is None):
        raise CommandError(Exit.USAGE, f"give either --from or --to\n{ENDPOINTS}")
    table = TableEndpoint(context.saver)
    with open_endpoint(source or target or "", parallel=parallel, as_target=source is None) as other:
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
