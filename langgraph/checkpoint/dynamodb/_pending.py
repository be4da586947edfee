"""`put_writes`: what a step's tasks wrote, kept until the next checkpoint holds it.

The regular writes of a task are one compressed group, each special write stands beside it; so a call is
one UpdateItem. Special writes replace what the task has. Of regular ones the first with an index stays:
a call that finds the group there already adds what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP

from langgraph.checkpoint.dynamodb import _items as items
from langgraph.checkpoint.dynamodb._codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._content import Write, pack_writes, read_writes
from langgraph.checkpoint.dynamodb._draft import Draft
from langgraph.checkpoint.dynamodb._items import Part, Partition
from langgraph.checkpoint.dynamodb._limits import MERGE_ATTEMPTS_MAX, WRITES_BYTES_MAX
from langgraph.checkpoint.dynamodb._reads import (
    ChangedMeanwhileError,
    Segments,
    checkpoint_id_in,
    is_whole,
    read_segments,
    target,
)
from langgraph.checkpoint.dynamodb._requests import Table, in_the_way
from langgraph.checkpoint.dynamodb._schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._steps import Item, Op, work
from langgraph.checkpoint.dynamodb._threads import enter_namespace, look_at_thread, take_epoch
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError


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
    sk = items.writes_sk(checkpoint_id, task_id)
    if not writes:
        return
    size = sum(rough_bytes(value) for _, value in writes)
    regular, special = yield from work(partial(_serialize, codec, writes, task_path), size)
    thread = table.memory.thread(at.root)
    epoch = None if thread is None else thread.epoch
    old: Item = {}
    for _ in range(MERGE_ATTEMPTS_MAX):
        draft = Draft(table, codec, at, sk, {})
        # Taken before the segments', which so live as long, however late the update comes.
        expires_at = table.expires_at(2)
        size = sum(len(write.data) for write in (*regular.values(), *special.values()))
        parts = yield from work(partial(_parts, draft, regular, special), size)
        epoch = yield from _store_segments(table, at, draft, epoch)
        found = yield from _update_writes(
            table, items.key(at.pk, sk), parts, old, epoch if draft.segments else None, expires_at
        )
        if found is None:
            if not _needs_look(at, draft):
                return
            seen = yield from look_at_thread(table, at, epoch)
            if seen == epoch:
                return
            # A deletion came between: write again what it may have removed before the update named it.
            epoch = seen
        else:
            # The task has a group of writes already: add to it what it lacks.
            old = found
            stored = yield from _stored_writes(table, codec, at, old)
            part = items.parse_part(old, items.WRITES)
            safe = part is None or not part.own
            if not safe:
                # A deletion may still be about to remove what they need, unless they are of the thread's epoch.
                epoch = yield from look_at_thread(table, at, epoch)
                safe = old.get(items.EPOCH) == {"B": epoch}
            regular = {**regular, **stored} if regular.keys() - stored.keys() or not safe else {}
            if not regular and not special:
                return
    msg = (
        f"writes of task {task_id!r} of thread {at.thread_id!r} could not be stored: other calls for the same task"
        f" interfered {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )
    raise ThreadBusyError(msg)


def _serialize(
    codec: Codec, writes: Sequence[tuple[str, Any]], task_path: str
) -> tuple[dict[int, Write], dict[int, Write]]:
    """The regular and the special writes by their index; within a call the last one to a special index wins."""
    regular, special = dict[int, Write](), dict[int, Write]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        kind, data = codec.dumps(value, f"the write to channel {channel!r}")
        (regular if index >= 0 else special)[index] = Write(index, channel, kind, data, task_path)
    return regular, special


def _parts(draft: Draft, regular: Mapping[int, Write], special: Mapping[int, Write]) -> dict[str, Part]:
    """The attributes of the writes: the regular ones as a group, each special one beside it."""
    groups = {items.SPECIAL_WRITES[index]: [write] for index, write in special.items()}
    if regular:
        groups[items.WRITES] = [regular[index] for index in sorted(regular)]
    return {name: draft.part(pack_writes(group), WRITES_BYTES_MAX) for name, group in groups.items()}


def _needs_look(at: Partition, draft: Draft) -> bool:
    """Whether the writes depend on more than their item: on segments, or on their namespace's entry."""
    return bool(draft.segments or at.namespace)


def _store_segments(table: Table, at: Partition, draft: Draft, epoch: bytes | None) -> Op[bytes | None]:
    """Write what the writes need before them; return the thread's epoch, which it has if that is anything."""
    if epoch is None and _needs_look(at, draft):
        epoch = yield from take_epoch(table, at)
    if epoch is not None:
        table.memory.remember_thread(at.root, epoch)
        # Writes may come before the first checkpoint of their namespace.
        yield from enter_namespace(table, at, epoch)
    yield from table.batch_write(puts=draft.segments.values())
    return epoch


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
