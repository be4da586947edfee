"""`copy_thread`: another thread with the same checkpoints and writes, under ids of its own.

The source may be in another table, such as one that was restored, whose content is bound to the same place. Segments
get new ids, since an id that was used twice in a partition could be deleted by a deletion of its first use.
What is encrypted is bound to its place, so it is opened and sealed for the new one, which needs the key. The serializer
is never called.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import open_part
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BATCH_WRITE_ITEMS_MAX,
    PARALLEL_REQUESTS,
    SEGMENT_LIFETIMES,
)
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import expand, is_index, new_id, reach
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.draft import seal_segment
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    History,
    Segments,
    load,
    open_segment,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    lasting,
    look_at_thread,
    namespaces,
    take_epoch,
    write_entry,
)
from langgraph.checkpoint.dynamodb._runtime.memory import ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError, ThreadBusyError

# How many segments are in memory at a time: as many as one round of requests writes.
_SEGMENTS_AT_ONCE = PARALLEL_REQUESTS * BATCH_WRITE_ITEMS_MAX


def copy_thread(
    table: Table,
    codec: Codec,
    source_thread_id: str,
    target_thread_id: str,
    *,
    source_table: Table | None = None,
) -> Op[None]:
    """Copy every checkpoint of a thread, with its writes, to another thread, or from another table."""
    read = table if source_table is None else source_table
    source = items.partition(checked_id(source_thread_id, "source_thread_id"))
    target = items.partition(checked_id(target_thread_id, "target_thread_id"))
    if source.pk == target.pk and read is table:
        msg = f"source and target are both thread {source_thread_id!r}; give another id for the copy"
        raise CheckpointerInputError(msg)
    within = yield from namespaces(read, source)
    yield from _check_key(read, codec, source)
    thread: ThreadEntry | None = None
    for _ in range(ATTEMPTS_MAX):
        if thread is None:
            thread = yield from take_epoch(table, target)
        begun, complete = thread, True
        # The root's last: who sees its newest checkpoint is to find what its subgraphs have stored.
        for at in reversed(within):
            to = items.partition(target.thread_id, at.namespace)
            copy = _Copy(read, lasting(table, begun), codec, at, to, begun.epoch)
            complete = (yield from copy.run()) and complete
        thread = yield from look_at_thread(table, target, begun.epoch)
        unchanged = thread is not None and thread.epoch == begun.epoch
        if complete and unchanged and lasting(table, thread) == lasting(table, begun):
            return
    msg = (
        f"thread {source_thread_id!r} could not be copied to {target_thread_id!r}: one of them was deleted or"
        f" pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
    raise ThreadBusyError(msg)


def _check_key(table: Table, codec: Codec, source: Partition) -> Op[None]:
    """Open what the newest checkpoint holds, before anything is written: the saver may not have the key."""
    for group in (yield from History(table, source, as_ancestors=True).page())[:1]:
        known = Segments()
        yield from read_segments(table, None, source.pk, group.ids(), known)
        for name, part in items.parts_of(group.head):
            open_part(codec, group.head, name, part, known.contents)


class _Copy:
    """The copy of one namespace, under one epoch of the target."""

    def __init__(
        self, read: Table, table: Table, codec: Codec, source: Partition, target: Partition, epoch: bytes
    ) -> None:
        self._read = read
        self._table = table
        self._codec = codec
        self._source = source
        self._target = target
        self._epoch = epoch
        # Counted from the start, however long it takes, so that no head outlives its segments.
        self._expires_at = table.expires_at()
        self._kept_until = table.expires_at(2)
        self._segments_kept_until = table.expires_at(SEGMENT_LIFETIMES)
        self._new_ids: dict[bytes, bytes] = {}
        self._copied: set[bytes] = set()
        self._indexes: dict[bytes, bytes] = {}

    def run(self) -> Op[bool]:
        """Copy the namespace; False where it changed so that it has to be read again."""
        # Entered first, and though it may be empty now: a former attempt may have left something in it.
        if self._target.namespace:
            yield from write_entry(self._table, self._target, self._kept_until)
        groups: list[Group] = []
        history = History(self._read, self._source, first_page=None, as_ancestors=True)
        try:
            while not history.done:
                groups += yield from self._copy_segments_of((yield from history.page()))
        except ChangedMeanwhileError:
            return False
        if not groups and not self._source.namespace:
            yield from look_for_other_savers(self._read, self._source)
        size = sum(each.sealed_bytes() for each in groups)
        heads, writes = yield from work(partial(self._heads_and_writes, groups), size)
        yield from self._table.batch_write(puts=writes)
        # The newest head first: a copy that dies half-way must not show an older state as the latest.
        yield from self._table.batch_write(puts=heads[:1])
        yield from self._table.batch_write(puts=heads[1:])
        return True

    def _copy_segments_of(self, groups: Sequence[Group]) -> Op[list[Group]]:
        """Copy the segments that checkpoints name and that were not copied yet; return what of them counts."""
        missing = yield from self._copy_segments({each for group in groups for each in group.ids()})
        counted = []
        for group in groups:
            if not missing or missing.isdisjoint(reach(group.ids(), self._indexes)):
                counted.append(group)
                continue
            whole = yield from load(self._read, self._codec, group, Segments())
            if whole is not None:
                counted += yield from self._copy_segments_of([whole])
        return counted

    def _copy_segments(self, named: AbstractSet[bytes]) -> Op[set[bytes]]:
        """Copy segments, and what index segments among them lead to; return what is missing."""
        missing: set[bytes] = set()
        while wanted := sorted(reach(named, self._indexes) - self._copied - missing):
            for start in range(0, len(wanted), _SEGMENTS_AT_ONCE):
                some = wanted[start : start + _SEGMENTS_AT_ONCE]
                keys = [items.key(self._source.pk, items.segment_sk(each)) for each in some]
                found = yield from self._read.batch_get(keys, consistent=True)
                copies = yield from work(partial(self._segments, found), 8192 * len(found))
                yield from self._table.batch_write(puts=copies.values())
                self._copied |= copies.keys()
                missing |= set(some) - copies.keys()
        return missing

    def _segments(self, found: Sequence[Item]) -> dict[bytes, Item]:
        """The copies of segments, by the ids of what they are copies of."""
        return {items.segment_id_of(item): self._segment(item) for item in found}

    def _segment(self, item: Item) -> Item:
        segment_id = items.segment_id_of(item)
        content = open_segment(self._codec, item)
        if is_index(segment_id):
            self._indexes[segment_id] = content
            content = b"".join(map(self._new_id, items.unpack_ids(content)))
        data = seal_segment(self._codec, self._target, self._new_id(segment_id), content)
        copy = items.segment_item(self._target, self._new_id(segment_id), data, self._table.clock())
        return items.with_expiry(copy, self._segments_kept_until)

    def _new_id(self, segment_id: bytes) -> bytes:
        """The id in the copy of a segment."""
        if segment_id not in self._new_ids:
            self._new_ids[segment_id] = new_id(self._table.rng, index=is_index(segment_id))
        return self._new_ids[segment_id]

    def _heads_and_writes(self, groups: Sequence[Group]) -> tuple[list[Item], list[Item]]:
        """The copies of checkpoints' heads, and of their writes."""
        writes = [item for each in groups for item in each.writes]
        return (
            [self._head(each.head) for each in groups],
            [items.with_expiry(self._item(item), self._kept_until) for item in writes],
        )

    def _head(self, head: Item) -> Item:
        """A head for the target; it counts as gone there if it does in the source."""
        copy = items.with_expiry(self._item(head), self._expires_at)
        if items.READABLE_UNTIL in head:
            copy = items.kept_for_descendants(copy, self._kept_until)
            if items.is_expired(head, self._table.clock()):
                copy[items.READABLE_UNTIL] = head[items.READABLE_UNTIL]
        return copy

    def _item(self, item: Item) -> Item:
        """A head or writes item for the target, still without its expiry."""
        left_out = (TTL_ATTRIBUTE, items.READABLE_UNTIL)
        copy = {name: value for name, value in item.items() if name not in left_out}
        copy[PARTITION_KEY] = {"S": self._target.pk}
        for name, part in items.parts_of(item):
            copy[name] = self._part(item, copy, name, part).attribute(items.sort_key(item))
        copy |= {name: {"B": self._epoch} for name in items.EPOCHS if name in item}
        return copy

    def _part(self, source: Item, target: Item, name: str, part: Part) -> Part:
        """A part of an item as it is for the target."""
        content = open_part(self._codec, source, name, part, self._indexes)
        own, refs = (tuple(map(self._new_id, ids)) for ids in (part.own, part.refs))
        named = [list(map(self._new_id, expand(ids, self._indexes))) for ids in (part.own, part.refs)]
        if own:
            return Part(own, refs, self._codec.vouch(target, name, (named[0], named[1])))
        return Part(own, refs, self._codec.seal(content, target, name, (named[0], named[1])))
