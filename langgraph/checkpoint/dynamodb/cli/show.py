"""`show`: the contents of one checkpoint, with values that are safe to look at. `history`: a thread's checkpoints."""

from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR

from .._format import content, items, moments
from .._format.inert import Stored, asked, interrupts_in
from .._operations.overview import Line, lines
from .._operations.thread_item import namespaces
from . import CommandError, Exit
from .command import Limit, Namespace, ThreadId
from .context import CommandContext
from .output import brief, counted, moment

_CUT = 500


def show(
    context: CommandContext,
    thread_id: ThreadId,
    *,
    checkpoint: str | None = None,
    namespace: Namespace = "",
    full: bool = False,
) -> None:
    """Show a checkpoint: state, pending writes, interrupts.

    Messages are printed as a conversation. Nothing that a value names is imported or run, so objects are printed as
    their fields. Long values are cut, with their size; --json prints everything.

    Options:
        checkpoint ID: A checkpoint's id; otherwise the newest one.
        full: Show long values in full.
    """
    found = _found(context, thread_id, namespace, checkpoint)
    shown = _described(context, found)
    if context.output.as_json:
        context.output.json(shown)
        return
    limit = None if full else _CUT
    metadata, writes = found.metadata, shown["pending_writes"]
    head = {
        "thread": thread_id,
        "namespace": namespace,
        "checkpoint": shown["checkpoint_id"],
        "parent": shown["parent_id"],
        "stored": shown["stored_at"],
        "step": metadata.get("step"),
        "source": metadata.get("source"),
        "run": metadata.get("run_id"),
    }
    for name, value in head.items():
        if value not in (None, ""):
            context.output.field(name, str(value))
    _section(context, "State", sorted(shown["values"].items()), limit)
    named = [(f"{each['task_id']} → {each['channel']}", each["value"]) for each in writes]
    _section(context, "Pending writes", named, limit)
    questions = [(each["task_id"], each["value"]) for each in shown["interrupts"]]
    _section(context, "Waiting for a human", questions, limit)
    failed = [(each["task_id"], each["value"]) for each in writes if each["channel"] == ERROR]
    _section(context, "Failed", failed, limit)


def _found(
    context: CommandContext, thread_id: str, namespace: str, checkpoint_id: str | None
) -> CheckpointTuple:
    """Return a checkpoint with values that are safe to look at.

    Raises:
        CommandError: There is no such checkpoint, or its id is empty.
    """
    if checkpoint_id == "":
        # LangGraph takes it for the newest one. A script whose variable is not set did not ask for that.
        raise CommandError(
            Exit.USAGE, "the id of a checkpoint is empty; `history` shows those that there are"
        )
    wanted = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if checkpoint_id is not None:
        wanted["checkpoint_id"] = checkpoint_id
    found = context.read_only_saver.get_tuple({"configurable": wanted})
    if found is None:
        where = f" in namespace {namespace!r}" if namespace else ""
        what, hint = "no checkpoint", "`threads` lists the threads that there are"
        if checkpoint_id is not None:
            what, hint = f"no checkpoint {checkpoint_id!r}", "`history` shows those that it has"
        raise CommandError(Exit.NOT_FOUND, f"thread {thread_id!r} has {what}{where}; {hint}")
    return found


def _values(context: CommandContext, found: CheckpointTuple) -> dict[str, Any]:
    """Return a checkpoint's values by channel. For a delta channel, return what it is rebuilt from.

    Only the graph has the reducer of a delta channel.
    """
    values = dict(found.checkpoint["channel_values"])
    deltas = sorted(content.delta_counters(found.metadata) - values.keys())
    if deltas:
        history = context.read_only_saver.get_delta_channel_history(config=found.config, channels=deltas)
        for name in deltas:
            seed, writes = history[name].get("seed"), [write[2] for write in history[name]["writes"]]
            values[name] = Stored("delta channel", {"from": seed, "writes": writes})
    return values


def _described(context: CommandContext, found: CheckpointTuple) -> dict[str, Any]:
    """Return all of a checkpoint."""
    configurable, parent = found.config["configurable"], found.parent_config
    writes = found.pending_writes or []
    return {
        "thread_id": configurable["thread_id"],
        "namespace": configurable["checkpoint_ns"],
        "checkpoint_id": found.checkpoint["id"],
        "parent_id": None if parent is None else parent["configurable"]["checkpoint_id"],
        "stored_at": found.checkpoint.get("ts"),
        "metadata": found.metadata,
        "values": _values(context, found),
        "versions": found.checkpoint.get("channel_versions", {}),
        "interrupts": [{"task_id": task, "value": asked(each)} for task, each in interrupts_in(writes)],
        "pending_writes": [
            {"task_id": task, "channel": channel, "value": value} for task, channel, value in writes
        ],
    }


def _section(
    context: CommandContext, title: str, named: Sequence[tuple[str, Any]], limit: int | None
) -> None:
    """Print named values below a title, or nothing if there are none."""
    if named:
        context.output.text(f"\n{title}", "bold")
    for name, value in named:
        context.output.field(name, brief(value, limit))


def history(
    context: CommandContext, thread_id: ThreadId, *, namespace: Namespace = "", limit: Limit = 100
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
    stored = moments.stored_at(line.checkpoint_id)
    return {**vars(line), "stored_at": stored and stored.isoformat()}


def _text(line: Line, older: Line | None) -> str:
    metadata = line.metadata or {}
    is_fork = older is not None and line.parent_id != older.checkpoint_id
    parts = [
        line.checkpoint_id,
        moment(moments.stored_at(line.checkpoint_id)),
        "encrypted" if line.metadata is None else f"step {metadata.get('step')}, {metadata.get('source')}",
        f"{counted(line.tasks, 'task')} with writes" if line.tasks else None,
        {"waiting": "WAITING FOR A HUMAN", "failed": "FAILED"}.get(line.status),
        f"continues {line.parent_id or 'nothing'}" if is_fork else None,
    ]
    return "  ".join(filter(None, parts))
