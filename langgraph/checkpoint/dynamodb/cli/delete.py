"""`delete`: threads, or what runs stored in them."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb._operations.survey import Overview, overview, threads_of_run
from langgraph.checkpoint.dynamodb._runtime.steps import gather
from langgraph.checkpoint.dynamodb.cli.command import DryRun, Yes
from langgraph.checkpoint.dynamodb.cli.desk import Desk
from langgraph.checkpoint.dynamodb.cli.many import Done, From, Parallel, ThreadIds, chosen, conclude, serve
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
    recovery. A thread that is not there is no error, so a command that was interrupted can be repeated.
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
    served = serve(desk, "deleting", found, desk.saver.delete_thread, parallel=parallel, done=done)
    conclude(desk, "deleted", served)


def _delete_runs(desk: Desk, run_ids: list[str], *, yes: bool, dry_run: bool) -> None:
    threads = sorted({
        each for found in desk.run(gather([threads_of_run(desk.table, run) for run in run_ids])) for each in found
    })  # fmt: skip
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
        desk.output.field(verb, ", ".join(threads) or "no thread")


def _say_what_would_be(desk: Desk, found: list[str], parallel: int) -> None:
    seen: list[Overview] = []

    def one(thread_id: str) -> None:
        seen.append(desk.run(overview(desk.table, thread_id)))

    served = serve(desk, "measuring threads", found, one, parallel=parallel)
    totals = {"items": sum(each.items for each in seen), "bytes": sum(each.bytes for each in seen)}
    conclude(desk, "would delete", served, totals)
