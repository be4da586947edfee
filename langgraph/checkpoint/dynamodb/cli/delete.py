"""`delete`: threads, or what runs stored in them."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb._operations.survey import Overview, overview, threads_of_run
from langgraph.checkpoint.dynamodb._runtime.steps import gather
from langgraph.checkpoint.dynamodb.cli.command import DryRun, Yes
from langgraph.checkpoint.dynamodb.cli.desk import Desk
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
from langgraph.checkpoint.dynamodb.cli.values import counted


def delete(
    desk: Desk,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    run_ids: Annotated[
        list[str] | None,
        typer.Option("--run-id", metavar="ID", help="In the place of threads: the checkpoints of a run."),
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
        if thread_ids or file:
            raise CommandError(Exit.USAGE, "give threads or --run-id, not both")
        _delete_runs(desk, run_ids, yes=yes, dry_run=dry_run)
        return
    found = chosen(desk, thread_ids, file)
    if dry_run:
        _say_what_would_be(desk, found, parallel)
        return
    desk.confirm(f"Delete {counted(len(found), 'thread')} from table {desk.options.table_name}?", yes=yes)

    def one(thread_id: str) -> None:
        check_exists(desk, thread_id)
        desk.saver.delete_thread(thread_id)

    conclude(desk, "deleted", serve(desk, "deleting", found, one, parallel=parallel, done=done))


def _delete_runs(desk: Desk, run_ids: list[str], *, yes: bool, dry_run: bool) -> None:
    threads = sorted({
        each for found in desk.run(gather([threads_of_run(desk.table, run) for run in run_ids])) for each in found
    })  # fmt: skip
    if not threads:
        msg = "no checkpoint was stored by " + ", ".join(f"run {each!r}" for each in run_ids)
        raise CommandError(Exit.NOT_FOUND, msg)
    if not dry_run:
        question = (
            f"Delete what {counted(len(run_ids), 'run')} stored in {counted(len(threads), 'thread')} of table"
        )
        desk.confirm(f"{question} {desk.options.table_name}?", yes=yes)
        desk.saver.delete_for_runs(run_ids)
    verb = "would be deleted from" if dry_run else "deleted from"
    if desk.output.as_json:
        desk.output.json({verb: threads})
    else:
        desk.output.field(verb, ", ".join(threads))


def _say_what_would_be(desk: Desk, found: list[str], parallel: int) -> None:
    seen: list[Overview] = []

    def one(thread_id: str) -> None:
        check_exists(desk, thread_id)
        seen.append(desk.run(overview(desk.table, thread_id)))

    served = serve(desk, "measuring threads", found, one, parallel=parallel)
    totals = {"items": sum(each.items for each in seen), "bytes": sum(each.bytes for each in seen)}
    conclude(desk, "would delete", served, totals)
