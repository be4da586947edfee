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
from langgraph.checkpoint.dynamodb._codec import Codec
from langgraph.checkpoint.dynamodb._content import Write, pack_writes, read_writes
from langgraph.checkpoint.dynamodb._draft import Draft
from langgraph.checkpoint.dynamodb._items import Part, Partition
from langgraph.checkpoint.dynamodb._limits import MERGE_ATTEMPTS_MAX, WRITES_BYTES_MAX
from langgraph.checkpoint.dynamodb._reads import Segments, checkpoint_id_in, read_segments, target
from langgraph.checkpoint.dynamodb._requests import CONDITION_FAILED, Table, error_code
from langgraph.checkpoint.dynamodb._schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._steps import Item, Op, work
from langgraph.checkpoint.dynamodb._threads import enter_namespace
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
    regular, special = yield from work(lambda: _serialize(codec, writes, task_path))
    condition, old = "attribute_not_exists(#writes)", None
    for _ in range(MERGE_ATTEMPTS_MAX):
        if not regular and not special:
            return
        draft = Draft(table, codec, at, sk, {})
        groups = {items.SPECIAL_WRITES[index]: [write] for index, write in special.items()}
        if regular:
            groups[items.WRITES] = [regular[index] for index in sorted(regular)]
        parts = yield from work(partial(_parts, draft, groups))
        yield from enter_namespace(table, at)
        yield from table.batch_write(puts=draft.segments.values())
        try:
            yield from _update_writes(table, items.key(at.pk, sk), parts, condition if regular else None, old)
        except Exception as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            # The task has a group of writes already: add to it what it lacks.
            old = _old_item(error)
        else:
            return
        stored = yield from _stored_writes(table, codec, at, old)
        missing = regular.keys() - stored.keys()
        regular = {**regular, **stored} if missing else {}
        condition = "#writes = :old" if stored else "attribute_not_exists(#writes)"
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


def _parts(draft: Draft, groups: Mapping[str, Sequence[Write]]) -> dict[str, Part]:
    return {name: draft.part(pack_writes(group), WRITES_BYTES_MAX) for name, group in groups.items()}


def _update_writes(
    table: Table, key: Item, parts: Mapping[str, Part], condition: str | None, old: Item | None
) -> Op[None]:
    sets = ["#created = :created"]
    names = {"#created": items.CREATED_AT}
    values: Item = {":created": {"N": str(int(table.clock()))}}
    for position, (name, part) in enumerate(parts.items()):
        sets.append(f"#p{position} = :p{position}")
        names[f"#p{position}"] = name
        values[f":p{position}"] = part.attribute()
    expires_at = table.expires_at(2)
    if expires_at is not None:
        # The first call's expiry stays: its segments live no longer.
        sets.append("#expiry = if_not_exists(#expiry, :expiry)")
        names["#expiry"] = TTL_ATTRIBUTE
        values[":expiry"] = {"N": str(expires_at)}
    if condition is not None:
        names["#writes"] = items.WRITES
    if condition is not None and old is not None and items.WRITES in old:
        values[":old"] = old[items.WRITES]
    yield from table.update(
        key,
        "SET " + ", ".join(sets),
        condition=condition,
        names=names,
        values=values,
        **({} if condition is None else {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
    )


def _old_item(error: Any) -> Item:
    """The item that a failed condition was checked against; empty where there was none."""
    item: Item = error.response.get("Item", {})
    return item


def _stored_writes(table: Table, codec: Codec, at: Partition, old: Item) -> Op[dict[int, Write]]:
    """The regular writes that a task has already."""
    part = items.parse_part(old, items.WRITES)
    if part is None:
        return {}
    known = Segments()
    missing = yield from read_segments(table, codec, at.pk, part.own, known)
    if missing:
        raise items.damaged(old, "segments of its writes are missing")
    return {each.index: each for each in read_writes(codec, old, items.WRITES, known.contents)}
