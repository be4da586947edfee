"""`delete`: threads, or what a person has stored."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._operations.overview import Overview, overview
from langgraph.checkpoint.dynamodb.cli.command import DryRun, Yes
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.many import (
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
    parallel: Parallel = 4,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete threads, or what a person has stored.

    It deletes a thread with everything that the thread ever stored. Only a backup or point-in-time recovery can bring
    it back. If a thread does not exist, the command deletes the others, and ends with exit code 3. --owner erases
    what a person has stored. At the end, it says what it did not look at.
    """
    if owner is not None and (thread_ids or file):
        raise CommandError(Exit.USAGE, "give threads, or --owner, not both")
    if memories and owner is None:
        raise CommandError(Exit.USAGE, "--memories needs --owner; `memories delete` deletes a namespace")
    if owner is not None:
        person = person_of(context, owner, memories)
        _delete_person(context, person, parallel=parallel, yes=yes, dry_run=dry_run)
        return
    found = chosen(context, thread_ids, file)
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

    conclude(context, "deleted", serve(context, "deleting", found, one, parallel=parallel))


def _delete_person(
    context: CommandContext, person: Person, *, parallel: int, yes: bool, dry_run: bool
) -> None:
    found, memories = person.thread_ids, person.count_memories()
    if dry_run:
        measured, totals = _measured(context, found, parallel, must_exist=False)
        person.note_unreadable(measured)
        conclude(context, "would delete", measured, {**totals, "memories": memories}, person.report())
        person.check_has_threads()
        return
    what = f"{counted(len(found), 'thread')} and {counted(memories, 'memory', 'memories')}"
    context.confirm(f"Delete {what} from table {context.options.table_name}?", yes=yes)
    served = serve(context, "deleting", found, context.saver.delete_thread, parallel=parallel)
    erased = person.erase_memories()
    person.look_again(served, parallel=parallel)
    person.note_unreadable(served)
    conclude(context, "deleted", served, {"memories": erased}, person.report())
    person.check_no_memory_is_left()
    person.check_has_threads()


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
