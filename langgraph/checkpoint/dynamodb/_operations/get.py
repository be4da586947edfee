"""`get_tuple`: read a checkpoint, and cache how it is stored for the put of its child."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from .._format import items, limits
from .._format.codec import Codec
from .._format.content import Body, pending_writes, read_body, read_metadata
from .._format.items import Partition
from .._runtime.steps import Op, work
from .._runtime.storage import CachedCheckpoint, CachedThread, Storage
from ..errors import CheckpointNotFoundError
from ..protocol import is_of_one_life, is_settled
from . import arguments, other_savers
from .reads import ChangedMeanwhileError, LoadedSegments, StoredCheckpoint, find, find_newest, load


def _entry_of(checkpoint: StoredCheckpoint, body: Body, loaded: LoadedSegments) -> CachedCheckpoint:
    """Return the cache entry of a checkpoint, from which its child is composed."""
    return CachedCheckpoint(
        epoch=items.binary(checkpoint.head, items.EPOCH),
        # A copy: LangGraph increments versions in the checkpoint that it receives.
        versions=dict(body.checkpoint.get("channel_versions", {})),
        values=body.values,
        chunks=loaded.chunks,
        sources=body.sources,
        life=items.life_of(checkpoint.head),
        is_committed=loaded.is_committed,
        shared=body.shared,
    )


def get_tuple(storage: Storage, config: RunnableConfig) -> Op[CheckpointTuple | None]:
    """Read the checkpoint that a config names, or the newest of its namespace."""
    partition = arguments.target(config)
    read = yield from _read(storage, partition, arguments.checkpoint_id_in(config))
    if read is None:
        return None
    checkpoint, loaded = read
    size = sum(map(len, loaded.contents.values())) + checkpoint.sealed_bytes()
    found, entry = yield from work(partial(decoded, partition, storage.codec, checkpoint, loaded), size)
    storage.cache.remember_checkpoint(partition.pk, checkpoint.checkpoint_id, entry)
    return found


def _read(
    storage: Storage, partition: Partition, checkpoint_id: str | None
) -> Op[tuple[StoredCheckpoint, LoadedSegments] | None]:
    """Read a checkpoint, or the newest acknowledged one, with its segments; return `None` if there is none."""
    below: str | None = None
    for _ in range(limits.ATTEMPTS_MAX):
        if checkpoint_id is None:
            checkpoint = yield from find_newest(storage, partition, below=below)
        else:
            checkpoint = yield from find(storage, partition, checkpoint_id)
        if checkpoint is None:
            if below is None:
                yield from other_savers.look_for_other_savers(storage, partition)
            if checkpoint_id is None and not partition.namespace:
                # Somebody has deleted it. What begins now begins with its owner.
                storage.cache.forget_thread(partition.pk)
            return None
        loaded = LoadedSegments.of(checkpoint.head)
        try:
            whole = yield from load(storage, checkpoint, loaded)
        except ChangedMeanwhileError:
            continue
        if whole is not None:
            return whole, loaded
        if checkpoint_id is not None:
            return None
        below = checkpoint.checkpoint_id
    raise CheckpointNotFoundError(
        f"checkpoints of thread {partition.thread_id!r} were deleted while they were read, in each of"
        f" {limits.ATTEMPTS_MAX} attempts; retry the call"
    )


def decoded(
    partition: Partition, codec: Codec, checkpoint: StoredCheckpoint, loaded: LoadedSegments
) -> tuple[CheckpointTuple, CachedCheckpoint]:
    """Decode a checkpoint, given its segments; return its tuple and its cache entry."""
    body = read_body(codec, checkpoint.head, loaded.contents)
    parent_id = items.text(checkpoint.head, items.PARENT)
    values = {
        name: codec.loads(value.kind, value.join(loaded.contents), checkpoint.head)
        for name, value in body.values.items()
    }
    found = CheckpointTuple(
        config=arguments.config_of(partition, checkpoint.checkpoint_id),
        checkpoint=cast("Any", {**body.checkpoint, "channel_values": values}),
        metadata=read_metadata(codec, checkpoint.head, loaded.contents),
        parent_config=None if parent_id is None else arguments.config_of(partition, parent_id),
        pending_writes=pending_writes(codec, checkpoint.writes, loaded.contents),
    )
    return found, _entry_of(checkpoint, body, loaded)


def read_entry(
    storage: Storage, partition: Partition, checkpoint_id: str, thread: CachedThread | None = None
) -> Op[CachedCheckpoint | None]:
    """Read a stored checkpoint and return its cache entry, with the plaintexts of its segments.

    The segments of a settled one are safe under the epoch with which the thread was read before, if that is given: a
    deletion that removes them deletes the checkpoint, and then ends that epoch.
    """
    for _ in range(limits.ATTEMPTS_MAX):
        head = yield from storage.table.get(partition.pk, items.checkpoint_prefix(checkpoint_id))
        if head is None or items.is_expired(head, storage.clock()):
            return None
        items.check_format(head)
        loaded = LoadedSegments.of(head)
        try:
            checkpoint = yield from load(storage, StoredCheckpoint(head), loaded)
        except ChangedMeanwhileError:
            continue
        if checkpoint is None:
            return None
        entry = _entry_of(checkpoint, read_body(storage.codec, head, loaded.contents), loaded)
        if thread is not None and is_settled(entry.epoch) and is_of_one_life(entry.epoch, thread.epoch):
            entry = replace(entry, epoch=thread.epoch)
        return replace(entry, contents=loaded.contents)
    return None
