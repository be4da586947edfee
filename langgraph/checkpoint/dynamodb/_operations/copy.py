"""`copy_thread`: another thread with the same checkpoints and writes, under ids of its own.

The source may be in another table, such as one that was restored, whose content is bound to the same place. Segments
get new ids, since an id that was used twice in a partition could be deleted by a deletion of its first use.
A namespace shows nothing until it is whole, unless the target had something in it before: its newest head is stored
first, and as long as others come it counts as expired.
What is encrypted is bound to its place, so it is opened and sealed for the new one, which needs the key. The serializer
is never called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.content import open_part
from langgraph.checkpoint.dynamodb._format.expiry import Expiry
from langgraph.checkpoint.dynamodb._format.items import Item, Part, Partition
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BATCH_WRITE_ITEMS_MAX,
    INDEX_GROUP,
    PARALLEL_REQUESTS,
)
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import derived_id, expand, is_index, reach
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.draft import seal_segment
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    Group,
    History,
    Segments,
    find,
    find_newest,
    load,
    open_segment,
    read_segments,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    confirm_epoch,
    ensure_epoch,
    namespaces,
    register_namespace,
)
from langgraph.checkpoint.dynamodb._runtime.memory import ThreadEntry
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerInputError,
    CheckpointNotFoundError,
    ThreadBusyError,
)

# How many segments are in memory at a time: as many as one round of requests writes.
_SEGMENTS_AT_ONCE = PARALLEL_REQUESTS * BATCH_WRITE_ITEMS_MAX
# A copy can stop between checkpoints that name about so many together, though a page may have far more: 100 MB.
_SEGMENTS_OF_SLICE = 4 * _SEGMENTS_AT_ONCE


@dataclass(frozen=True)
class Progress:
    """How far a copy is, so that another call can go on where one stopped."""

    # The ids of the copy's segments follow from it, so every call of one attempt gives a segment the same id.
    seed: bytes
    # Of the target when the attempt began.
    epoch: bytes
    ttl_seconds: int | None
    began_at: float
    attempts: int = 1
    # What is being copied: a namespace, and below which of its checkpoints to go on.
    namespace: str | None = None
    below: str | None = None
    # The namespace's newest checkpoint, while it hides the others; "" where nothing is hidden, None before the first.
    hidden: str | None = None

    @property
    def expiry(self) -> Expiry:
        """The expiries of all that is copied: counted from the start, so that no head outlives its segments."""
        return Expiry.after(self.ttl_seconds, self.began_at)


def copy_thread(
    table: Table,
    codec: Codec,
    source_thread_id: str,
    target_thread_id: str,
    *,
    source_table: Table | None = None,
) -> Op[None]:
    """Copy every checkpoint of a thread, with its writes, to another thread, or from another table."""
    yield from copy_part(table, codec, source_thread_id, target_thread_id, source_table=source_table)


def copy_part(
    table: Table,
    codec: Codec,
    source_thread_id: str,
    target_thread_id: str,
    progress: Progress | None = None,
    *,
    until: float = math.inf,
    source_table: Table | None = None,
) -> Op[Progress | None]:
    """Copy a thread, or go on with that, until some time; return how far it is, None at the end.

    However late it is, some checkpoints are copied, so calling it again comes to an end.
    """
    read = table if source_table is None else source_table
    source = items.partition(checked_id(source_thread_id, "source_thread_id"))
    target = items.partition(checked_id(target_thread_id, "target_thread_id"))
    if source.pk == target.pk and read is table:
        msg = f"source and target are both thread {source_thread_id!r}; give another id for the copy"
        raise CheckpointerInputError(msg)
    within = yield from namespaces(read, source)
    if progress is None:
        yield from _check_source(read, codec, within)
        progress = _begin(table, (yield from ensure_epoch(table, target)), 1)
    while progress.attempts <= ATTEMPTS_MAX:
        is_whole, stopped = True, None
        try:
            stopped = yield from _copy_namespaces(read, table, codec, within, target, progress, until)
        except ChangedMeanwhileError:
            is_whole = False
        thread = yield from confirm_epoch(table, target, progress.epoch, progress.expiry.head)
        if is_whole and thread is not None and protocol.is_reusable(progress.epoch, thread.epoch):
            return stopped
        yield from _check_source(read, codec, within)
        if thread is None:
            thread = yield from ensure_epoch(table, target)
        progress = _begin(table, thread, progress.attempts + 1)
    msg = (
        f"thread {source_thread_id!r} could not be copied to {target_thread_id!r}: one of them was deleted or"
        f" pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
    raise ThreadBusyError(msg)


def _begin(table: Table, thread: ThreadEntry, attempts: int) -> Progress:
    return Progress(table.rng.randbytes(16), thread.epoch, thread.ttl_seconds, table.clock(), attempts)


def _copy_namespaces(
    read: Table,
    table: Table,
    codec: Codec,
    within: Sequence[Partition],
    target: Partition,
    progress: Progress,
    until: float,
) -> Op[Progress | None]:
    """Copy the namespaces that are left; return how far it is where time is up, None at the end."""
    # The root's last: who sees its newest checkpoint is to find what its subgraphs have stored.
    for at in sorted(within, key=lambda each: each.namespace, reverse=True):
        if progress.namespace is not None and at.namespace > progress.namespace:
            continue
        if at.namespace != progress.namespace:
            progress = replace(progress, namespace=at.namespace, below=None, hidden=None)
        copy = _Copy(read, table, codec, at, items.partition(target.thread_id, at.namespace), progress)
        stopped = yield from copy.run(until)
        if stopped is not None:
            return stopped
    return None


def _check_source(table: Table, codec: Codec, within: Sequence[Partition]) -> Op[None]:
    """Refuse a thread without checkpoints, or one that the saver has no key for, before anything is written."""
    for at in within:
        for group in (yield from History(table, at, as_ancestors=True).page())[:1]:
            known = Segments()
            yield from read_segments(table, None, at.pk, group.ids(), known)
            for name, part in items.parts_of(group.head):
                open_part(codec, group.head, name, part, known.contents)
            return
    yield from look_for_other_savers(table, within[0])
    msg = f"thread {within[0].thread_id!r} of table {table.name} has no checkpoint to copy; check its id"
    raise CheckpointNotFoundError(msg)


class _Copy:
    """The copy of one namespace, from where its progress says on."""

    def __init__(
        self,
        read: Table,
        table: Table,
        codec: Codec,
        source: Partition,
        target: Partition,
        progress: Progress,
    ) -> None:
        self._read = read
        self._table = table
        self._codec = codec
        self._source = source
        self._target = target
        self._progress = progress
        self._expiry = progress.expiry
        self._copied: set[bytes] = set()
        self._indexes: dict[bytes, bytes] = {}

    def run(self, until: float) -> Op[Progress | None]:
        """Copy the namespace; return how far it is where time is up, None at the end.

        Raises:
            ChangedMeanwhileError: It changed so that it has to be read again.
        """
        # Registered first, and though it may be empty now: a former attempt may have left something in it.
        if self._target.namespace and self._progress.below is None:
            yield from register_namespace(self._table, self._target, self._expiry.item)
        history = History(
            self._read, self._source, below=self._progress.below, first_page=None, as_ancestors=True
        )
        while not history.done:
            page = yield from history.page()
            for groups in _slices(page):
                counted = yield from self._copy_segments_of(groups)
                yield from self._store(counted, is_all=len(page) == 1 and history.done)
                self._progress = replace(self._progress, below=groups[-1].checkpoint_id)
                if self._table.clock() >= until:
                    return self._progress
        if self._progress.hidden:
            yield from self._show(self._progress.hidden)
        return None

    def _store(self, groups: Sequence[Group], *, is_all: bool) -> Op[None]:
        """Store checkpoints whose segments are there: their writes, and then their heads."""
        size = sum(each.sealed_bytes() for each in groups)
        heads, writes = yield from work(partial(self._heads_and_writes, groups), size)
        yield from self._table.batch_write(puts=writes)
        if heads and self._progress.hidden is None:
            # The newest head first: a copy that dies half-way must not show an older state as the latest.
            newest, *heads = heads
            yield from self._remove_stale(newest)
            is_hidden = False if is_all else (yield from self._hide(newest))
            if not is_hidden:
                yield from self._table.batch_write(puts=[newest])
            hidden = items.checkpoint_id_of(newest) if is_hidden else ""
            self._progress = replace(self._progress, hidden=hidden)
        yield from self._table.batch_write(puts=heads)

    def _hide(self, newest: Item) -> Op[bool]:
        """Store the newest head as one that has expired: readers take a namespace for empty whose newest one has.

        Not where the target has something to show, which would be hidden too; nor where a request of this copy that
        was thought lost has shown the head meanwhile.
        """
        if (yield from find_newest(self._table, self._target, below=None, consistent=True)) is not None:
            return False
        hidden = {**newest, items.READABLE_UNTIL: items.HIDDEN}
        change = protocol.put_hidden_head(self._table.clock())
        return (yield from self._table.try_put(hidden, change)) is None

    def _remove_stale(self, newest: Item) -> Op[None]:
        """Delete heads that earlier attempts have hidden and not shown: one of them may become the newest again."""
        attributes = (PARTITION_KEY, SORT_KEY, items.READABLE_UNTIL)
        query = Query(self._target.pk, prefix=items.CHECKPOINTS, attributes=attributes)
        for item in (yield from self._table.query_all(query)):
            is_own = items.sort_key(item) == items.sort_key(newest)
            if item.get(items.READABLE_UNTIL) == items.HIDDEN and not is_own:
                yield from self._table.try_delete(items.key_of(item), protocol.delete_hidden_head())

    def _show(self, checkpoint_id: str) -> Op[None]:
        """Show the newest head, and so the namespace.

        Raises:
            ChangedMeanwhileError: The source has lost it, and perhaps others before they were copied. Or the target
                has: a deletion took it, or another copy that took it for stale.
        """
        if (yield from find(self._read, self._source, checkpoint_id, as_ancestor=True)) is None:
            raise ChangedMeanwhileError
        found = yield from self._table.get(self._target.pk, items.checkpoint_prefix(checkpoint_id))
        if found is None:
            raise ChangedMeanwhileError
        # One that is kept for its descendants has a later expiry, and says until when it is readable.
        is_kept = items.expires_at(found) != self._expiry.head
        change = protocol.show_head(self._expiry.head if is_kept else None)
        yield from self._table.try_update(items.key_of(found), change)

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
        copy = items.segment_item(self._target, self._new_id(segment_id), data)
        return items.with_expiry(items.created(copy, self._table.clock()), self._expiry.segment)

    def _new_id(self, segment_id: bytes) -> bytes:
        """The id in the copy of a segment."""
        return derived_id(self._progress.seed, segment_id)

    def _heads_and_writes(self, groups: Sequence[Group]) -> tuple[list[Item], list[Item]]:
        """The copies of checkpoints' heads, and of their writes."""
        writes = [item for each in groups for item in each.writes]
        return (
            [self._head(each.head) for each in groups],
            [items.with_expiry(self._item(item), self._expiry.item) for item in writes],
        )

    def _head(self, head: Item) -> Item:
        """A head for the target; it counts as gone there if it does in the source."""
        copy = items.with_ttl(self._item(head), self._progress.ttl_seconds)
        copy = items.with_expiry(copy, self._expiry.head)
        if items.READABLE_UNTIL in head:
            copy = items.kept_for_descendants(copy, self._expiry.item)
            if items.is_expired(head, self._table.clock()):
                copy[items.READABLE_UNTIL] = head[items.READABLE_UNTIL]
        return copy

    def _item(self, item: Item) -> Item:
        """A head or writes item for the target, still without its expiry."""
        left_out = (TTL_ATTRIBUTE, items.READABLE_UNTIL, items.TTL_SECONDS)
        copy = {name: value for name, value in item.items() if name not in left_out}
        copy[PARTITION_KEY] = {"S": self._target.pk}
        for name, part in items.parts_of(item):
            copy[name] = self._part(item, copy, name, part).attribute(items.sort_key(item))
        copy |= {name: {"B": self._progress.epoch} for name in items.EPOCHS if name in item}
        return copy

    def _part(self, source: Item, target: Item, name: str, part: Part) -> Part:
        """A part of an item as it is for the target."""
        content = open_part(self._codec, source, name, part, self._indexes)
        own, refs = (tuple(map(self._new_id, ids)) for ids in (part.own, part.refs))
        named = [list(map(self._new_id, expand(ids, self._indexes))) for ids in (part.own, part.refs)]
        if own:
            return Part(own, refs, self._codec.vouch(target, name, (named[0], named[1])))
        return Part(own, refs, self._codec.seal(content, target, name, (named[0], named[1])))


def _slices(groups: Sequence[Group]) -> Iterator[Sequence[Group]]:
    """Divide checkpoints so that not too many segments are copied before the next ones' turn comes."""
    start, ids = 0, set[bytes]()
    for position, group in enumerate(groups):
        ids |= group.ids()
        if (
            position > start
            and sum(INDEX_GROUP if is_index(each) else 1 for each in ids) > _SEGMENTS_OF_SLICE
        ):
            yield groups[start:position]
            start, ids = position, group.ids()
    if start < len(groups):
        yield groups[start:]
