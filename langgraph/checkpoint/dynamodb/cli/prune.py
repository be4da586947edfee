"""`prune`: removal of old checkpoints from threads."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Annotated

import typer

from .._format.moments import stored_at
from .._operations.delete import Forecast, foresee_prune, is_of_any_age, prune_thread
from .command import DryRun, Yes
from .context import CommandContext
from .many import AllThreads, From, KeepLast, Parallel, ThreadIds, check_all_or_named, chosen, conclude, serve
from .values import counted, parse_age


def prune(
    context: CommandContext,
    thread_ids: ThreadIds = None,
    *,
    file: From = None,
    all_threads: AllThreads = False,
    keep_last: KeepLast = 1,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            metavar="AGE",
            parser=parse_age,
            help="Remove only checkpoints that are older, such as 30d, 12h or 2w.",
        ),
    ] = None,
    parallel: Parallel = 4,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Remove old checkpoints from threads.

    It also removes writes and values that only these checkpoints need, and keeps what delta channels are rebuilt from.
    Agents can keep running. Ages come from LangGraph's checkpoint ids; checkpoints with other ids never count as old.
    """
    check_all_or_named(thread_ids, file, all_threads=all_threads)
    found = chosen(context, thread_ids, file, scan=all_threads)
    now = datetime.now(timezone.utc)
    is_old = is_of_any_age if older_than is None else partial(_is_older, now, older_than)
    if dry_run:

        def foresee(thread_id: str) -> Forecast:
            return context.run(foresee_prune(context.storage, thread_id, keep_last, is_old))

        served = serve(context, "counting", found, foresee, parallel=parallel, must_exist=not all_threads)
        totals = Counter[str]()
        for each in served.done.values():
            totals.update(asdict(each))
        conclude(context, "would prune", served, totals)
        return
    aged = "" if older_than is None else f" of those older than {older_than}"
    kept = "the newest checkpoint" if keep_last == 1 else f"the newest {keep_last} checkpoints"
    what = f"{counted(len(found), 'thread')} of table {context.options.table_name}"
    context.confirm(f"Prune {what}, and keep{aged} {kept} of each namespace?", yes=yes)

    def one(thread_id: str) -> None:
        context.run(prune_thread(context.storage, thread_id, keep_last, is_old))

    conclude(
        context,
        "pruned",
        serve(context, "pruning", found, one, parallel=parallel, must_exist=not all_threads),
    )


def _is_older(now: datetime, age: timedelta, checkpoint_id: str) -> bool:
    stored = stored_at(checkpoint_id)
    return stored is not None and now - stored > age
