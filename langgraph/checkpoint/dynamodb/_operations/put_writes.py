"""`put_writes`: what a step's tasks wrote, kept until the next checkpoint holds it.

The regular writes of a task are one compressed group, each special write stands beside it; so a call is
one UpdateItem. Special writes replace what the task has. Of regular ones the first with an index stays:
a call that finds the group there already adds what it lacks.
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
    SEGMENT_LIFETIMES,
    UPLOAD_SECONDS_MAX,
    WRITES_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import reach
from langgraph.checkpoint.dynamodb._operations.arguments import checked_text, checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._operations.draft import Draft, store_needs
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Segments,
    lost_parts,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    lasting,
    lives_shorter,
    look_at_thread,
    outliving,
    renew,
    renew_segments,
    take_epoch,
)
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table, in_the_way
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError

Serialized: TypeAlias = tuple[dict[int, Write], dict[int, Write]]
"""What one call stores: regular writes and special ones, by their index."""


def put_writes(
    table: Table,
    codec: Codec,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Op[None]:
    """Store a task's writes: special ones replace, of regular ones the first with an index stays."""
    at, checkpoint_id = target(config), checkpoint_id_in(config)
    if checkpoint_id is None:
        msg = 'config["configurable"]["checkpoint_id"] is missing; give the checkpoint that the writes belong to'
        raise CheckpointerInputError(msg)
    items.writes_sk(checkpoint_id, checked_text(task_id, "task_id"))
    checked_text(task_path, "task_path")
    if not writes:
        return
    size = sum(rough_bytes(value) for _, value in writes)
    serialized = yield from work(partial(serialize, codec, tuple(writes), task_path), size)
    yield from store(table, codec, at, checkpoint_id, task_id, serialized)


def store(
    table: Table, codec: Codec, at: Partition, checkpoint_id: str, task_id: str, serialized: Serialized
) -> Op[None]:
    """Store a task's writes once they are serialized."""
    sk = items.writes_sk(checkpoint_id, task_id)
    call = _Call(serialized, order=int(table.clock() * 1000))
    head, thread = table.memory.checkpoint(at.pk, checkpoint_id), table.memory.thread(at.root)
    # With which it is stored: as long as anything in the thread lives, and as what the task has already.
    lasts = lasting(table, thread)
    epoch = yield from _known_epoch(table, at, thread or head)
    for _ in range(MERGE_ATTEMPTS_MAX):
        # What may take the place of acknowledged writes is not to need what a deletion may be removing.
        reuses = not call.special and not call.old and call.size_bytes > INLINE_STATE_BYTES_MAX
        base = _safe(head, epoch) if reuses else None
        draft = Draft(lasts, codec, at, sk, base)
        # Taken before the segments', which so live as long, however late the update comes.
        expiries = _expiries(lasts)
        parts = yield from work(partial(_parts, draft, call, base), call.size_bytes)
        # Whether they depend on more than their item: on segments, or on their namespace's entry.
        needs_look = bool(draft.chunks or at.namespace)
        if needs_look:
            epoch = epoch or (yield from take_epoch(table, at)).epoch
            # Writes may come before the first checkpoint of their namespace.
            if not (yield from store_needs(lasts, at, draft, epoch, lasts.expires_at(2))):
                epoch = None
                continue
        found = yield from _store_parts(table, items.key(at.pk, sk), parts, call, epoch, expiries)
        if found is not None and (not found or items.is_expired(found, table.clock())):
            # What it had has gone or counts as gone, and its segments may be.
            call.begin(found)
            continue
        if found is not None:
            # The task has writes already: add to them what they lack.
            lasts = yield from _outlive(lasts, at, found)
            epoch = yield from _merge(table, codec, at, call, parts, found, epoch)
            continue
        if not needs_look:
            return
        thread = yield from look_at_thread(table, at, epoch)
        if thread is not None and thread.epoch == epoch:
            table.memory.remember_segments(at.pk, epoch, draft.stored())
            return
        # A deletion came between: write again what it may have removed before the update named it.
        call.begin({})
        epoch = None if thread is None else thread.epoch
    msg = (
        f"writes of task {task_id!r} of thread {at.thread_id!r} could not be stored: other calls for the same task"
        f" interfered {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )
    raise ThreadBusyError(msg)


def _known_epoch(table: Table, at: Partition, remembered: ThreadEntry | Entry | None) -> Op[bytes | None]:
    """The thread's epoch as far as this process knows it; a thread that it does not know may be another saver's."""
    if remembered is not None:
        return remembered.epoch
    yield from look_for_other_savers(table, at)
    return None


class _Call:
    """What is still to be stored, by index, and what the task had when it was last read."""

    def __init__(self, given: Serialized, order: int) -> None:
        """Take what was given, and its order.

        Of two calls with special writes the later one has the higher; a request of the earlier one may arrive last.
        """
        self._given = given
        self.order = order
        self.begin({})

    def begin(self, old: Item) -> None:
        """Begin anew, where the task has nothing, or an item that has expired and is not to be changed but replaced."""
        self.regular: Mapping[int, Write] = self._given[0]
        self.special: Mapping[int, Write] = self._given[1]
        self.old = old
        self.replaces = bool(old)

    @property
    def size_bytes(self) -> int:
        """How many bytes the writes have, serialized."""
        return sum(len(write.data) for write in (*self.regular.values(), *self.special.values()))


def serialize(codec: Codec, writes: Sequence[tuple[str, Any]], task_path: str) -> Serialized:
    """The regular and the special writes by their index; within a call the last one to a special index wins."""
    regular, special = dict[int, Write](), dict[int, Write]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        kind, data = codec.dumps(value, f"the write to channel {channel!r}")
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return regular, special


def _expiries(table: Table) -> Item:
    """When a writes item with these writes is to expire: at the soonest, if it is new, and with its segments."""
    lifetimes = {":least": 1, ":expiry": 2, ":most": SEGMENT_LIFETIMES}
    if table.ttl_seconds is None:
        return {}
    return {name: {"N": str(table.expires_at(count))} for name, count in lifetimes.items()}


def _safe(head: Entry | None, epoch: bytes | None) -> Entry | None:
    """The checkpoint that the writes belong to, if it is remembered and its segments are safe under the epoch.

    Tasks often write again most of what they were given, and may name it then: it stays as long as the checkpoint.
    """
    return head if head is not None and head.epoch == epoch else None


def _parts(draft: Draft, call: _Call, base: Entry | None) -> dict[str, Part]:
    """The attributes of the writes: the regular ones as a group, each special one beside it."""
    parts = {
        name: draft.part(name, pack_writes([call.special[index]]), WRITES_BYTES_MAX)
        for index, name in items.SPECIAL_WRITES.items()
        if index in call.special
    }
    if call.regular:
        group = [call.regular[index] for index in sorted(call.regular)]
        before = None
        if base is not None:
            before = [base.values[each.channel] for each in group if each.channel in base.values]
        parts[items.WRITES] = draft.part(items.WRITES, pack_writes(group), WRITES_BYTES_MAX, before=before)
    return parts


def _store_parts(
    table: Table,
    key: Item,
    parts: Mapping[str, Part],
    call: _Call,
    epoch: bytes | None,
    expiries: Item,
) -> Op[Item | None]:
    """Set parts of a task's writes.

    Returns:
        The task's item instead, if its regular writes are not those of `call.old`, its special ones came later, or it
        goes before these writes may, or after their segments.
    """
    if not parts:
        return (yield from _keep(table, key, call.old))
    sk = items.sort_key(key)
    attributes: Item = {items.CREATED_AT: {"N": str(int(table.clock()))}}
    for name, part in parts.items():
        attributes[name] = part.attribute(sk)
        if part.ids and epoch is not None:
            attributes[items.epoch_name(name)] = {"B": epoch}
    if call.special:
        attributes[items.ORDER] = {"N": str(call.order)}
    if not call.replaces:
        return (yield from _update_item(table, key, attributes, call.old, expiries))
    if expiries:
        attributes[TTL_ATTRIBUTE] = expiries[":expiry"]
    put = table.send(
        "put_item",
        Item={**key, **attributes},
        ConditionExpression="#expiry = :was",
        ExpressionAttributeNames={"#expiry": TTL_ATTRIBUTE},
        ExpressionAttributeValues={":was": call.old[TTL_ATTRIBUTE]},
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


def _outlive(table: Table, at: Partition, found: Item) -> Op[Table]:
    """Let what the task has live as long as what is added, and return the table with which that lives as long too."""
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
    return outliving(table, ends_at)


def _merge(
    table: Table,
    codec: Codec,
    at: Partition,
    call: _Call,
    parts: Mapping[str, Part],
    found: Item,
    epoch: bytes | None,
) -> Op[bytes | None]:
    """Leave in the call what the task lacks, with the regular writes that it has; return the thread's epoch."""
    call.old, call.replaces = found, False
    if call.regular:
        epoch = yield from _merge_regular(table, codec, at, call, epoch)
    order = items.number(found, items.ORDER)
    if call.special and order is not None and order >= call.order:
        sk = items.sort_key(found)
        special = [name for name in parts if name != items.WRITES]
        if order == call.order and all(found.get(name) == parts[name].attribute(sk) for name in special):
            # This very request was carried out, and its answer lost.
            call.special = {}
        else:
            call.order = order + 1
    return epoch


def _merge_regular(
    table: Table, codec: Codec, at: Partition, call: _Call, epoch: bytes | None
) -> Op[bytes | None]:
    """Add to the call's regular writes those that the task has; none are left where it has them all."""
    stored = yield from _stored_writes(table, codec, at, call.old)
    part = items.parse_part(call.old, items.WRITES)
    safe = part is None or not part.own
    if not safe:
        # A deletion may still be about to remove what they need, unless they are of the thread's epoch.
        thread = yield from look_at_thread(table, at, epoch)
        epoch = None if thread is None else thread.epoch
        safe = epoch is not None and items.epoch_of(call.old, items.WRITES) == {"B": epoch}
    lacks = call.regular.keys() - stored.keys() or not safe
    call.regular = {**call.regular, **stored} if lacks else {}
    return epoch


def _stored_writes(table: Table, codec: Codec, at: Partition, old: Item) -> Op[dict[int, Write]]:
    """The regular writes that a task has already."""
    part = items.parse_part(old, items.WRITES)
    if part is None:
        return {}
    known = Segments()
    yield from read_segments(table, codec, at.pk, part.own, known)
    try:
        if (yield from lost_parts(table, old, known, (items.WRITES,))):
            # A deletion took its segments before it was acknowledged: as if it were not there.
            return {}
    except ChangedMeanwhileError:
        # The update that follows fails, and returns what the item has become.
        return {}
    return {each.index: each for each in read_writes(codec, old, items.WRITES, known.contents)}
