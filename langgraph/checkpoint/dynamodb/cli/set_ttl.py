"""`set-ttl`: another ttl for existing threads."""

from __future__ import annotations

from typing import Annotated

import typer

from langgraph.checkpoint.dynamodb._format.limits import TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.pricing import WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb.cli.command import DryRun, Yes
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.many import From, Parallel, Served, ThreadIds, chosen, conclude, serve
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import counted
from langgraph.checkpoint.dynamodb.migrate import TableEndpoint, TtlChange, TtlProspect


def set_ttl(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    ttl_seconds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=TTL_SECONDS_MAX,
            metavar="N",
            help="The seconds after which a checkpoint expires; otherwise as configured.",
        ),
    ] = None,
    never: Annotated[bool, typer.Option("--never", help="Keep the threads forever.")] = False,
    parallel: Parallel = 4,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Give threads another ttl, counted from now.

    It copies each thread to THREAD.set-ttl, deletes the thread, copies it back with the new ttl, and deletes the copy.
    Stop the threads' agents first, unless they take the thread's lock. Run the same command again to continue after an
    interruption.
    """
    wanted = _wanted(context, ttl_seconds, never=never)
    found = chosen(context, thread_ids, file)
    store = TableEndpoint(context.saver)

    def look(thread_id: str) -> TtlProspect:
        return TtlChange(store, thread_id, wanted).look()

    def change(thread_id: str) -> None:
        TtlChange(store, thread_id, wanted).run()

    served = serve(context, "measuring threads", found, look, parallel=parallel)
    left = {
        each: served.done[each] for each in found if each in served.done and not served.done[each].is_done
    }
    totals = {
        "unchanged": len(served.done) - len(left),
        "checkpoints": sum(each.checkpoints for each in left.values()),
        "write_units": sum(each.write_units for each in left.values()),
    }
    if dry_run:
        conclude(context, "would change", Served(left, 0, served.absent, served.failed), totals)
        return
    changed = Served[None]()
    if left:
        context.confirm(_question(context, len(left), wanted, totals["write_units"]), yes=yes)
        changed = serve(context, "changing ttls", list(left), change, parallel=parallel)
    absent, failed = served.absent | changed.absent, served.failed | changed.failed
    conclude(context, "changed", Served(changed.done, 0, absent, failed), {"unchanged": totals["unchanged"]})


def _wanted(context: CommandContext, ttl_seconds: int | None, *, never: bool) -> int | None:
    """Return the ttl that the threads should have. `None` means forever."""
    if never and ttl_seconds is not None:
        raise CommandError(Exit.USAGE, "give --ttl-seconds or --never, not both")
    if never or ttl_seconds is not None:
        return ttl_seconds
    if context.options.ttl_seconds is None:
        # A ttl that is missing from the configuration may just have been forgotten.
        raise CommandError(Exit.USAGE, "no ttl is configured; give --ttl-seconds, or --never")
    return context.options.ttl_seconds


def _question(context: CommandContext, count: int, ttl_seconds: int | None, write_units: int) -> str:
    ttl = "no ttl" if ttl_seconds is None else f"a ttl of {counted(ttl_seconds, 'second')}"
    return (
        f"Give {counted(count, 'thread')} of table {context.options.table_name} {ttl}, by about"
        f" {counted(write_units, 'write unit')}, ${write_units * WRITE_UNIT_DOLLARS:,.6f} on demand?"
    )
