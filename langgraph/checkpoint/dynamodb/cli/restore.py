"""`restore`: one thread from a restored table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb._runtime.options import is_table_name
from langgraph.checkpoint.dynamodb.cli.command import DryRun, ThreadId, Yes
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import counted
from langgraph.checkpoint.dynamodb.migrate import Prospect, Restoration, TableEndpoint


def restore(
    context: CommandContext,
    thread_id: ThreadId,
    *,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TABLE",
            help="The name or ARN of the table that was restored to a point in time.",
        ),
    ],
    as_id: Annotated[
        str | None,
        typer.Option("--as", metavar="ID", help="Restore it under another id, beside the one in use."),
    ] = None,
    keep_as: Annotated[
        str | None,
        typer.Option(
            "--keep-as",
            metavar="ID",
            help="The id for a copy of the thread as it is now; by default THREAD.before-TABLE.",
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Restore one thread from a table restored to a point in time.

    It restores all checkpoints, writes and subgraphs, and keeps the thread as it is now under another id. Stop the
    thread's agent first, unless it takes the thread's lock. Run the same command again to continue after an
    interruption.
    """
    if not is_table_name(source):
        msg = f"--from {source!r} cannot be the name of a table; give the name or ARN of the restored table"
        raise CommandError(Exit.USAGE, msg)
    restoration = Restoration(TableEndpoint(context.saver), source, thread_id, as_id=as_id, keep_as=keep_as)
    prospect, to = restoration.look(), thread_id if as_id is None else as_id
    if not dry_run and not prospect.is_restored:
        context.confirm(f"{_would(prospect, to, source, context)}?", yes=yes)
        prospect = restoration.run()
    if prospect.is_restored:
        text = f"{to}: already the same as in table {source}"
    elif dry_run:
        text = f"would do: {_would(prospect, to, source, context)}"
    else:
        kept = "" if prospect.kept_as is None else f"; the previous thread is kept as {prospect.kept_as}"
        text = f"{to}: {counted(prospect.checkpoints, 'checkpoint')} restored{kept}"
    context.output.result({"thread_id": to, "restored": not dry_run, **asdict(prospect)}, text)


def _would(prospect: Prospect, to: str, source: str, context: CommandContext) -> str:
    kept = (
        ""
        if prospect.kept_as is None
        else f", and keep the {prospect.present:,} that it has as {prospect.kept_as!r}"
    )
    return (
        f"Restore {counted(prospect.checkpoints, 'checkpoint')} from table {source} to thread {to!r} of table"
        f" {context.options.table_name}{kept}"
    )
