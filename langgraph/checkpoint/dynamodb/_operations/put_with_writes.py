"""`put_with_writes`: store a checkpoint, and the writes that were held back with it, as one commit.

langgraph-checkpoint-aws has a saver that keeps a run's checkpoints in memory and stores only the last one, together
with all writes (`DeferredCheckpointSaver`, with its protocols `SyncBatchFlushable` and `AsyncBatchFlushable`). Most of
these writes belong to checkpoints that are never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from langgraph.checkpoint.dynamodb._format.codec import rough_bytes
from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._operations import put, put_writes
from langgraph.checkpoint.dynamodb._operations.arguments import checked_text, checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._operations.backend import Backend, LocalBackend
from langgraph.checkpoint.dynamodb._operations.entries import with_entry
from langgraph.checkpoint.dynamodb._operations.put_writes import Serialized
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage, Storage

HeldWrites: TypeAlias = tuple[RunnableConfig, Sequence[tuple[str, Any]], str, str]
"""The arguments of one `put_writes` call: a config, the writes, the task's id and its path."""


_Held: TypeAlias = tuple[Partition, str, str, Serialized]


def put_with_writes(
    storage: LocalStorage,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    pending_writes: Iterable[HeldWrites],
) -> Op[RunnableConfig]:
    """Store a checkpoint, and before it those writes whose checkpoint exists."""
    taken = yield from snapshot_arguments(storage, config, checkpoint, metadata, new_versions, pending_writes)
    # Its tasks' writes are stored by one `gather`.
    alone = replace(with_entry(storage, config), shares_reads=False)
    return (yield from store(LocalBackend(alone), *taken))


def snapshot_arguments(
    storage: Storage,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    pending_writes: Iterable[HeldWrites],
) -> Op[tuple[put.Request, Sequence[_Held]]]:
    """Check and serialize the arguments of a `put_with_writes` call; its caller may change them later."""
    request = put.snapshot_arguments(storage, config, checkpoint, metadata, new_versions)
    held = [
        (target(place), checkpoint_id_in(place) or "", checked_text(task_id, "task_id"), tuple(writes), path)
        for place, writes, task_id, path in pending_writes
    ]

    def serialize() -> list[_Held]:
        request.dumps_all(storage.codec)
        return [
            (partition, checkpoint_id, task_id, put_writes.serialize(storage.codec, writes, path))
            for partition, checkpoint_id, task_id, writes, path in held
        ]

    size = rough_bytes(request.values) + sum(
        rough_bytes(value) for *_, writes, _ in held for _, value in writes
    )
    return request, (yield from work(serialize, size))


def store(backend: Backend, request: put.Request, held: Sequence[_Held]) -> Op[RunnableConfig]:
    """Store the serialized arguments of a `put_with_writes` call."""
    own = (request.partition, request.checkpoint_id)
    others = [each for each in dict.fromkeys(call[:2] for call in held) if each != own]
    found = {own, *(yield from backend.stored(others))}
    # The calls of a task stay in order: a later one may replace what an earlier one stored.
    tasks: dict[tuple[Partition, str, str], list[Serialized]] = {}
    for partition, checkpoint_id, task_id, writes in held:
        if (partition, checkpoint_id) in found and any(writes):
            tasks.setdefault((partition, checkpoint_id, task_id), []).append(writes)

    def store_writes() -> Op[Any]:
        yield from gather([_store_in_order(backend, task, calls) for task, calls in tasks.items()])

    return (yield from put.store(backend, replace(request, store_writes=store_writes)))


def _store_in_order(
    backend: Backend, task: tuple[Partition, str, str], calls: Sequence[Serialized]
) -> Op[None]:
    for serialized in calls:
        yield from put_writes.store(backend, *task, serialized)
