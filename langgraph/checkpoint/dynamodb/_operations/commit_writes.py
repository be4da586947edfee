"""Storing parts of a task's writes: what needs the table, and no serializer.

One UpdateItem sets them, under the condition that the task has what whoever made them knew of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.limits import SEGMENT_LIFETIMES, UPLOAD_SECONDS_MAX
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.draft import Needs, store_needs
from langgraph.checkpoint.dynamodb._operations.inventory import as_read
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Segments,
    lost_parts,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    lives_shorter,
    look_at_thread,
    renew,
    renew_segments,
    take_epoch,
)
from langgraph.checkpoint.dynamodb._runtime.requests import Table, in_the_way
from langgraph.checkpoint.dynamodb._runtime.steps import Op


@dataclass(frozen=True)
class TaskWrites:
    """Parts of a task's writes that are ready to be stored."""

    at: Partition
    # The sort key of the task's item.
    sk: str
    parts: Mapping[str, Part]
    # What the parts name: new segments, and what is known of all.
    needs: Needs
    # The table with the ttl that they are to have: at least that of the thread, and of what the task has already.
    lasts: Table
    # When the item may expire, taken before its segments were given their expiry; empty without a ttl.
    expiries: Item
    # Of two calls with special writes the later one has the higher; None where there are none.
    order: int | None = None
    # What the task had when it was last read, whether the parts are to take its place, or go beside it.
    old: Item = field(default_factory=dict)
    replaces: bool = False


@dataclass(frozen=True)
class Found:
    """What a task has already, with which writes have to be merged."""

    # Empty where it had something, which has gone.
    item: Item
    # Whether it has gone, or counts as gone.
    is_gone: bool = False
    ends_at: int | None = None
    # The segments of its regular writes; None where these never counted.
    contents: Mapping[bytes, bytes] | None = None
    # Whether no deletion can be about to remove what its regular writes need.
    is_safe: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of storing parts of a task's writes."""

    stored: bool
    # That of the thread, as far as it is known.
    epoch: bytes | None
    found: Found | None = None


def commit_writes(table: Table, codec: Codec, writes: TaskWrites, epoch: bytes | None) -> Op[Outcome]:
    """Store what parts of a task's writes name, and then the parts.

    Args:
        table: The table.
        codec: What the segments of writes that are there already are opened with.
        writes: The parts.
        epoch: The epoch under which what they reuse is safe, or that of the thread as far as it is known.
    """
    at, lasts = writes.at, writes.lasts
    # Whether they depend on more than their item: on segments, or on their namespace's entry.
    needs_look = bool(writes.needs.chunks or at.namespace)
    if needs_look:
        epoch = epoch or (yield from take_epoch(table, at)).epoch
        # Writes may come before the first checkpoint of their namespace.
        if not (yield from store_needs(lasts, at, writes.needs, epoch, lasts.expires_at(2))):
            return Outcome(stored=False, epoch=None)
    found = yield from _store_parts(table, writes, epoch)
    if found is not None:
        return (yield from _meet(table, codec, writes, found, epoch))
    if not needs_look:
        return Outcome(stored=True, epoch=epoch)
    thread = yield from look_at_thread(table, at, epoch)
    if thread is None or thread.epoch != epoch:
        # A deletion came between: it may have removed what they name before the update named it.
        return Outcome(stored=False, epoch=None if thread is None else thread.epoch)
    table.memory.remember_segments(at.pk, thread.epoch, writes.needs.stored())
    return Outcome(stored=True, epoch=epoch)


def expiries_of(table: Table) -> Item:
    """When a writes item with these writes is to expire: at the soonest, if it is new, and with its segments."""
    lifetimes = {":least": 1, ":expiry": 2, ":most": SEGMENT_LIFETIMES}
    if table.ttl_seconds is None:
        return {}
    return {name: {"N": str(table.expires_at(count))} for name, count in lifetimes.items()}


def _store_parts(table: Table, writes: TaskWrites, epoch: bytes | None) -> Op[Item | None]:
    """Set parts of a task's writes.

    Returns:
        The task's item instead, if its regular writes are not those of `writes.old`, its special ones came later, or it
        goes before these writes may, or after their segments.
    """
    key, expiries = items.key(writes.at.pk, writes.sk), writes.expiries
    if not writes.parts:
        return (yield from _keep(table, key, writes.old))
    attributes: Item = {items.CREATED_AT: {"N": str(int(table.clock()))}}
    for name, part in writes.parts.items():
        attributes[name] = part.attribute(writes.sk)
        if part.ids and epoch is not None:
            attributes[items.epoch_name(name)] = {"B": epoch}
    if writes.order is not None:
        attributes[items.ORDER] = {"N": str(writes.order)}
    if not writes.replaces:
        return (yield from _update_item(table, key, attributes, writes.old, expiries))
    if expiries:
        attributes[TTL_ATTRIBUTE] = expiries[":expiry"]
    told = [name for name in (TTL_ATTRIBUTE, items.CREATED_AT) if name in writes.old]
    condition, names, values = as_read(writes.old, told)
    put = table.send(
        "put_item",
        Item={**key, **attributes},
        ConditionExpression=condition,
        ExpressionAttributeNames=names,
        ExpressionAttributeValues=values,
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    return (yield from in_the_way(put))


def _keep(table: Table, key: Item, old: Item) -> Op[Item | None]:
    """Let writes that are there already not pass for abandoned; return an empty item where they have gone."""
    now = int(table.clock())
    if (items.number(old, items.CREATED_AT) or 0) > now - UPLOAD_SECONDS_MAX:
        return None
    update = table.update(
        key,
        "SET #created = :created",
        condition="attribute_exists(#pk)",
        names={"#created": items.CREATED_AT, "#pk": PARTITION_KEY},
        values={":created": {"N": str(now)}},
    )
    return (yield from in_the_way(update))


def _update_item(table: Table, key: Item, attributes: Item, old: Item, expiries: Item) -> Op[Item | None]:
    """Set attributes of a task's item; return the item instead where it does not allow that."""
    names = {f"#a{position}": name for position, name in enumerate(attributes)}
    values = {f":a{position}": value for position, value in enumerate(attributes.values())}
    sets = [f"#a{position} = :a{position}" for position in range(len(attributes))]
    names["#expiry"] = TTL_ATTRIBUTE
    conditions = ["attribute_not_exists(#expiry)"]
    if expiries:
        # The first call's expiry stays, as long as it fits.
        sets.append("#expiry = if_not_exists(#expiry, :expiry)")
        names["#created"] = items.CREATED_AT
        values |= expiries
        conditions = ["(attribute_not_exists(#created) OR #expiry BETWEEN :least AND :most)"]
    if items.WRITES in attributes:
        names["#writes"] = items.WRITES
        conditions.append("#writes = :old" if items.WRITES in old else "attribute_not_exists(#writes)")
        values |= {":old": old[items.WRITES]} if items.WRITES in old else {}
    if items.ORDER in attributes:
        names["#order"] = items.ORDER
        values[":order"] = attributes[items.ORDER]
        conditions.append("(attribute_not_exists(#order) OR #order < :order)")
    update = table.update(
        key,
        "SET " + ", ".join(sets),
        condition=" AND ".join(conditions),
        names=names,
        values=values,
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    return (yield from in_the_way(update))


def _meet(table: Table, codec: Codec, writes: TaskWrites, found: Item, epoch: bytes | None) -> Op[Outcome]:
    """Read what the task has already, as far as the parts have to be merged with it."""
    if not found or items.is_expired(found, table.clock()):
        # What it had has gone or counts as gone, and its segments may be.
        return Outcome(stored=False, epoch=epoch, found=Found(found, is_gone=True))
    ends_at = yield from _outlive(writes.lasts, writes.at, found)
    if items.WRITES not in writes.parts:
        return Outcome(stored=False, epoch=epoch, found=Found(found, ends_at=ends_at))
    contents = yield from _contents(table, codec, writes.at, found)
    part = items.parse_part(found, items.WRITES)
    is_safe = part is None or not part.own
    if not is_safe:
        # A deletion may still be about to remove what they need, unless they are of the thread's epoch.
        thread = yield from look_at_thread(table, writes.at, epoch)
        epoch = None if thread is None else thread.epoch
        is_safe = epoch is not None and items.epoch_of(found, items.WRITES) == {"B": epoch}
    return Outcome(
        stored=False,
        epoch=epoch,
        found=Found(found, ends_at=ends_at, contents=contents, is_safe=is_safe),
    )


def _contents(table: Table, codec: Codec, at: Partition, found: Item) -> Op[Mapping[bytes, bytes] | None]:
    """The segments of the regular writes that a task has already."""
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


def _outlive(table: Table, at: Partition, found: Item) -> Op[int | None]:
    """Let what the task has live as long as what is added, and return until when it does."""
    ends_at = items.number(found, TTL_ATTRIBUTE)
    if lives_shorter(ends_at, table.expires_at()):
        known, named = Segments(), items.named_ids([found])
        yield from read_segments(table, None, at.pk, named, known)
        yield from renew_segments(
            table, at, reach(named, known.contents), table.expires_at(SEGMENT_LIFETIMES)
        )
        # What has expired by now is replaced: its segments may have gone before they were renewed.
        if not items.is_expired(found, table.clock()):
            ends_at = table.expires_at(2)
            yield from renew(table, items.key(at.pk, items.sort_key(found)), ends_at)
    return ends_at
