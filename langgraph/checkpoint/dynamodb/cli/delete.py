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
    Served,
    ThreadIds,
    check_exists,
    chosen,
    conclude,
    serve,
)
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.person import Memories, Person, person_of
from langgraph.checkpoint.dynamodb.cli.threads import Owner
from langgraph.checkpoint.dynamodb.cli.values import counted


def delete(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    owner: Owner = None,
    memories: Memories = None,
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

    It deletes a thread with everything that the thread ever stored. Only a backup or point-in-time recovery can bring
    it back. If a thread does not exist, the command deletes the others, and ends with exit code 3. --owner erases
    what a person has stored. At the end, it says what it did not look at.
    """
    if sum((bool(thread_ids or file), bool(run_ids), owner is not None)) > 1:
        raise CommandError(Exit.USAGE, "give only one of threads, --owner and --run-id")
    if memories and owner is None:
        raise CommandError(Exit.USAGE, "--memories needs --owner; `memories delete` deletes a namespace")
    if run_ids and done is not None:
        raise CommandError(Exit.USAGE, "--done records threads; leave it out with --run-id")
    if owner is not None:
        person = person_of(context, owner, memories)
        _delete_person(context, person, parallel=parallel, done=done, yes=yes, dry_run=dry_run)
        return
    if run_ids:
        _delete_runs(context, run_ids, yes=yes, dry_run=dry_run)
        return
    found = chosen(context, thread_ids, file, done=done)
    if dry_run:
        measured, totals = _measured(context, found, parallel, must_exist=True)
        conclude(context, "would delete", measured, totals)
        return
    context.confirm(
        f"Delete {counted(len(found), 'thread')} from table {context.options.table_name}?", yes=yes
    )

    def one(thread_id: str) -> None:
        check_exists(context, thread_id)
        context.saver.delete_thread(thread_id)

    conclude(context, "deleted", serve(context, "deleting", found, one, parallel=parallel, done=done))


def _delete_person(
    context: CommandContext, person: Person, *, parallel: int, done: Done, yes: bool, dry_run: bool
) -> None:
    found, memories = person.thread_ids, person.count_memories()
    if dry_run:
        measured, totals = _measured(context, found, parallel, must_exist=False)
        person.note_unreadable(measured)
        conclude(context, "would delete", measured, {**totals, "memories": memories}, person.report())
        return
    what = f"{counted(len(found), 'thread')} and {counted(memories, 'memory', 'memories')}"
    context.confirm(f"Delete {what} from table {context.options.table_name}?", yes=yes)
    # The person may have gone on with a thread that an earlier run deleted.
    served = serve(
        context, "deleting", found, context.saver.delete_thread, parallel=parallel, done=done, again=True
    )
    erased = person.erase_memories()
    person.note_what_continued(served, parallel=parallel)
    person.note_what_is_new(served)
    person.note_unreadable(served)
    conclude(context, "deleted", served, {"memories": erased}, person.report())
    person.check_no_memory_is_left()


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
    context.output.result({verb.replace(" ", "_"): threads}, f"{verb}: {', '.join(threads)}")


def _measured(
    context: CommandContext, found: list[str], parallel: int, *, must_exist: bool
) -> tuple[Served[Overview], dict[str, int]]:
    def one(thread_id: str) -> Overview:
        if must_exist:
            check_exists(context, thread_id)
        return context.run(overview(context.storage, thread_id))

    served = serve(context, "measuring threads", found, one, parallel=parallel)
    seen = served.done.values()
    totals = {"items": sum(each.items for each in seen), "bytes": sum(each.bytes for each in seen)}
    return served, totals
