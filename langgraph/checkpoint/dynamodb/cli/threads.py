"""`threads`: which threads a table has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds, stored_at
from langgraph.checkpoint.dynamodb._operations.survey import (
    Overview,
    overview,
    scan_threads,
    threads_of_run,
)
from langgraph.checkpoint.dynamodb._runtime.steps import gather
from langgraph.checkpoint.dynamodb.cli.desk import Desk
from langgraph.checkpoint.dynamodb.cli.moments import moment
from langgraph.checkpoint.dynamodb.cli.values import sized

# How many threads are looked over side by side.
_THREADS_AT_ONCE = 8
_HEADER = ("thread", "last step", "stored", "checkpoints", "items", "size", "waiting", "expires", "problem")


def threads(
    desk: Desk,
    *,
    run_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only the threads of a run, found by the index without a scan."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many threads to list at most; 0 lists all.")
    ] = 50,
) -> None:
    """List threads: size, last step, waiting or not, expiry.

    Without --run-id the table is scanned, as far as the limit asks; what that may read and cost is said before. Nothing
    that is stored is deserialized. "Waiting" is a task of the newest checkpoint that called interrupt().
    """
    found = threads_to_look_at(desk, run_id, limit)
    overviews: list[Overview] = []
    with desk.output.progress("looking at threads", len(found)) as bar:
        for some in _groups(found):
            overviews += desk.run(gather([overview(desk.table, each) for each in some]))
            bar.advance(len(some))
    overviews.sort(key=lambda each: each.checkpoint_id or "", reverse=True)
    if desk.output.as_json:
        desk.output.json([_as_json(each) for each in overviews])
    else:
        desk.output.table(_HEADER, map(_row, overviews))
    if limit and len(found) >= limit:
        desk.output.note(f"There may be more than these {limit}: --limit 0 lists all.")


def threads_to_look_at(desk: Desk, run_id: str | None, limit: int) -> Sequence[str]:
    """The threads of a run, or of the table, up to a limit where that is not 0."""
    found = list(all_threads(desk, limit)) if run_id is None else desk.run(threads_of_run(desk.table, run_id))
    return found[:limit] if limit else found


def all_threads(desk: Desk, limit: int = 0) -> Iterator[str]:
    """The threads that a scan finds, until it has found enough; says before what it reads and costs."""
    extent = desk.announce_scan()
    count = 0
    with desk.output.progress("scanning items", None if extent is None else extent.items) as bar:
        for page in desk.stream(scan_threads(desk.table)):
            yield from page.thread_ids
            count += len(page.thread_ids)
            bar.advance(page.scanned_items)
            if limit and count >= limit:
                return


def _groups(found: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(found), _THREADS_AT_ONCE):
        yield found[start : start + _THREADS_AT_ONCE]


def _as_json(found: Overview) -> dict[str, Any]:
    stored = stored_at(found.checkpoint_id)
    return {**asdict(found), "stored_at": stored and stored.isoformat()}


def _row(found: Overview) -> Sequence[object]:
    step = None if found.step is None else f"{found.step} ({found.source})"
    return (
        found.thread_id,
        step,
        moment(stored_at(found.checkpoint_id)),
        found.checkpoints,
        found.items,
        sized(found.bytes),
        found.waiting,
        moment(in_epoch_seconds(found.expires_at)),
        found.problem or "",
    )
