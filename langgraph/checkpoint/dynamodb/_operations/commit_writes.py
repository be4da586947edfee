"""Commit parts of a task's writes: what needs the table, and no serializer.

One UpdateItem sets them, under the condition that the task has what whoever composed them knew of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.expiry import Expiry, expires_before
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.limits import UPLOAD_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.draft import Needs, store_needs
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Segments,
    lost_parts,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    confirm_epoch,
    extend,
    extend_segments,
    find_epoch,
    read_thread,
)
from langgraph.checkpoint.dynamodb._runtime.memory import ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op


@dataclass(frozen=True)
class TaskWrites:
    """Parts of a task's writes that are composed."""

    at: Partition
    sk: str
    """The sort key of the task's item."""
    parts: Mapping[str, Part]
    needs: Needs
    """What the parts name: new segments, and what is known of all."""
    order: int | None = None
    """Of two calls with special writes the later one has the higher; `None` where there are none."""
    old: Item = field(default_factory=dict)
    """What the task had when it was last read."""
    replaces: bool = False
    """Whether the parts take the place of what the task had, or go beside it."""

    @property
    def key(self) -> Item:
        """The primary key of the task's item."""
        return items.key(self.at.pk, self.sk)


@dataclass(frozen=True)
class Found:
    """What a task has already, with which writes have to be merged."""

    item: Item
    """Empty where it had something, which has gone."""
    is_gone: bool = False
    """Whether it has gone, or counts as gone."""
    contents: Mapping[bytes, bytes] | None = None
    """The segments of its regular writes; `None` where these were never committed."""
    is_safe: bool = True
    """Whether no deletion can be about to remove what its regular writes need."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of storing parts of a task's writes."""

    stored: bool
    thread: ThreadEntry | None
    """The thread as far as it is known; `None` where it has to be asked for."""
    found: Found | None = None


def commit_writes(table: Table, codec: Codec, writes: TaskWrites, thread: ThreadEntry | None) -> Op[Outcome]:
    """Store what parts of a task's writes name, and then the parts.

    Args:
        table: The table.
        codec: Opens the segments of writes that are there already.
        writes: The parts.
        thread: The thread under whose epoch what they reuse is safe. `None`: they reuse nothing, and the thread is not
            known.

    Raises:
        UnlistedExpiryError: See `store_needs`.
    """
    at = writes.at
    if thread is None:
        thread = yield from find_epoch(table, at)
    # Whether they depend on more than their item: on segments, or on their namespace's marker. A client of the gateway
    # may have sent the segments ahead, and need not list them again.
    must_confirm = bool(at.namespace or any(part.ids for part in writes.parts.values()))
    expiry = Expiry.after(thread.ttl_seconds, table.clock())
    # Writes may come before the first checkpoint of their namespace.
    if must_confirm and not (yield from store_needs(table, at, writes.needs, thread, expiry, expiry.item)):
        return Outcome(stored=False, thread=None)
    found = yield from _store_parts(table, writes, thread, expiry)
    if found is not None:
        return (yield from _meet(table, codec, writes, found, thread, expiry))
    if not must_confirm:
        return Outcome(stored=True, thread=thread)
    seen = yield from confirm_epoch(table, at, thread.epoch, expiry.item)
    if seen is None or not protocol.is_reusable(thread.epoch, seen.epoch):
        # A deletion came between: it may have removed what they name before the update named it.
        return Outcome(stored=False, thread=seen)
    table.memory.remember_segments(at.pk, thread.epoch, writes.needs.stored())
    return Outcome(stored=True, thread=thread)


def _store_parts(table: Table, writes: TaskWrites, thread: ThreadEntry, expiry: Expiry) -> Op[Item | None]:
    """Set parts of a task's writes.

    Returns:
        The task's item instead, if its regular writes are not those of `writes.old`, its special ones came later, or it
        expires too soon.
    """
    if not writes.parts:
        return (yield from _touch(table, writes))
    attributes = items.created({}, table.clock())
    for name, part in writes.parts.items():
        attributes[name] = part.attribute(writes.sk)
        if part.ids:
            attributes[items.epoch_name(name)] = {"B": thread.epoch}
    if writes.order is not None:
        attributes[items.ORDER] = {"N": str(writes.order)}
    if not writes.replaces:
        change = protocol.set_writes(
            attributes, writes.old, least=expiry.head, expires_at=expiry.item, order=writes.order
        )
        return (yield from table.try_update(writes.key, change))
    told = [name for name in (TTL_ATTRIBUTE, items.CREATED_AT) if name in writes.old]
    condition, names, values = protocol.unchanged(writes.old, told)
    item = items.with_expiry({**writes.key, **attributes}, expiry.item)
    return (yield from table.try_put(item, protocol.Change("", condition, names, values)))


def _touch(table: Table, writes: TaskWrites) -> Op[Item | None]:
    """Let writes that are there already not pass for abandoned; return an empty item where they have gone."""
    now = table.clock()
    if (items.number(writes.old, items.CREATED_AT) or 0) > int(now) - UPLOAD_SECONDS_MAX:
        return None
    return (yield from table.try_update(writes.key, protocol.touch_writes(now)))


def _meet(
    table: Table, codec: Codec, writes: TaskWrites, found: Item, thread: ThreadEntry, expiry: Expiry
) -> Op[Outcome]:
    """Read what the task has already, as far as the parts have to be merged with it."""
    if not found or items.is_expired(found, table.clock()):
        # What it had has gone or counts as gone, and its segments may be.
        return Outcome(stored=False, thread=thread, found=Found(found, is_gone=True))
    yield from _extend_found(table, writes, found, expiry)
    if items.WRITES not in writes.parts:
        return Outcome(stored=False, thread=thread, found=Found(found))
    contents = yield from _contents(table, codec, writes.at, found)
    part = items.parse_part(found, items.WRITES)
    if part is None or not part.own:
        return Outcome(stored=False, thread=thread, found=Found(found, contents=contents))
    # A deletion may still be about to remove what they need.
    seen = yield from read_thread(table, writes.at)
    is_safe = seen is not None and seen.confirms(protocol.epoch_of(found, items.WRITES))
    known = None if seen is None or seen.is_pending else ThreadEntry(seen.epoch, seen.ttl_seconds)
    return Outcome(stored=False, thread=known, found=Found(found, contents=contents, is_safe=is_safe))


def _contents(table: Table, codec: Codec, at: Partition, found: Item) -> Op[Mapping[bytes, bytes] | None]:
    """Read the segments of the regular writes that a task has already."""
    part = items.parse_part(found, items.WRITES)
    if part is None:
        return {}
    known = Segments()
    yield from read_segments(table, codec, at.pk, part.own, known)
    try:
        if (yield from lost_parts(table, found, known, (items.WRITES,))):
            # A deletion took its segments before it was acknowledged: as if it were not there.
            return None
    except ChangedMeanwhileError:
        # The update that follows fails, and returns what the item has become.
        return None
    return known.contents


def _extend_found(table: Table, writes: TaskWrites, found: Item, expiry: Expiry) -> Op[None]:
    """Let what the task has live as long as what is added."""
    if not expires_before(items.expires_at(found), expiry.head):
        return
    known, named = Segments(), items.named_ids([found])
    yield from read_segments(table, None, writes.at.pk, named, known)
    yield from extend_segments(table, writes.at, reach(named, known.contents), expiry.segment)
    # What has expired by now is replaced: its segments may have gone before they were extended.
    if not items.is_expired(found, table.clock()):
        yield from extend(table, writes.key, expiry.item)
