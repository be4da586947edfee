"""`copy`: copies of threads under other ids."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb._operations.overview import measure_thread
from langgraph.checkpoint.dynamodb._operations.usage import Account, account_of
from langgraph.checkpoint.dynamodb.cli.command import DryRun, Yes
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.many import (
    Done,
    From,
    Parallel,
    check_exists,
    chosen,
    conclude,
    serve,
)
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import counted


def copy(
    context: CommandContext,
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help="The thread to copy.")] = None,
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help="The id of the copy.")] = None,
    *,
    file: From = None,
    parallel: Parallel = 4,
    done: Done = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Copy threads to other ids.

    It copies every checkpoint with its pending writes. If the target has other checkpoints, they stay. A file has a
    source and a target on each line, with a tab between them.
    """
    pairs = _pairs(context, source, target, file, done)
    if dry_run:
        _say_what_would_be(context, pairs, parallel)
        return
    context.confirm(
        f"Copy {counted(len(pairs), 'thread')} within table {context.options.table_name}?", yes=yes
    )

    def one(pair: str) -> None:
        context.saver.copy_thread(*pairs[pair])

    served = serve(context, "copying", list(pairs), one, parallel=parallel, done=done)
    conclude(context, "copied", served)


def _pairs(
    context: CommandContext, source: str | None, target: str | None, file: From, done: Done
) -> dict[str, tuple[str, str]]:
    """Return sources and targets, by the lines that name them."""
    if source is not None and target is None:
        raise CommandError(
            Exit.USAGE, "the id of the copy is missing; give two ids, the thread's and the copy's"
        )
    given = [] if source is None else [f"{source}\t{target}"]
    pairs = {}
    for line in chosen(context, given, file, done=done):
        parts = line.split("\t")
        if len(parts) != 2 or not all(parts):
            msg = f"{line!r} is not a source and a target with a tab between them"
            raise CommandError(Exit.USAGE, msg)
        pairs[line] = (parts[0], parts[1])
    sources = dict[str, str]()
    for thread_id, copy_id in pairs.values():
        other = sources.setdefault(copy_id, thread_id)
        if other != thread_id:
            msg = (
                f"{other!r} and {thread_id!r} are both to be copied to {copy_id!r}; give each copy its own id"
            )
            raise CommandError(Exit.USAGE, msg)
    return pairs


def _say_what_would_be(context: CommandContext, pairs: dict[str, tuple[str, str]], parallel: int) -> None:
    def one(pair: str) -> Account:
        check_exists(context, pairs[pair][0])
        return account_of(context.run(measure_thread(context.storage, pairs[pair][0])))

    served = serve(context, "measuring threads", list(pairs), one, parallel=parallel)
    accounts = served.done.values()
    totals = {
        "checkpoints": sum(len(each.steps) for each in accounts),
        "items": sum(each.total.items for each in accounts),
        "bytes": sum(each.total.bytes for each in accounts),
        "write_units": sum(step.write_units for each in accounts for step in each.steps),
    }
    conclude(context, "would copy", served, totals)
