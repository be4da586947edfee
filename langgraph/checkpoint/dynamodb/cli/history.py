"""`history`: a thread's checkpoints as a tree that shows every fork."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb._operations.overview import Line, lines
from langgraph.checkpoint.dynamodb._operations.threads import namespaces
from langgraph.checkpoint.dynamodb.cli.command import Limit, Namespace, ThreadId
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.moments import moment
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit
from langgraph.checkpoint.dynamodb.cli.values import counted


def history(
    context: CommandContext,
    thread_id: ThreadId,
    *,
    namespace: Namespace = "",
    limit: Limit = 100,
) -> None:
    """Show a thread's checkpoints as a tree with its forks.

    The oldest comes first, and a fork is indented. Only the checkpoints themselves are read, without their values.
    The namespaces of subgraphs are listed at the end.
    """
    partition = items.partition_of(thread_id, namespace)
    stream = context.stream(lines(context.read_only_saver.storage, partition))
    found = list(islice(stream, limit or None))
    if not found:
        where = f" in namespace {namespace!r}" if namespace else ""
        msg = f"thread {thread_id!r} has no checkpoint{where}; `threads` lists them"
        raise CommandError(Exit.NOT_FOUND, msg)
    if context.output.as_json:
        context.output.json([_as_json(each) for each in found])
        return
    for depth, line in tree(found):
        context.output.text(f"{'│ ' * depth}{_text(line, newest=line is found[0])}")
    if limit and next(stream, None) is not None:
        context.output.note(f"There are older ones than these {limit}: --limit 0 lists all.")
    names = {each.namespace for each in context.run(namespaces(context.storage, partition))} - {namespace}
    if names:
        context.output.note(f"Other namespaces: {', '.join(map(repr, sorted(names)))}")


def tree(found: Sequence[Line]) -> Iterator[tuple[int, Line]]:
    """Yield each checkpoint with its depth. At a fork, the branch with the newest checkpoint keeps the fork's depth."""
    by_id = {each.checkpoint_id: each for each in found}
    children: dict[str | None, list[Line]] = {}
    newest_below: dict[str, str] = {}
    # A child is stored after its parent, so newest first means children first.
    for each in sorted(found, key=lambda line: line.checkpoint_id, reverse=True):
        parent = each.parent_id if each.parent_id in by_id else None
        children.setdefault(parent, []).append(each)
        newest = newest_below.setdefault(each.checkpoint_id, each.checkpoint_id)
        if parent is not None:
            newest_below[parent] = max(newest, newest_below.get(parent, ""))
    waiting = _branches(children.get(None, ()), newest_below, 0)
    while waiting:
        depth, line = waiting.pop()
        yield depth, line
        waiting += _branches(children.pop(line.checkpoint_id, ()), newest_below, depth)


def _branches(
    children: Sequence[Line], newest_below: Mapping[str, str], depth: int
) -> list[tuple[int, Line]]:
    """Return branches in reverse order. The branch with the newest checkpoint is last in the tree and not indented."""
    ordered = sorted(children, key=lambda line: newest_below[line.checkpoint_id], reverse=True)
    return [(depth + (position > 0), each) for position, each in enumerate(ordered)]


def _as_json(line: Line) -> dict[str, Any]:
    stored = stored_at(line.checkpoint_id)
    return {**vars(line), "stored_at": stored and stored.isoformat()}


def _text(line: Line, *, newest: bool) -> str:
    metadata = line.metadata or {}
    parts = [
        f"{'●' if newest else '○'} {line.checkpoint_id}",
        moment(stored_at(line.checkpoint_id)),
        "encrypted" if line.metadata is None else f"step {metadata.get('step')}, {metadata.get('source')}",
        f"{counted(line.tasks, 'task')} with writes" if line.tasks else None,
        "WAITING FOR A HUMAN" if line.waiting else None,
        "FAILED" if line.failed else None,
    ]
    return "  ".join(filter(None, parts))
