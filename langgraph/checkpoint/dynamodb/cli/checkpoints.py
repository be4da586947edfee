"""Checkpoints as the commands show them: found by id, or the newest, with values that are safe to look at."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from langgraph.checkpoint.dynamodb._format.content import delta_counters
from langgraph.checkpoint.dynamodb._format.inert import Stored
from langgraph.checkpoint.dynamodb._format.plain import asked, interrupts_in
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.outcome import CommandError, Exit


def found_checkpoint(
    context: CommandContext, thread_id: str, namespace: str, checkpoint_id: str | None = None
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
        msg = f"thread {thread_id!r} has {what}{where}; {hint}"
        raise CommandError(Exit.NOT_FOUND, msg)
    return found


def id_of(found: CheckpointTuple) -> str:
    """Return a checkpoint's id."""
    return str(found.checkpoint["id"])


def parent_of(found: CheckpointTuple) -> str | None:
    """Return the id of a checkpoint's parent."""
    parent = found.parent_config
    return None if parent is None else str(parent["configurable"]["checkpoint_id"])


def values_of(context: CommandContext, found: CheckpointTuple) -> dict[str, Any]:
    """Return a checkpoint's values by channel. For a delta channel, return what it is rebuilt from.

    Only the graph has the reducer of a delta channel.
    """
    values = dict(found.checkpoint["channel_values"])
    deltas = sorted(delta_counters(found.metadata) - values.keys())
    if deltas:
        history = context.read_only_saver.get_delta_channel_history(config=found.config, channels=deltas)
        for name in deltas:
            seed, writes = history[name].get("seed"), [write[2] for write in history[name]["writes"]]
            values[name] = Stored("delta channel", {"from": seed, "writes": writes})
    return values


def interrupts_of(found: CheckpointTuple) -> list[tuple[str, Any]]:
    """Return the interrupts of a checkpoint, with their tasks."""
    return interrupts_in(found.pending_writes or [])


def checkpoint_json(context: CommandContext, found: CheckpointTuple) -> dict[str, Any]:
    """Return all of a checkpoint, for scripts."""
    configurable = found.config["configurable"]
    return {
        "thread_id": configurable["thread_id"],
        "namespace": configurable["checkpoint_ns"],
        "checkpoint_id": id_of(found),
        "parent_id": parent_of(found),
        "stored_at": found.checkpoint.get("ts"),
        "metadata": found.metadata,
        "values": values_of(context, found),
        "versions": found.checkpoint.get("channel_versions", {}),
        "interrupts": [{"task_id": task, "value": asked(each)} for task, each in interrupts_of(found)],
        "pending_writes": [
            {"task_id": task, "channel": channel, "value": value}
            for task, channel, value in found.pending_writes or []
        ],
    }
