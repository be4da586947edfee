"""`diff`: the changes between two checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from langgraph.checkpoint.dynamodb.cli.checkpoints import found_checkpoint, id_of, parent_of, values_of
from langgraph.checkpoint.dynamodb.cli.command import Full, Namespace, ThreadId
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import brief
from langgraph.checkpoint.dynamodb.view.changes import Difference, common, differences

_CUT = 200


def diff(
    context: CommandContext,
    thread_id: ThreadId,
    *,
    before: Annotated[
        str | None, typer.Option("--from", metavar="ID", help="The checkpoint before; otherwise the parent.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--to", metavar="ID", help="The checkpoint after; otherwise the newest one.")
    ] = None,
    namespace: Namespace = "",
    full: Full = False,
) -> None:
    """Show what changed between two checkpoints.

    For a list it shows what was added, removed and moved, for an object the keys that changed. Long values are cut,
    with their size; --json prints everything.
    """
    later = found_checkpoint(context, thread_id, namespace, after)
    parent = parent_of(later) if before is None else before
    if parent is None:
        msg = f"checkpoint {id_of(later)!r} has no parent; give --from"
        raise CommandError(Exit.NOT_FOUND, msg)
    earlier = found_checkpoint(context, thread_id, namespace, parent)
    before_values, after_values = (
        dict(sorted(values_of(context, each).items())) for each in (earlier, later)
    )
    found = list(differences(before_values, after_values))
    if context.output.as_json:
        rows = [_as_json(each) for each in found]
        context.output.json({"from": id_of(earlier), "to": id_of(later), "changes": rows})
        return
    context.output.note(f"from {id_of(earlier)} to {id_of(later)}")
    if not found:
        context.output.note("no channel changed")
    for each in found:
        _print(context, each, None if full else _CUT)


def _as_json(found: Difference) -> dict[str, Any]:
    sides = {"gone": ("before",), "added": ("after",), "changed": ("before", "after")}.get(found.kind, ())
    paths = {"before_path": found.before_path, "path": found.path}
    return {"change": found.kind, **paths, **{side: getattr(found, side) for side in sides}}


def _print(context: CommandContext, found: Difference, limit: int | None) -> None:
    """Print what is gone after a minus, and what is new after a plus. A long text begins near its first difference."""
    before, after, start = found.before, found.after, 0
    if limit is not None and isinstance(before, str) and isinstance(after, str):
        start = max(0, common(before, after) - limit // 4)
        before, after = before[start:], after[start:]
    mark = "…" if start else ""
    if found.kind in ("gone", "changed"):
        context.output.text(f"- {_place(found.before_path)}: {mark}{brief(before, limit)}", "red")
    if found.kind in ("added", "changed"):
        context.output.text(f"+ {_place(found.path)}: {mark}{brief(after, limit)}", "green")
    if found.kind == "moved":
        context.output.text(f"> {_place(found.before_path)} is at {_place(found.path)}")


def _place(path: Sequence[str | int] | None) -> str:
    parts = (f"[{each}]" if isinstance(each, int) else f".{each}" for each in path or ())
    return "".join(parts).removeprefix(".")
