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
from langgraph.checkpoint.dynamodb._operations.access import Access, DirectAccess
from langgraph.checkpoint.dynamodb._operations.arguments import checked_text, checkpoint_id_in, target
from langgraph.checkpoint.dynamodb._operations.commit_writes import Found, TaskWrites
from langgraph.checkpoint.dynamodb._operations.draft import Draft
from langgraph.checkpoint.dynamodb._runtime.memory import Entry, ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError
from langgraph.checkpoint.dynamodb.protocol import is_reusable

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
    taken = yield from take(codec, config, writes, task_id, task_path)
    if taken is not None:
        yield from store(DirectAccess(table, codec), *taken)


def take(
    codec: Codec, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> Op[tuple[Partition, str, str, Serialized] | None]:
    """What a call of `put_writes` was given, serialized; None where that is nothing."""
    at, checkpoint_id = target(config), checkpoint_id_in(config)
    if checkpoint_id is None:
        msg = 'config["configurable"]["checkpoint_id"] is missing; give the checkpoint that the writes belong to'
        raise CheckpointerInputError(msg)
    items.writes_sk(checkpoint_id, checked_text(task_id, "task_id"))
    checked_text(task_path, "task_path")
    if not writes:
        return None
    size = sum(rough_bytes(value) for _, value in writes)
    serialized = yield from work(partial(serialize, codec, tuple(writes), task_path), size)
    return at, checkpoint_id, task_id, serialized


def store(
    access: Access,
    at: Partition,
    checkpoint_id: str,
    task_id: str,
    serialized: Serialized,
    old: Item | None = None,
) -> Op[None]:
    """Store a task's writes once they are serialized; in the place of an old item, or beside what there is."""
    table, codec = access.table, access.codec
    sk = items.writes_sk(checkpoint_id, task_id)
    call = _Call(serialized, int(table.clock() * 1000), old or {})
    head, thread = table.memory.checkpoint(at.pk, checkpoint_id), table.memory.thread(at.root)
    if thread is None and head is not None:
        thread = ThreadEntry(head.epoch, head.ttl_seconds)
    if thread is None:
        yield from access.look_for_other_savers(at)
    for _ in range(MERGE_ATTEMPTS_MAX):
        # What may take the place of acknowledged writes must not need what a deletion may be removing.
        reuses = not call.special and not call.old and call.size_bytes > INLINE_STATE_BYTES_MAX
        base = _safe(head, thread) if reuses else None
        draft = Draft(table, codec, at, sk, base)
        parts = yield from work(partial(_parts, draft, call, base), call.size_bytes)
        order = call.order if call.special else None
        writes = TaskWrites(at, sk, parts, draft, order, call.old, call.replaces)
        outcome = yield from access.commit_writes(writes, thread)
        if outcome.stored:
            return
        thread = outcome.thread
        if outcome.found is None:
            # Written again: a deletion may have removed what they name.
            call.begin({})
        elif outcome.found.is_gone:
            call.begin(outcome.found.item)
        else:
            # The task has writes already: add to them what they lack.
            _merge(codec, call, parts, outcome.found)
    msg = (
        f"writes of task {task_id!r} of thread {at.thread_id!r} could not be stored: other calls for the same task"
        f" interfered {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )
    raise ThreadBusyError(msg)


class _Call:
    """What is still to be stored, by index, and what the task had when it was last read."""

    def __init__(self, given: Serialized, order: int, old: Item) -> None:
        """Take what was given, its order, and what it takes the place of.

        Of two calls with special writes the later one has the higher; a request of the earlier one may arrive last.
        """
        self._given = given
        self.order = order
        self.begin(old)

    def begin(self, old: Item) -> None:
        """Begin anew, where the task has nothing, or an item that is not to be changed but replaced."""
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


def _safe(head: Entry | None, thread: ThreadEntry | None) -> Entry | None:
    """Return the checkpoint that the writes belong to, if its segments are safe under the thread's epoch.

    Tasks often write again most of what they were given, and may name it then: it stays as long as the checkpoint.
    """
    if head is None or thread is None or not is_reusable(head.epoch, thread.epoch):
        return None
    return head


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


def _merge(codec: Codec, call: _Call, parts: Mapping[str, Part], found: Found) -> None:
    """Leave in the call what the task lacks, with the regular writes that it has."""
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
            # This very request was carried out, and its answer lost.
            call.special = {}
        else:
            call.order = order + 1
