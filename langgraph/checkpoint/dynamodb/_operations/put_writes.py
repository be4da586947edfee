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
    WRITES_BYTES_MAX,
)
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations.draft import Draft, store_draft
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Segments,
    checkpoint_id_in,
    is_whole,
    read_segments,
    target,
)
from langgraph.checkpoint.dynamodb._operations.threads import look_at_thread, take_epoch
from langgraph.checkpoint.dynamodb._runtime.memory import Entry
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
    items.writes_sk(checkpoint_id, task_id)
    if not writes:
        return
    size = sum(rough_bytes(value) for _, value in writes)
    serialized = yield from work(partial(serialize, codec, tuple(writes), task_path), size)
    yield from store(table, codec, at, checkpoint_id, task_id, serialized)


def store(
    table: Table, codec: Codec, at: Partition, checkpoint_id: str, task_id: str, serialized: Serialized
) -> Op[None]:
    """Store a task's writes once they are serialized."""
    regular, special = serialized
    sk = items.writes_sk(checkpoint_id, task_id)
    head = table.memory.checkpoint(at.pk, checkpoint_id)
    remembered = table.memory.thread(at.root) or head
    epoch = None if remembered is None else remembered.epoch
    old: Item = {}
    for _ in range(MERGE_ATTEMPTS_MAX):
        size = sum(len(write.data) for write in (*regular.values(), *special.values()))
        # What may take the place of acknowledged writes is not to need what a deletion may be removing.
        base = None if special or old or size <= INLINE_STATE_BYTES_MAX else _safe(head, epoch)
        draft = Draft(table, codec, at, sk, base)
        # Taken before the segments', which so live as long, however late the update comes.
        expires_at = table.expires_at(2)
        parts = yield from work(partial(_parts, draft, regular, special, base), size)
        # Whether they depend on more than their item: on segments, or on their namespace's entry.
        needs_look = bool(draft.chunks or at.namespace)
        if needs_look:
            epoch = yield from _store_dependencies(table, at, draft, epoch, expires_at)
            if epoch is None:
                continue
        found = yield from _update_writes(
            table, items.key(at.pk, sk), parts, old, epoch if draft.chunks else None, expires_at
        )
        if found is None:
            if not needs_look:
                return
            seen = yield from look_at_thread(table, at, epoch)
            if seen == epoch:
                return
            # A deletion came between: write again what it may have removed before the update named it.
            epoch = seen
        else:
            # The task has a group of writes already: add to it what it lacks.
            old = found
            regular, epoch = yield from _merge(table, codec, at, old, regular, epoch)
            if not regular and not special:
                return
    msg = (
        f"writes of task {task_id!r} of thread {at.thread_id!r} could not be stored: other calls for the same task"
        f" interfered {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )
    raise ThreadBusyError(msg)


def serialize(codec: Codec, writes: Sequence[tuple[str, Any]], task_path: str) -> Serialized:
    """The regular and the special writes by their index; within a call the last one to a special index wins."""
    regular, special = dict[int, Write](), dict[int, Write]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        kind, data = codec.dumps(value, f"the write to channel {channel!r}")
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return regular, special


def _safe(head: Entry | None, epoch: bytes | None) -> Entry | None:
    """The checkpoint that the writes belong to, if it is remembered and its segments are safe under the epoch.

    Tasks often write again most of what they were given, and may name it then: it stays as long as the checkpoint.
    """
    return head if head is not None and head.epoch == epoch else None


def _parts(
    draft: Draft, regular: Mapping[int, Write], special: Mapping[int, Write], base: Entry | None
) -> dict[str, Part]:
    """The attributes of the writes: the regular ones as a group, each special one beside it."""
    parts = {
        items.SPECIAL_WRITES[index]: draft.part(pack_writes([write]), WRITES_BYTES_MAX)
        for index, write in special.items()
    }
    if regular:
        group = [regular[index] for index in sorted(regular)]
        before = None
        if base is not None:
            before = [base.values[each.channel] for each in group if each.channel in base.values]
        parts[items.WRITES] = draft.part(pack_writes(group), WRITES_BYTES_MAX, before=before)
    return parts


def _store_dependencies(
    table: Table, at: Partition, draft: Draft, epoch: bytes | None, ends_at: int | None
) -> Op[bytes | None]:
    """Write what the writes need before them; return the thread's epoch, or None where a reused segment has gone.

    Writes may come before the first checkpoint of their namespace.
    """
    epoch = epoch or (yield from take_epoch(table, at))
    table.memory.remember_thread(at.root, epoch)
    return epoch if (yield from store_draft(table, at, draft, epoch, ends_at)) else None


def _update_writes(
    table: Table,
    key: Item,
    parts: Mapping[str, Part],
    old: Item,
    epoch: bytes | None,
    expires_at: int | None,
) -> Op[Item | None]:
    """Set parts of a task's writes; return the item instead if its regular writes are not those of `old`."""
    sets = ["#created = :created"]
    names = {"#created": items.CREATED_AT}
    values: Item = {":created": {"N": str(int(table.clock()))}}
    for position, (name, part) in enumerate(parts.items()):
        sets.append(f"#p{position} = :p{position}")
        names[f"#p{position}"] = name
        values[f":p{position}"] = part.attribute(items.sort_key(key))
    if epoch is not None:
        sets.append("#epoch = :epoch")
        names["#epoch"] = items.EPOCH
        values[":epoch"] = {"B": epoch}
    if expires_at is not None:
        # The first call's expiry stays: its segments live no longer.
        sets.append("#expiry = if_not_exists(#expiry, :expiry)")
        names["#expiry"] = TTL_ATTRIBUTE
        values[":expiry"] = {"N": str(expires_at)}
    conditions: dict[str, str] = {}
    if items.WRITES in parts:
        names["#writes"] = items.WRITES
        conditions["condition"] = "attribute_not_exists(#writes)"
        conditions["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if items.WRITES in old:
            conditions["condition"] = "#writes = :old"
            values[":old"] = old[items.WRITES]
    update = table.update(key, "SET " + ", ".join(sets), names=names, values=values, **conditions)
    return (yield from in_the_way(update))


def _merge(
    table: Table, codec: Codec, at: Partition, old: Item, regular: dict[int, Write], epoch: bytes | None
) -> Op[tuple[dict[int, Write], bytes | None]]:
    """Add regular writes to those that the task has; none are left where it has them all. With the thread's epoch."""
    stored = yield from _stored_writes(table, codec, at, old)
    part = items.parse_part(old, items.WRITES)
    safe = part is None or not part.own
    if not safe:
        # A deletion may still be about to remove what they need, unless they are of the thread's epoch.
        epoch = yield from look_at_thread(table, at, epoch)
        safe = old.get(items.EPOCH) == {"B": epoch}
    return ({**regular, **stored} if regular.keys() - stored.keys() or not safe else {}), epoch


def _stored_writes(table: Table, codec: Codec, at: Partition, old: Item) -> Op[dict[int, Write]]:
    """The regular writes that a task has already."""
    part = items.parse_part(old, items.WRITES)
    if part is None:
        return {}
    known = Segments()
    yield from read_segments(table, codec, at.pk, part.own, known)
    try:
        if not (yield from is_whole(table, old, known, (items.WRITES,))):
            # A deletion took its segments before it was acknowledged: as if it were not there.
            return {}
    except ChangedMeanwhileError:
        # The update that follows fails, and returns what the item has become.
        return {}
    return {each.index: each for each in read_writes(codec, old, items.WRITES, known.contents)}
