"""`delete`: threads, or the checkpoints of runs."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb._operations.overview import Overview, overview, threads_of_run
from langgraph.checkpoint.dynamodb._runtime.steps import gather
from langgraph.checkpoint.dynamodb.cli.command import DryRun, Yes
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.many import (
    Done,
    From,
    Parallel,
    ThreadIds,
    check_exists,
    chosen,
    conclude,
    serve,
)
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.threads import Owner
from langgraph.checkpoint.dynamodb.cli.values import counted


def delete(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    owner: Owner = None,
    run_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--run-id", metavar="ID", help="Delete the checkpoints of this run, instead of threads."
        ),
    ] = None,
    parallel: Parallel = 4,
    done: Done = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete threads, or what runs stored.

    A thread goes with everything that it ever stored. Nothing brings it back but a backup or point-in-time
    recovery. A thread that does not exist keeps no other from being deleted; the command ends with exit code 3.
    """
    if run_ids:
        if thread_ids or file or owner is not None:
            raise CommandError(Exit.USAGE, "give threads, --owner or --run-id, not several")
        _delete_runs(context, run_ids, yes=yes, dry_run=dry_run)
        return
    found = chosen(context, thread_ids, file, owner=owner)
    if dry_run:
        _say_what_would_be(context, found, parallel, must_exist=owner is None)
        return
    context.confirm(
        f"Delete {counted(len(found), 'thread')} from table {context.options.table_name}?", yes=yes
    )

    def one(thread_id: str) -> None:
        # The directory may have a thread that has no checkpoint yet.
        if owner is None:
            check_exists(context, thread_id)
        context.saver.delete_thread(thread_id)

    conclude(context, "deleted", serve(context, "deleting", found, one, parallel=parallel, done=done))


def _delete_runs(context: CommandContext, run_ids: list[str], *, yes: bool, dry_run: bool) -> None:
    of_runs = context.run(gather([threads_of_run(context.storage, run) for run in run_ids]))
    threads = sorted({each for found in of_runs for each in found})
    if not threads:
        msg = "no checkpoint was stored by " + ", ".join(f"run {each!r}" for each in run_ids)
        raise CommandError(Exit.NOT_FOUND, msg)
    if not dry_run:
        question = (
            f"Delete what {counted(len(run_ids), 'run')} stored in {counted(len(threads), 'thread')} of table"
        )
        context.confirm(f"{question} {context.options.table_name}?", yes=yes)
        context.saver.delete_for_runs(run_ids)
    verb = "would be deleted from" if dry_run else "deleted from"
    if context.output.as_json:
        context.output.json({verb: threads})
    else:
        context.output.field(verb, ", ".join(threads))


def _say_what_would_be(context: CommandContext, found: list[str], parallel: int, *, must_exist: bool) -> None:
    seen: list[Overview] = []

    def one(thread_id: str) -> None:
        if must_exist:
            check_exists(context, thread_id)
        seen.append(context.run(overview(context.storage, thread_id)))

    served = serve(context, "measuring threads", found, one, parallel=parallel)
    totals = {"items": sum(each.items for each in seen), "bytes": sum(each.bytes for each in seen)}
    conclude(context, "would delete", served, totals)
