"""`put_writes`: store the pending writes of a task.

The regular writes of a task are one compressed group, and each special write is an attribute of its own, so a call is
one UpdateItem. A special write replaces the stored one. Of the regular writes, the first one at a position stays: a
call that finds a stored group adds the writes that the group lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.content import Write, pack_writes, read_writes
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    INLINE_STATE_BYTES_MAX,
    MERGE_ATTEMPTS_MAX,
    PUT_WAIT_SECONDS_MAX,
    WRITES_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._operations.arguments import (
    checked_text,
    checkpoint_id_in,
    namespaces_above,
    target,
)
from langgraph.checkpoint.dynamodb._operations.commit_writes import Found, TaskWrites, commit_writes
from langgraph.checkpoint.dynamodb._operations.item_builder import ItemBuilder
from langgraph.checkpoint.dynamodb._operations.threads import PinnedEpochError
from langgraph.checkpoint.dynamodb._runtime.cache import PUT, Cache, CachedCheckpoint, CachedThread
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Wait, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import is_reusable

Serialized: TypeAlias = tuple[dict[int, Write], dict[int, Write]]
"""The writes of one call: regular ones and special ones, by their index."""


def put_writes(
    storage: Storage,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Op[None]:
    """Store a task's writes. Special ones replace stored ones; of regular ones the first with an index stays."""
    taken = yield from snapshot_arguments(storage.codec, config, writes, task_id, task_path)
    if taken is not None:
        yield from store_after_put(storage, *taken)


def snapshot_arguments(
    codec: Codec, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> Op[tuple[Partition, Sequence[Partition], str, str, Serialized] | None]:
    """Check and serialize the arguments of a `put_writes` call; return `None` if there are no writes."""
    partition, checkpoint_id = checked_task(config, task_id, task_path)
    if not writes:
        return None
    size = sum(rough_bytes(value) for _, value in writes)
    serialized = yield from work(partial(serialize, codec, tuple(writes), task_path), size)
    return partition, namespaces_above(partition, config), checkpoint_id, task_id, serialized


def checked_task(config: RunnableConfig, task_id: str, task_path: str) -> tuple[Partition, str]:
    """Return the namespace and the checkpoint that a task's writes belong to.

    Raises:
        CheckpointerInputError: The config names no checkpoint, or an argument cannot be stored.
    """
    partition, checkpoint_id = target(config), checkpoint_id_in(config)
    if checkpoint_id is None:
        msg = 'config["configurable"]["checkpoint_id"] is missing; give the checkpoint that the writes belong to'
        raise CheckpointerInputError(msg)
    items.writes_sk(checkpoint_id, checked_text(task_id, "task_id"))
    checked_text(task_path, "task_path")
    return partition, checkpoint_id


def store_after_put(
    storage: Storage,
    partition: Partition,
    above: Sequence[Partition],
    checkpoint_id: str,
    task_id: str,
    serialized: Serialized,
) -> Op[None]:
    """Store a task's serialized writes. If this process is putting their checkpoint, let that end first.

    LangGraph puts a checkpoint in the background, while its tasks run. Writes that come before the put has ended would
    store again what it stores. After a put that fails, or takes too long, they do. One that has taken that long already
    is not waited for: it may be on an event loop that was stopped and kept.
    """
    until = storage.clock() + PUT_WAIT_SECONDS_MAX
    while _gains_by_put(storage.cache, partition, checkpoint_id, serialized):
        now = storage.clock()
        put = storage.cache.under_way(PUT, partition.pk, now - PUT_WAIT_SECONDS_MAX)
        if put is None or now >= until:
            break
        yield (Wait(put, until - now),)
        if not put.done():
            # The wait ran out, or this thread must not wait.
            break
    yield from store(storage, partition, checkpoint_id, task_id, serialized, above=above)


def _gains_by_put(cache: Cache, partition: Partition, checkpoint_id: str, serialized: Serialized) -> bool:
    """Tell whether writes cost less once their checkpoint is cached: they name its segments, or need its marker."""
    if cache.checkpoint(partition.pk, checkpoint_id) is not None:
        return False
    regular, special = serialized
    return bool(partition.namespace) or (not special and _size(regular) > INLINE_STATE_BYTES_MAX)


def store(
    storage: Storage,
    partition: Partition,
    checkpoint_id: str,
    task_id: str,
    serialized: Serialized,
    above: Sequence[Partition] = (),
) -> Op[None]:
    """Store a task's serialized writes, added to those that are stored.

    Raises:
        PinnedEpochError: The epoch has ended that the storage is pinned to.
    """
    sk = items.writes_sk(checkpoint_id, task_id)
    call = _Call(serialized, int(storage.clock() * 1000))
    head, thread = _reusable(storage.cache, partition, checkpoint_id), storage.cache.thread(partition.root)
    if thread is None and head is not None:
        thread = CachedThread(head.epoch, head.ttl_seconds)
    thread = storage.pinned or thread
    for _ in range(MERGE_ATTEMPTS_MAX):
        # Writes that may replace acknowledged ones must not name segments that a deletion may be removing.
        reuses = not call.special and not call.old and call.size_bytes > INLINE_STATE_BYTES_MAX
        base = _safe(head, thread) if reuses else None
        builder = ItemBuilder(storage, partition, items.key(partition.pk, sk), base)
        parts = yield from work(partial(_parts, builder, call, base), call.size_bytes)
        order = call.order if call.special else None
        writes = TaskWrites(partition, sk, parts, builder, order, call.old, call.replaces, above)
        outcome = yield from commit_writes(storage, writes, thread)
        if outcome.stored:
            return
        thread = storage.pinned or outcome.thread
        if outcome.found is None:
            if storage.pinned is not None:
                raise PinnedEpochError
            # Store all of it again: a deletion may have removed segments that it names.
            call.begin({})
        elif outcome.found.is_gone:
            call.begin(outcome.found.item)
        else:
            # The task has stored writes: add those that it lacks.
            _merge(storage.codec, call, parts, outcome.found)
    msg = (
        f"writes of task {task_id!r} of thread {partition.thread_id!r} could not be stored: other calls for the same"
        f" task interfered {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )
    raise ThreadBusyError(msg)


class _Call:
    """The writes that are still to be stored, by index, and the task's item when it was last read."""

    def __init__(self, given: Serialized, order: int) -> None:
        """Start with all writes that were given.

        Args:
            given: The writes.
            order: The call's place among calls with special writes: a later call has a higher one. A request of an
                earlier call may arrive last and must not win.
        """
        self._given = given
        self.order = order
        self.begin({})

    def begin(self, old: Item) -> None:
        """Start over with all writes, for a task without an item, or with an old one that they replace."""
        self.regular: Mapping[int, Write] = self._given[0]
        self.special: Mapping[int, Write] = self._given[1]
        self.old = old
        self.replaces = bool(old)

    @property
    def size_bytes(self) -> int:
        """The size of the serialized writes, in bytes."""
        return _size(self.regular) + _size(self.special)


def _size(writes: Mapping[int, Write]) -> int:
    return sum(len(write.data) for write in writes.values())


def serialize(codec: Codec, writes: Sequence[tuple[str, Any]], task_path: str) -> Serialized:
    """Serialize regular and special writes, by their index. Within a call the last write to a special index wins."""
    regular, special = dict[int, Write](), dict[int, Write]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        kind, data = codec.dumps(value, f"the write to channel {channel!r}", channel)
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return regular, special


def _reusable(cache: Cache, partition: Partition, checkpoint_id: str) -> CachedCheckpoint | None:
    """Return the checkpoint that the writes belong to, or else the last one of its namespace: most of it is the same.

    Segments of any checkpoint that is safe under the thread's epoch may be named.
    """
    latest = cache.latest(partition.pk)
    entry = cache.checkpoint(partition.pk, checkpoint_id)
    return entry or (None if latest is None else cache.checkpoint(partition.pk, latest))


def _safe(head: CachedCheckpoint | None, thread: CachedThread | None) -> CachedCheckpoint | None:
    """Return the checkpoint that the writes belong to, if its segments are safe under the thread's epoch.

    Tasks often write most of their input again. They can name its segments, which stay as long as the checkpoint.
    """
    if head is None or thread is None or not is_reusable(head.epoch, thread.epoch):
        return None
    return head


def _parts(builder: ItemBuilder, call: _Call, base: CachedCheckpoint | None) -> dict[str, Part]:
    """Build the parts of the writes item: the regular writes as a group, and each special write by itself."""
    parts = {
        name: builder.part(name, pack_writes([call.special[index]]), WRITES_BYTES_MAX)
        for index, name in items.SPECIAL_WRITES.items()
        if index in call.special
    }
    if call.regular:
        group = [call.regular[index] for index in sorted(call.regular)]
        before = None
        if base is not None:
            before = [base.values[each.channel] for each in group if each.channel in base.values]
        parts[items.WRITES] = builder.part(items.WRITES, pack_writes(group), WRITES_BYTES_MAX, before=before)
    return parts


def _merge(codec: Codec, call: _Call, parts: Mapping[str, Part], found: Found) -> None:
    """Reduce the call to the writes that the task lacks, merged with its stored regular writes."""
    call.old, call.replaces = found.item, False
    if call.regular:
        stored: dict[int, Write] = {}
        if found.contents is not None:
            writes = read_writes(codec, found.item, items.WRITES, found.contents)
            stored = {each.index: each for each in writes}
        lacks = call.regular.keys() - stored.keys() or not found.is_safe
        call.regular = {**call.regular, **stored} if lacks else {}
    order = items.number(found.item, items.ORDER)
    if call.special and order is not None and order >= call.order:
        sk = items.sort_key(found.item)
        special = [name for name in parts if name != items.WRITES]
        if order == call.order and all(found.item.get(name) == parts[name].attribute(sk) for name in special):
            # This very request took effect, and its response was lost.
            call.special = {}
        else:
            call.order = order + 1
