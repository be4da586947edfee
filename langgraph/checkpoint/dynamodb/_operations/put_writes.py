"""`put_writes`: store the pending writes of a task.

The regular writes of a task are one compressed group, and each special write is an attribute of its own, so a call is
one UpdateItem. It comes after the segments that it names, on condition that the task still has the writes that it was
composed for. A special write replaces the stored one. Of the regular writes, the first one at a position stays: a call
that finds a stored group adds the writes that the group lacks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP

from .. import errors, protocol
from .._format import items, limits, pricing
from .._format.codec import Codec, rough_bytes
from .._format.content import Write, pack_writes, read_writes
from .._format.items import Item, Part, Partition, expires_before
from .._format.segments import reach
from .._runtime.steps import Op, Wait, work
from .._runtime.storage import PUT, Cache, CachedCheckpoint, CachedThread, Storage
from . import arguments, compose, entries, renew, thread_item
from .put import store_segments
from .reads import ChangedMeanwhileError, LoadedSegments, lost_parts

Serialized: TypeAlias = tuple[dict[int, Write], dict[int, Write]]
"""The writes of one call: regular ones and special ones, by their index."""


class LaterWritesError(Exception):
    """A task has special writes of a call with a higher place than the one that was given, or with the same."""

    def __init__(self, order: int) -> None:
        """Take the place of those writes."""
        super().__init__(f"special writes are stored with place {order}")
        self.order = order


def put_writes(
    storage: Storage,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    order: int | None = None,
) -> Op[None]:
    """Store a task's writes. Special ones replace stored ones; of regular ones the first with an index stays.

    Args:
        storage: The storage.
        config: The checkpoint that the task belongs to.
        writes: Pairs of a channel and a value.
        task_id: The task's id.
        task_path: The task's path.
        order: The call's place among calls with special writes: its time in epoch milliseconds, by its caller's clock,
            if the caller may have given up by now. By default the caller waits: then the place is this moment, or
            behind what is stored.

    Raises:
        LaterWritesError: With an order: what is stored has a higher place. Only the caller knows whether it still waits
            for this call, and may ask for a place behind that.
        PinnedEpochError: The epoch has ended that the storage is pinned to.
    """
    partition, checkpoint_id = checked_task(config, task_id, task_path)
    if not writes:
        return
    root_id = arguments.root_of_run(partition, config, checkpoint_id)
    if storage.owner_from is not None:
        # They may come before the first put of their thread.
        owner = entries.owner_in(config, {}, storage.owner_from)
        storage = entries.with_owner(storage, items.partition_of(partition.thread_id), owner)
    size = sum(rough_bytes(value) for _, value in writes)
    given = yield from work(partial(serialize, storage.codec, tuple(writes), task_path), size)
    yield from _wait_for_put(storage, partition, checkpoint_id, given)
    yield from store(storage, partition, checkpoint_id, task_id, given, root_id, order)


def checked_task(config: RunnableConfig, task_id: str, task_path: str) -> tuple[Partition, str]:
    """Return the namespace and the checkpoint that a task's writes belong to.

    Raises:
        CheckpointerInputError: The config names no checkpoint, or an argument cannot be stored.
    """
    partition, checkpoint_id = arguments.target(config), arguments.checkpoint_id_in(config)
    if checkpoint_id is None:
        raise errors.CheckpointerInputError(
            'config["configurable"]["checkpoint_id"] is missing; give the checkpoint that the writes belong to'
        )
    items.writes_sk(checkpoint_id, arguments.checked_text(task_id, "task_id"))
    arguments.checked_text(task_path, "task_path")
    return partition, checkpoint_id


def serialize(codec: Codec, writes: Sequence[tuple[str, Any]], task_path: str) -> Serialized:
    """Serialize regular and special writes, by their index. Within a call the last write to a special index wins."""
    regular, special = dict[int, Write](), dict[int, Write]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        kind, data = codec.dumps(value, f"the write to channel {channel!r}", channel)
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return regular, special


def _wait_for_put(storage: Storage, partition: Partition, checkpoint_id: str, given: Serialized) -> Op[None]:
    """If this process is putting the checkpoint that writes belong to, let that end first.

    LangGraph puts a checkpoint in the background, while its tasks run. Writes that come before the put has ended would
    store again what it stores. After a put that fails, or takes too long, they do. One that has taken that long already
    is not waited for: it may be on an event loop that was stopped and kept.
    """
    until = storage.clock() + limits.PUT_WAIT_SECONDS_MAX
    while _gains_by_put(storage.cache, partition, checkpoint_id, given):
        now = storage.clock()
        put = storage.cache.under_way(PUT, partition.pk, now - limits.PUT_WAIT_SECONDS_MAX)
        if put is None or now >= until:
            return
        yield (Wait(put, until - now),)
        if not put.done():
            # The wait ran out, or this thread must not wait.
            return


def _gains_by_put(cache: Cache, partition: Partition, checkpoint_id: str, given: Serialized) -> bool:
    """Tell whether writes cost less once their checkpoint is cached: they name its segments, or need its marker."""
    if cache.checkpoint(partition.pk, checkpoint_id) is not None:
        return False
    regular, special = given
    return bool(partition.namespace) or (not special and _size(regular) > limits.INLINE_STATE_BYTES_MAX)


def store(
    storage: Storage,
    partition: Partition,
    checkpoint_id: str,
    task_id: str,
    given: Serialized,
    root_id: str | None = None,
    order: int | None = None,
) -> Op[None]:
    """Store a task's serialized writes, added to those that are stored.

    `root_id` is the root checkpoint that the run is at.

    Raises:
        LaterWritesError: With an order: what is stored has a higher place.
        PinnedEpochError: The epoch has ended that the storage is pinned to.
    """
    now = int(storage.clock() * 1000)
    key = items.key(partition.pk, items.writes_sk(checkpoint_id, task_id))
    task = _Task(partition, key, root_id, given, now if order is None else order, order is None)
    head = _reusable(storage.cache, task)
    thread = _known(storage.cache, partition, head)
    for _ in range(limits.MERGE_ATTEMPTS_MAX):
        is_stored, thread = yield from _attempt(storage, task, head, storage.pinned or thread)
        if is_stored:
            return
    raise errors.ThreadBusyError(
        f"writes of task {task_id!r} of thread {partition.thread_id!r} could not be stored: other calls for the same"
        f" task interfered {limits.MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )


@dataclass
class _Task:
    """The writes of a task that are still to be stored, by index, and the task's item when it was last read."""

    partition: Partition
    key: Item
    root_id: str | None
    """The root checkpoint that the run is at."""
    given: Serialized
    """All writes of the call."""
    order: int
    """The call's place among calls with special writes. A later call has a higher one.

    A request of an earlier call may arrive last, and must not win.
    """
    is_waited_for: bool
    """Whether the caller waits for sure, so that the call may take a later place."""

    def __post_init__(self) -> None:
        """Start with all writes that were given."""
        self.begin({})

    def begin(self, old: Item) -> None:
        """Start over with all writes, for a task without an item, or with an old one that they replace."""
        self.regular: Mapping[int, Write] = self.given[0]
        self.special: Mapping[int, Write] = self.given[1]
        self.old = old
        self.replaces = bool(old)

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint that the writes belong to."""
        return items.checkpoint_id_of(self.key)

    @property
    def size_bytes(self) -> int:
        """The size of the serialized writes, in bytes."""
        return _size(self.regular) + _size(self.special)


def _size(writes: Mapping[int, Write]) -> int:
    return sum(len(write.data) for write in writes.values())


def _reusable(cache: Cache, task: _Task) -> CachedCheckpoint | None:
    """Return the checkpoint that the writes belong to, or else the last one of its namespace: most of it is the same.

    Segments of any checkpoint that is safe under the thread's epoch may be named.
    """
    pk = task.partition.pk
    latest = cache.latest(pk)
    entry = cache.checkpoint(pk, task.checkpoint_id)
    return entry or (None if latest is None else cache.checkpoint(pk, latest))


def _known(cache: Cache, partition: Partition, head: CachedCheckpoint | None) -> CachedThread | None:
    """Return the thread as this process knows it; `None` if it may have begun anew since.

    Small writes of the root are not confirmed. With what is known of another life they would expire at another time
    than their checkpoint. A process that goes on with a thread has read, or put, a checkpoint of its life.
    """
    thread = cache.thread(partition.root)
    if head is None:
        return thread if partition.namespace else None
    if thread is None:
        return head.thread
    return thread if protocol.is_of_one_life(thread.epoch, head.epoch) else None


def _attempt(
    storage: Storage, task: _Task, head: CachedCheckpoint | None, thread: CachedThread | None
) -> Op[tuple[bool, CachedThread | None]]:
    """Compose the parts of a task's item; store the segments that they name, and then the parts.

    Args:
        storage: The storage.
        task: The writes. If they are not stored, they are those that the next attempt has to store.
        head: A checkpoint whose segments they may name.
        thread: The thread, under whose epoch the segments are safe; it is read if it is not known.

    Returns:
        Whether they are stored, and the thread as far as it is known; `None` if it has to be read.
    """
    partition = task.partition
    # Writes that may replace acknowledged ones must not name segments that a deletion may be removing.
    reuses = not task.special and not task.old and task.size_bytes > limits.INLINE_STATE_BYTES_MAX
    base = _safe(head, thread) if reuses else None
    builder = compose.ItemBuilder(storage, partition, task.key, base)
    parts = yield from work(partial(_parts, builder, task, base), task.size_bytes)
    entry = storage.cache.checkpoint(partition.pk, task.checkpoint_id)
    use = renew.Use(partition, task.checkpoint_id, task.root_id)
    thread = yield from renew.use_thread(storage, use, thread, entry)
    if thread is None:
        return False, None
    # Parts that name segments, or are in a namespace with a marker, depend on more than their own item. And special
    # writes may be the last of a run: in a thread that was deleted nobody would find them.
    named = {each for part in parts.values() for each in part.ids}
    must_confirm = bool(partition.namespace or named or task.given[1])
    # Writes may come before the first checkpoint of their namespace.
    started = arguments.started_from(partition, task.root_id)
    if must_confirm and not (yield from store_segments(storage, partition, builder, named, thread, started)):
        _begin_again(storage, task)
        return False, None
    found = yield from _store_parts(storage, task, parts, thread)
    if found is not None:
        return False, (yield from _merge(storage, task, parts, found, thread))
    if must_confirm or renew.is_due(storage, thread):
        seen = yield from thread_item.confirm_epoch(storage, partition, thread.epoch)
        if not thread_item.is_confirmed(storage, thread, seen):
            # A deletion came between, and may have removed segments before the update named them. Or a renewal did, and
            # may not have seen the writes.
            _begin_again(storage, task, seen)
            return False, seen
        storage.cache.remember_segments(partition.pk, thread.epoch, builder.stored())
    return True, thread


def _begin_again(storage: Storage, task: _Task, thread: CachedThread | None = None) -> None:
    """Start over with all writes of a task: a deletion may have removed segments that its item names."""
    pinned = storage.pinned
    if pinned is not None and (thread is None or not protocol.is_reusable(thread.epoch, pinned.epoch)):
        raise thread_item.PinnedEpochError
    task.begin({})


def _safe(head: CachedCheckpoint | None, thread: CachedThread | None) -> CachedCheckpoint | None:
    """Return the checkpoint that the writes belong to, if its segments are safe under the thread's epoch.

    Tasks often write most of their input again. They can name its segments, which stay as long as the checkpoint.
    """
    if head is None or thread is None or not protocol.is_reusable(head.epoch, thread.epoch):
        return None
    return head


def _parts(builder: compose.ItemBuilder, task: _Task, base: CachedCheckpoint | None) -> dict[str, Part]:
    """Build the parts of the writes item: the regular writes as a group, and each special write by itself."""
    beside = pricing.item_bytes(items.created(task.key, builder.now))
    parts = {
        name: builder.part(name, pack_writes([task.special[index]]), limits.WRITES_BYTES_MAX, beside=beside)
        for index, name in items.SPECIAL_WRITES.items()
        if index in task.special
    }
    if task.regular:
        group = [task.regular[index] for index in sorted(task.regular)]
        before = None
        if base is not None:
            before = [base.values[each.channel] for each in group if each.channel in base.values]
        beside += len(items.WRITES)
        group_bytes = pack_writes(group)
        parts[items.WRITES] = builder.part(
            items.WRITES, group_bytes, limits.WRITES_BYTES_MAX, before=before, beside=beside
        )
    return parts


def _store_parts(
    storage: Storage, task: _Task, parts: Mapping[str, Part], thread: CachedThread
) -> Op[Item | None]:
    """Set parts of a task's item.

    Returns:
        `None` if they were set. Otherwise the task's item: its regular writes are not those of `task.old`, its special
        ones came later, or it has another expiry.
    """
    if not parts:
        return (yield from _touch(storage, task))
    attributes = items.created({}, storage.clock())
    for name, part in parts.items():
        attributes[name] = part.attribute(items.sort_key(task.key))
        if part.ids:
            attributes[items.EPOCH_NAMES[name]] = {"B": thread.epoch}
    order = task.order if task.special else None
    if order is not None:
        attributes[items.ORDER] = {"N": str(order)}
    kept_until = thread.life.kept_until
    if not task.replaces:
        change = protocol.set_writes(attributes, task.old, kept_until=kept_until, order=order)
        return (yield from storage.table.try_update(task.key, change))
    item = items.with_expiry({**task.key, **attributes}, kept_until)
    return (yield from storage.table.try_put(item, protocol.replace_writes(task.old)))


def _touch(storage: Storage, task: _Task) -> Op[Item | None]:
    """Keep stored writes from being taken for abandoned; return an empty item if they have been deleted."""
    now = storage.clock()
    if (items.number(task.old, items.CREATED_AT) or 0) > int(now) - limits.UPLOAD_SECONDS_MAX:
        return None
    return (yield from storage.table.try_update(task.key, protocol.touch_writes(now)))


def _merge(
    storage: Storage, task: _Task, parts: Mapping[str, Part], found: Item, thread: CachedThread
) -> Op[CachedThread | None]:
    """Reduce the writes to those that a task lacks, merged with its stored regular ones.

    Returns:
        The thread as far as it is known; `None` if it has to be read.
    """
    if not found or items.is_expired(found, storage.clock()):
        # The item has been deleted or has expired, and so may its segments.
        task.begin(found)
        return thread
    expires_at = items.expires_at(found)
    if expires_at != thread.life.kept_until:
        seen = yield from thread_item.read_thread(storage, task.partition)
        if seen is None or seen.is_pending:
            return None
        thread = thread_item.cached_thread(storage, task.partition, seen)
        if (yield from _is_of_former_life(storage, task, found, thread)):
            task.begin(found)
            return thread
        yield from _keep_longer(storage, task, found, thread.life.kept_until)
    known: CachedThread | None = thread
    if task.regular:
        stored = yield from _stored_writes(storage, task.partition, found)
        lacks = bool(task.regular.keys() - stored.keys())
        part = items.parse_part(found, items.WRITES)
        if part is not None and part.own:
            # A deletion may still be about to remove their segments.
            seen = yield from thread_item.read_thread(storage, task.partition)
            lacks = lacks or seen is None or not seen.confirms(protocol.epoch_of(found, items.WRITES))
            known = (
                None
                if seen is None or seen.is_pending
                else thread_item.cached_thread(storage, task.partition, seen)
            )
        task.regular = {**task.regular, **stored} if lacks else {}
    task.old, task.replaces = found, False
    order = items.number(found, items.ORDER)
    if task.special and order is not None and order >= task.order:
        sk = items.sort_key(found)
        special = [name for name in parts if name != items.WRITES]
        if order == task.order and all(found.get(name) == parts[name].attribute(sk) for name in special):
            # This very request took effect, and its response was lost.
            task.special = {}
        elif task.is_waited_for:
            task.order = order + 1
        else:
            raise LaterWritesError(order)
    return known


def _is_of_former_life(storage: Storage, task: _Task, found: Item, thread: CachedThread) -> Op[bool]:
    """Tell whether a task's item is of a life of the thread that has ended, or arrived after its deletion."""
    if not protocol.is_of_former_life(found, thread.life):
        return False
    kept_until = thread.life.kept_until
    if kept_until is None or expires_before(kept_until, items.expires_at(found)):
        return True
    # So old writes of this life have their head. It may be one of the former life, which is to be put again.
    head = yield from storage.table.get(task.partition.pk, items.checkpoint_prefix(task.checkpoint_id))
    return head is not None and not protocol.is_of_one_life(items.binary(head, items.EPOCH), thread.epoch)


def _stored_writes(storage: Storage, partition: Partition, found: Item) -> Op[dict[int, Write]]:
    """Read a task's stored regular writes, by their index; none if they were never committed."""
    part = items.parse_part(found, items.WRITES)
    if part is None:
        return {}
    loaded = LoadedSegments(partition.pk)
    yield from loaded.read(storage, part.own)
    try:
        if (yield from lost_parts(storage, found, loaded, (items.WRITES,))):
            # A deletion removed its segments before it was acknowledged. Treat it as absent.
            return {}
    except ChangedMeanwhileError:
        # The next update will fail, and return the item as it is now.
        return {}
    return {each.index: each for each in read_writes(storage.codec, found, items.WRITES, loaded.contents)}


def _keep_longer(storage: Storage, task: _Task, found: Item, kept_until: int | None) -> Op[None]:
    """Keep the stored writes, and their segments, as long as what is stored in the thread now."""
    loaded, named = LoadedSegments(task.partition.pk), items.named_ids([found])
    yield from loaded.read_indexes(storage, named)
    yield from thread_item.extend_segments(storage, task.partition, reach(named, loaded.contents), kept_until)
    # An item that has expired by now is replaced instead: its segments may have been removed before they were extended.
    if not items.is_expired(found, storage.clock()):
        yield from thread_item.extend(storage, task.key, kept_until)
