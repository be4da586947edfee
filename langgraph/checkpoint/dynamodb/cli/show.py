"""`show`: the contents of one checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR

from langgraph.checkpoint.dynamodb._format.plain import asked
from langgraph.checkpoint.dynamodb.cli.checkpoints import (
    checkpoint_json,
    found_checkpoint,
    id_of,
    interrupts_of,
    parent_of,
    values_of,
)
from langgraph.checkpoint.dynamodb.cli.command import Full, Namespace, ThreadId
from langgraph.checkpoint.dynamodb.cli.context import CommandContext
from langgraph.checkpoint.dynamodb.cli.values import brief

_CUT = 500


def show(
    context: CommandContext,
    thread_id: ThreadId,
    *,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="ID", help="A checkpoint's id; otherwise the newest one.")
    ] = None,
    namespace: Namespace = "",
    full: Full = False,
) -> None:
    """Show a checkpoint: state, pending writes, interrupts.

    Messages are printed as a conversation. Nothing that a value names is imported or run, so objects are printed as
    their fields. Long values are cut, with their size; --json prints everything.
    """
    found = found_checkpoint(context, thread_id, namespace, checkpoint)
    if context.output.as_json:
        context.output.json(checkpoint_json(context, found))
        return
    limit = None if full else _CUT
    _head(context, found)
    _section(context, "State", sorted(values_of(context, found).items()), limit)
    writes = found.pending_writes or []
    questions = [(task, asked(each)) for task, each in interrupts_of(found)]
    _section(context, "Pending writes", [(f"{task} → {to}", value) for task, to, value in writes], limit)
    _section(context, "Waiting for a human", questions, limit)
    _section(context, "Failed", [(task, value) for task, to, value in writes if to == ERROR], limit)


def _head(context: CommandContext, found: CheckpointTuple) -> None:
    metadata = found.metadata
    named = {
        "thread": found.config["configurable"]["thread_id"],
        "namespace": found.config["configurable"]["checkpoint_ns"],
        "checkpoint": id_of(found),
        "parent": parent_of(found),
        "stored": found.checkpoint.get("ts"),
        "step": metadata.get("step"),
        "source": metadata.get("source"),
        "run": metadata.get("run_id"),
    }
    for name, value in named.items():
        if value not in (None, ""):
            context.output.field(name, str(value))


def _section(
    context: CommandContext, title: str, named: Sequence[tuple[str, Any]], limit: int | None
) -> None:
    """Print named values below a title, or nothing if there are none."""
    if named:
        context.output.text(f"\n{title}", "bold")
    for name, value in named:
        context.output.field(name, brief(value, limit))
