"""Commit parts of a task's writes: the part of `put_writes` that needs the table, but no serializer.

One UpdateItem sets them, on condition that the task still has the writes that they were composed for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Part, Partition, expires_before
from langgraph.checkpoint.dynamodb._format.limits import UPLOAD_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.item_builder import SegmentRefs, store_segments
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    LoadedSegments,
    lost_parts,
)
from langgraph.checkpoint.dynamodb._operations.renew import renew_after_writes
from langgraph.checkpoint.dynamodb._operations.threads import (
    confirm_epoch,
    extend,
    extend_segments,
    find_epoch,
    read_thread,
)
from langgraph.checkpoint.dynamodb._runtime.cache import CachedThread
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage


@dataclass(frozen=True)
class TaskWrites:
    """Composed parts of a task's writes."""

    partition: Partition
    sk: str
    """The sort key of the task's item."""
    parts: Mapping[str, Part]
    refs: SegmentRefs
    """The segments that the parts name."""
    order: int | None = None
    """Orders calls with special writes: a later call has a higher one. `None` without special writes."""
    old: Item = field(default_factory=dict)
    """The task's item when it was last read."""
    replaces: bool = False
    """Whether the parts replace the old item, rather than being added to it."""
    above: Sequence[Partition] = ()
    """The namespaces above, which its run needs too."""

    @property
    def key(self) -> Item:
        """The primary key of the task's item."""
        return items.key(self.partition.pk, self.sk)


@dataclass(frozen=True)
class Found:
    """The stored writes of a task, which new ones have to be merged with."""

    item: Item
    """The task's item; empty if it has been deleted."""
    is_gone: bool = False
    """Whether the item has been deleted or has expired."""
    contents: Mapping[bytes, bytes] | None = None
    """The segments of its regular writes; `None` if these were never committed."""
    is_safe: bool = True
    """Whether no deletion can be about to remove segments of its regular writes."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of storing parts of a task's writes."""

    stored: bool
    thread: CachedThread | None
    """The thread as far as it is known; `None` if it has to be read."""
    found: Found | None = None
    """Stored writes that kept the parts from being stored."""


def commit_writes(storage: Storage, writes: TaskWrites, thread: CachedThread | None) -> Op[Outcome]:
    """Store the segments that parts of a task's writes name, and then the parts.

    Args:
        storage: The storage.
        writes: The parts.
        thread: The thread under whose epoch the segments that they reuse are safe. `None`: they reuse none, and the
            thread is not known.
    """
    partition = writes.partition
    if thread is None:
        thread = yield from find_epoch(storage, partition)
    # Parts that name segments, or are in a namespace with a marker, depend on more than their own item.
    must_confirm = bool(partition.namespace or any(part.ids for part in writes.parts.values()))
    expiry = Expiry.after(thread.ttl_seconds, storage.clock())
    # Writes may come before the first checkpoint of their namespace.
    if must_confirm and not (yield from store_segments(storage, partition, writes.refs, thread, expiry)):
        return Outcome(stored=False, thread=None)
    found = yield from _store_parts(storage, writes, thread, expiry)
    if found is not None:
        return (yield from _meet(storage, writes, found, thread))
    if not must_confirm:
        yield from _renew(storage, writes, thread)
        return Outcome(stored=True, thread=thread)
    seen = yield from confirm_epoch(storage, partition, thread.epoch, expiry.own)
    if seen is None or not protocol.is_reusable(thread.epoch, seen.epoch):
        # A deletion came between. It may have removed segments before the update named them.
        return Outcome(stored=False, thread=seen)
    storage.cache.remember_segments(partition.pk, thread.epoch, writes.refs.stored())
    yield from _renew(storage, writes, seen)
    return Outcome(stored=True, thread=thread)


def _renew(storage: Storage, writes: TaskWrites, thread: CachedThread) -> Op[None]:
    """Count writes as a use of their thread."""
    if thread.ttl_seconds is None:
        return
    checkpoint_id = items.checkpoint_id_of(writes.key)
    yield from renew_after_writes(storage, writes.partition, checkpoint_id, thread, writes.above)


def _store_parts(
    storage: Storage, writes: TaskWrites, thread: CachedThread, expiry: Expiry
) -> Op[Item | None]:
    """Set parts of a task's writes.

    Returns:
        `None` if they were set. Otherwise the task's item: its regular writes are not those of `writes.old`, its
        special ones came later, or it expires too soon.
    """
    if not writes.parts:
        return (yield from _touch(storage, writes))
    attributes = items.created({}, storage.clock())
    for name, part in writes.parts.items():
        attributes[name] = part.attribute(writes.sk)
        if part.ids:
            attributes[items.EPOCH_NAMES[name]] = {"B": thread.epoch}
    if writes.order is not None:
        attributes[items.ORDER] = {"N": str(writes.order)}
    if not writes.replaces:
        change = protocol.set_writes(
            attributes, writes.old, least=expiry.readable, expires_at=expiry.own, order=writes.order
        )
        return (yield from storage.table.try_update(writes.key, change))
    told = [name for name in (TTL_ATTRIBUTE, items.CREATED_AT) if name in writes.old]
    condition, names, values = protocol.unchanged(writes.old, told)
    item = items.with_expiry({**writes.key, **attributes}, expiry.own)
    return (yield from storage.table.try_put(item, protocol.Change("", condition, names, values)))


def _touch(storage: Storage, writes: TaskWrites) -> Op[Item | None]:
    """Keep stored writes from being taken for abandoned; return an empty item if they have been deleted."""
    now = storage.clock()
    if (items.number(writes.old, items.CREATED_AT) or 0) > int(now) - UPLOAD_SECONDS_MAX:
        return None
    return (yield from storage.table.try_update(writes.key, protocol.touch_writes(now)))


def _meet(storage: Storage, writes: TaskWrites, found: Item, thread: CachedThread) -> Op[Outcome]:
    """Read the stored writes of the task, as far as the parts have to be merged with them."""
    if not found or items.is_expired(found, storage.clock()):
        # The item has been deleted or has expired, and so may its segments.
        return Outcome(stored=False, thread=thread, found=Found(found, is_gone=True))
    # By the time as it is now: a slow call must not shorten what others have stored since it began.
    yield from _fit_expiry(storage, writes, found, Expiry.after(thread.ttl_seconds, storage.clock()))
    if items.WRITES not in writes.parts:
        return Outcome(stored=False, thread=thread, found=Found(found))
    contents = yield from _contents(storage, writes.partition, found)
    part = items.parse_part(found, items.WRITES)
    if part is None or not part.own:
        return Outcome(stored=False, thread=thread, found=Found(found, contents=contents))
    # A deletion may still be about to remove their segments.
    seen = yield from read_thread(storage, writes.partition)
    is_safe = seen is not None and seen.confirms(protocol.epoch_of(found, items.WRITES))
    known = None if seen is None or seen.is_pending else CachedThread(seen.epoch, seen.ttl_seconds)
    return Outcome(stored=False, thread=known, found=Found(found, contents=contents, is_safe=is_safe))


def _contents(storage: Storage, partition: Partition, found: Item) -> Op[Mapping[bytes, bytes] | None]:
    """Read the segments of a task's stored regular writes; return `None` if these were never committed."""
    part = items.parse_part(found, items.WRITES)
    if part is None:
        return {}
    loaded = LoadedSegments(partition.pk)
    yield from loaded.read(storage, part.own)
    try:
        if (yield from lost_parts(storage, found, loaded, (items.WRITES,))):
            # A deletion removed its segments before it was acknowledged. Treat it as absent.
            return None
    except ChangedMeanwhileError:
        # The next update will fail, and return the item as it is now.
        return None
    return loaded.contents


def _fit_expiry(storage: Storage, writes: TaskWrites, found: Item, expiry: Expiry) -> Op[None]:
    """Let the stored writes live as long as the new ones: extend them and their segments, or let them expire earlier.

    They expire later than the new ones where they arrived after the deletion of their thread, which had a longer ttl
    than the one that has begun since.
    """
    expires_at = items.expires_at(found)
    if expires_at is not None and expiry.own is not None and expires_at > expiry.own:
        yield from storage.table.try_update(writes.key, protocol.shorten_writes(found, expiry.own))
    if not expires_before(expires_at, expiry.readable):
        return
    loaded, named = LoadedSegments(writes.partition.pk), items.named_ids([found])
    yield from loaded.read_indexes(storage, named)
    yield from extend_segments(storage, writes.partition, reach(named, loaded.contents), expiry.shared)
    # An item that has expired by now is replaced instead: its segments may have been removed before they were extended.
    if not items.is_expired(found, storage.clock()):
        yield from extend(storage, writes.key, expiry.own)
