"""`put_with_writes`: a checkpoint and the writes that were held back with it, as one commit.

langgraph-checkpoint-aws has a saver that keeps a run's checkpoints in memory and stores only the last of
them, together with all writes (`DeferredCheckpointSaver`, with its protocols `SyncBatchFlushable` and
`AsyncBatchFlushable`). Most of these writes belong to checkpoints that nobody will ever find.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._operations.reads import checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather

HeldWrites: TypeAlias = tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]
"""The arguments of a call of `put_writes`: a config, the writes, the task's id and its path."""


def put_with_writes(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    pending_writes: Iterable[HeldWrites],
) -> Op[RunnableConfig]:
    """Store a checkpoint, and before it the writes that a reader will find."""
    tasks: dict[tuple[Partition, str, str], list[HeldWrites]] = {}
    for each in pending_writes:
        at, checkpoint_id = target(each[0]), checkpoint_id_in(each[0]) or ""
        tasks.setdefault((at, checkpoint_id, each[2]), []).append(each)
    own = (target(config), checkpoint["id"])
    others = [
        each for each in dict.fromkeys((at, checkpoint_id) for at, checkpoint_id, _ in tasks) if each != own
    ]
    found = {own, *(yield from _stored(table, others))}
    wanted = [held for (at, checkpoint_id, _), held in tasks.items() if (at, checkpoint_id) in found]

    def store_writes() -> Op[Any]:
        yield from gather([_store_in_order(table, codec, held) for held in wanted])

    return (yield from put(table, codec, config, checkpoint, metadata, new_versions, store_writes))


def _stored(table: Table, wanted: Iterable[tuple[Partition, str]]) -> Op[set[tuple[Partition, str]]]:
    """Which of these checkpoints are in the table."""
    keys = {
        (at.pk, items.checkpoint_prefix(checkpoint_id)): (at, checkpoint_id) for at, checkpoint_id in wanted
    }
    found = yield from table.batch_get([items.key(*each) for each in keys], consistent=True)
    return {keys[item[PARTITION_KEY]["S"], item[SORT_KEY]["S"]] for item in found}


def _store_in_order(table: Table, codec: Codec, held: Sequence[HeldWrites]) -> Op[None]:
    """Store one task's writes, the later ones of which may replace the earlier ones."""
    for config, writes, task_id, task_path in held:
        yield from put_writes(table, codec, config, writes, task_id, task_path)
