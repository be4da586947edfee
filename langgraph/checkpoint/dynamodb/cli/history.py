"""`history`: a thread's checkpoints, a line for each."""

from __future__ import annotations

from itertools import islice, zip_longest
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
    """List a thread's checkpoints, the newest first.

    At a fork, the line says which checkpoint it continues. Only the checkpoints themselves are read, without their
    values. The namespaces of subgraphs are listed at the end.
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
    for line, older in zip_longest(found, found[1:]):
        context.output.text(_text(line, older))
    if limit and next(stream, None) is not None:
        context.output.note(f"There are older ones than these {limit}: --limit 0 lists all.")
    names = {each.namespace for each in context.run(namespaces(context.storage, partition))} - {namespace}
    if names:
        context.output.note(f"Other namespaces: {', '.join(map(repr, sorted(names)))}")


def _as_json(line: Line) -> dict[str, Any]:
    stored = stored_at(line.checkpoint_id)
    return {**vars(line), "stored_at": stored and stored.isoformat()}


def _text(line: Line, older: Line | None) -> str:
    metadata = line.metadata or {}
    is_fork = older is not None and line.parent_id != older.checkpoint_id
    parts = [
        line.checkpoint_id,
        moment(stored_at(line.checkpoint_id)),
        "encrypted" if line.metadata is None else f"step {metadata.get('step')}, {metadata.get('source')}",
        f"{counted(line.tasks, 'task')} with writes" if line.tasks else None,
        {"waiting": "WAITING FOR A HUMAN", "failed": "FAILED"}.get(line.status),
        f"continues {line.parent_id or 'nothing'}" if is_fork else None,
    ]
    return "  ".join(filter(None, parts))
