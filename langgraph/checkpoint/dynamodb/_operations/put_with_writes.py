"""`put_with_writes`: a checkpoint and the writes that were held back with it, as one commit.

langgraph-checkpoint-aws has a saver that keeps a run's checkpoints in memory and stores only the last of
them, together with all writes (`DeferredCheckpointSaver`, with its protocols `SyncBatchFlushable` and
`AsyncBatchFlushable`). Most of these writes belong to checkpoints that nobody will ever find.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._operations import put, put_writes
from langgraph.checkpoint.dynamodb._operations.access import Access, DirectAccess
from langgraph.checkpoint.dynamodb._operations.arguments import checked_text, checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._operations.put_writes import Serialized
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work

HeldWrites: TypeAlias = tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]
"""The arguments of a call of `put_writes`: a config, the writes, the task's id and its path."""


_Held: TypeAlias = tuple[Partition, str, str, Serialized]


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
    taken = yield from take(table, codec, config, checkpoint, metadata, new_versions, pending_writes)
    return (yield from store(DirectAccess(table, codec), *taken))


def take(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    pending_writes: Iterable[HeldWrites],
) -> Op[tuple[put.Request, Sequence[_Held]]]:
    """What a call of `put_with_writes` was given, serialized."""
    request = put.take(table, codec, config, checkpoint, metadata, new_versions)
    held = [
        (target(place), checkpoint_id_in(place) or "", checked_text(task_id, "task_id"), tuple(writes), path)
        for place, writes, task_id, path in pending_writes
    ]

    def serialize() -> list[_Held]:
        request.dumps_all(codec)
        return [
            (at, checkpoint_id, task_id, put_writes.serialize(codec, writes, path))
            for at, checkpoint_id, task_id, writes, path in held
        ]

    size = rough_bytes(request.values) + sum(
        rough_bytes(value) for *_, writes, _ in held for _, value in writes
    )
    return request, (yield from work(serialize, size))


def store(access: Access, request: put.Request, held: Sequence[_Held]) -> Op[RunnableConfig]:
    """Store what a call of `put_with_writes` was given."""
    own = (request.at, request.checkpoint_id)
    others = [each for each in dict.fromkeys(call[:2] for call in held) if each != own]
    found = {own, *(yield from access.stored(others))}
    # The calls of each task, the later ones of which may replace what the earlier ones stored.
    tasks: dict[tuple[Partition, str, str], list[Serialized]] = {}
    for at, checkpoint_id, task_id, writes in held:
        if (at, checkpoint_id) in found and any(writes):
            tasks.setdefault((at, checkpoint_id, task_id), []).append(writes)

    def store_writes() -> Op[Any]:
        yield from gather([_store_in_order(access, task, calls) for task, calls in tasks.items()])

    return (yield from put.store(access, replace(request, store_writes=store_writes)))


def _store_in_order(
    access: Access, task: tuple[Partition, str, str], calls: Sequence[Serialized]
) -> Op[None]:
    for serialized in calls:
        yield from put_writes.store(access, *task, serialized)
