"""`copy`: a copy of a thread, within the table or from another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from .._format.items import Partition
from .._operations.copy import checked_places, copy_thread
from .._operations.overview import is_stored
from .._operations.thread_item import read_thread
from .._runtime.cache import Cache
from .._runtime.options import is_table_name
from .._runtime.storage import Storage
from .command import DryRun, Yes
from .context import CommandContext
from .outcome import CommandError, Exit


def copy(
    context: CommandContext,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The thread to copy.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The id of the copy.")],
    *,
    from_table: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TABLE",
            help="The name or ARN of the table that has the thread, such as one restored to a point in time.",
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Copy a thread to another id, or from another table.

    It copies every checkpoint with its pending writes, as it is stored. If the target has other checkpoints, they stay,
    and the command says so. The copy has the owner, the title and the metadata of the thread, and the ttl of the
    configuration. If the command is interrupted, run it again.
    """
    read = context.storage if from_table is None else _storage_of(context, from_table)
    places = checked_places(read, context.storage, source, target)
    if not context.run(is_stored(read, source)):
        msg = f"table {read.table.name} has no thread {source!r}; `threads` lists those that there are"
        raise CommandError(Exit.NOT_FOUND, msg)
    present = context.run(is_stored(context.storage, target))
    beside = ", beside what it has" if present else ""
    what = (
        f"thread {source!r} of table {read.table.name} to thread {target!r} of table"
        f" {context.options.table_name}{beside}"
    )
    _say_which_ttl(context, read, *places)
    document = {"source": source, "target": target, "present": present}
    if not dry_run:
        context.confirm(f"Copy {what}?", yes=yes)
        context.run(copy_thread(context.storage, source, target, source_storage=read))
    verb = "would copy" if dry_run else "copied"
    context.output.result({**document, "copied": not dry_run}, f"{verb}: {what}")


def _say_which_ttl(context: CommandContext, read: Storage, source: Partition, target: Partition) -> None:
    """Say so if the copy has another ttl than the thread: without a configuration it would never expire."""
    thread = context.run(read_thread(read, source))
    there = context.run(read_thread(context.storage, target))
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
