"""`diff`: the changes between two checkpoints."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from langgraph.checkpoint.dynamodb._format.plain import as_json
from langgraph.checkpoint.dynamodb.cli.checkpoints import found_checkpoint, id_of, parent_of, values_of
from langgraph.checkpoint.dynamodb.cli.command import Full, Namespace, ThreadId
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import brief, cut

_CUT = 200


class ChannelDiff(NamedTuple):
    """A channel whose value changed, is new, or is gone."""

    channel: str
    change: str
    sides: Mapping[str, Any]
    """The values `before` and `after`, as far as there are any."""


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

    For a list it shows what was added and removed, for an object the keys that changed. Long values are cut, with
    their size; --json prints everything.
    """
    later = found_checkpoint(context, thread_id, namespace, after)
    parent = parent_of(later) if before is None else before
    if parent is None:
        msg = f"checkpoint {id_of(later)!r} has no parent; give --from"
        raise CommandError(Exit.NOT_FOUND, msg)
    earlier = found_checkpoint(context, thread_id, namespace, parent)
    found = list(changes(values_of(context, earlier), values_of(context, later)))
    if context.output.as_json:
        rows = [{"channel": channel, "change": change, **sides} for channel, change, sides in found]
        context.output.json({"from": id_of(earlier), "to": id_of(later), "changes": rows})
        return
    context.output.note(f"from {id_of(earlier)} to {id_of(later)}")
    if not found:
        context.output.note("no channel changed")
    for each in found:
        context.output.text(f"{each.channel} ({each.change})", "bold")
        for line in _lines(each.sides, None if full else _CUT):
            context.output.text(f"  {line}", "green" if line.startswith("+") else "red")


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ChannelDiff]:
    """Yield the channels that differ, by name."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield ChannelDiff(name, "added", {"after": after[name]})
        elif name not in after:
            yield ChannelDiff(name, "removed", {"before": before[name]})
        elif as_json(before[name]) != as_json(after[name]):
            yield ChannelDiff(name, "changed", {"before": before[name], "after": after[name]})


def _lines(sides: Mapping[str, Any], limit: int | None) -> Iterator[str]:
    """Yield removed entries after a minus, and added ones after a plus. Entries are compared before they are cut."""
    before, after = (_entries(sides[side]) if side in sides else [] for side in ("before", "after"))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for operation, *ranges in matcher.get_opcodes():
        if operation != "equal":
            gone, new = slice(*ranges[:2]), slice(*ranges[2:])
            yield from (f"- {cut(each, limit)}".replace("\n", "\n    ") for each in before[gone])
            yield from (f"+ {cut(each, limit)}".replace("\n", "\n    ") for each in after[new])


def _entries(value: Any) -> list[str]:
    """Split a value into pieces that are compared one by one."""
    if isinstance(value, Mapping):
        return [f"{key}: {brief(each, None)}" for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [brief(each, None) for each in value]
    return brief(value, None).split("\n")
