"""`directory`: enter the threads of an existing table in the directory that lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from .._format.pricing import WRITE_UNIT_DOLLARS
from .._operations.entries import enter_thread
from .command import DryRun, Yes
from .context import CommandContext
from .many import From, Parallel, ThreadIds, check_owned, chosen, conclude, serve
from .outcome import CommandError, Exit
from .values import counted, priced

# The thread item and its entries in two indexes.
_WRITE_UNITS = 3


def directory(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    owner_from: Annotated[
        str,
        typer.Option(
            "--owner-from", metavar="KEY", help="The key of a checkpoint's metadata with the owner."
        ),
    ] = "user_id",
    parallel: Parallel = 4,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Enter existing threads in the directory that lists them.

    Without threads as arguments, it scans the table and enters all threads. It first says what the scan reads and
    costs, and asks before it writes. The owner comes from the oldest checkpoint whose metadata name one, because
    LangGraph keeps the keys of a config there. Threads that are already in the directory stay as they are, so you can
    repeat the command. There are two exceptions: a thread without an owner gets one, and if the saver encrypts, it
    encrypts owners that are still readable.

    If no checkpoint of a thread names an owner, the thread is entered without one, and --owner of other commands does
    not find it. The command lists such threads, and ends with exit code 8.
    """
    if not owner_from:
        msg = "--owner-from is empty; give a key of the metadata, such as user_id"
        raise CommandError(Exit.USAGE, msg)
    found = chosen(context, thread_ids, file, scan=not thread_ids and file is None)
    units = _WRITE_UNITS * len(found)
    cost = f"up to {priced(units, 'write unit', WRITE_UNIT_DOLLARS)}"
    what = f"{counted(len(found), 'thread')} of table {context.options.table_name}"
    if dry_run:
        context.output.result({"would_enter": found, "write_units": units}, f"would enter: {what}, {cost}")
        return
    context.confirm(f"Enter {what} in the directory, for {cost}?", yes=yes)

    def one(thread_id: str) -> str | None:
        return context.run(enter_thread(context.storage, thread_id, owner_from))

    served = serve(context, "entering", found, one, parallel=parallel)
    ownerless = sorted(each for each, owner in served.done.items() if owner is None)
    totals = {"with_owner": len(served.done) - len(ownerless), "without_owner": len(ownerless)}
    conclude(context, "entered", served, totals, {"threads_without_owner": ownerless} if ownerless else None)
    check_owned(len(ownerless), owner_from)
