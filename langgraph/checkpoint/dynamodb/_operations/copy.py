"""`copy_thread`: store the checkpoints and writes of a thread under another thread id.

The source may be in another table, such as a restored one, whose encrypted content is bound to this table's name.

- Segments get new ids. If an id were used twice in a partition, a deletion of its first use could delete the second.
- A namespace of the copy is hidden until it is complete, unless the target had checkpoints in it before. Its newest
  head is stored first, as a hidden head: readers take it for expired until all others are stored.
- Encrypted content is bound to its place. It is opened and sealed again for the new one, which needs the key. The
  serializer is never called.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from langgraph.checkpoint.dynamodb import protocol
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.content import open_part
from langgraph.checkpoint.dynamodb._format.items import Expiry, Item, Part, Partition, expires_before
from langgraph.checkpoint.dynamodb._format.limits import (
    ATTEMPTS_MAX,
    BATCH_WRITE_ITEMS_MAX,
    PARALLEL_REQUESTS,
)
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._format.segments import derived_id, expand, is_index, reach
from langgraph.checkpoint.dynamodb._operations.arguments import checked_id
from langgraph.checkpoint.dynamodb._operations.entries import carry_entry
from langgraph.checkpoint.dynamodb._operations.item_builder import seal_segment
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._operations.reads import (
    ChangedMeanwhileError,
    LoadedSegments,
    NamespaceReader,
    StoredCheckpoint,
    find,
    find_newest,
    load,
    open_segment,
)
from langgraph.checkpoint.dynamodb._operations.threads import (
    check_pinned,
    confirm_epoch,
    ensure_epoch,
    namespaces,
    register_namespace,
)
from langgraph.checkpoint.dynamodb._runtime.cache import CachedThread
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerInputError,
    CheckpointNotFoundError,
    ThreadBusyError,
)

# How many segments are in memory at a time: as many as one round of requests writes.
_SEGMENTS_AT_ONCE = PARALLEL_REQUESTS * BATCH_WRITE_ITEMS_MAX


@dataclass(frozen=True)
class _Attempt:
    """An attempt to copy a thread."""

    # The ids of the copy's segments are derived from it.
    seed: bytes
    # The target's epoch and ttl when the attempt began.
    epoch: bytes
    ttl_seconds: int | None
    began_at: float

    @property
    def expiry(self) -> Expiry:
        """The expiries of copied items, counted from the start of the copy, so that no head outlives its segments."""
        return Expiry.after(self.ttl_seconds, self.began_at)


def copy_thread(
    storage: Storage,
    source_thread_id: str,
    target_thread_id: str,
    *,
    source_storage: Storage | None = None,
) -> Op[None]:
    """Copy every checkpoint of a thread, with its writes, to another thread. The source may be in another table.

    Args:
        storage: The storage of the target.
        source_thread_id: The thread to copy.
        target_thread_id: The thread to create.
        source_storage: The storage of the source, if it is in another table.
    """
    read = storage if source_storage is None else source_storage
    source, target = checked_places(read, storage, source_thread_id, target_thread_id)
    within = yield from namespaces(read, source)
    thread: CachedThread | None = None
    for _ in range(ATTEMPTS_MAX):
        yield from _check_source(read, within)
        if thread is None:
            thread = yield from ensure_epoch(storage, target)
        check_pinned(storage, thread.epoch)
        attempt = _Attempt(storage.rng.randbytes(16), thread.epoch, thread.ttl_seconds, storage.clock())
        is_whole = True
        try:
            # The root comes last: whoever reads its newest checkpoint must find the checkpoints of its subgraphs.
            for partition in sorted(within, key=lambda each: each.namespace, reverse=True):
                to = items.partition_of(target.thread_id, partition.namespace)
                yield from _Copy(read, storage, partition, to, attempt).run()
        except ChangedMeanwhileError:
            is_whole = False
        thread = yield from confirm_epoch(storage, target, attempt.epoch, attempt.expiry.own)
        if is_whole and thread is not None and _may_stay(attempt, thread):
            yield from carry_entry(read, storage, source, target, attempt.epoch, attempt.expiry.readable)
            return
    raise ThreadBusyError(
        f"thread {source_thread_id!r} could not be copied to {target_thread_id!r}: one of them was deleted or"
        f" pruned during each of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )


def checked_places(
    read: Storage, storage: Storage, source_thread_id: str, target_thread_id: str
) -> tuple[Partition, Partition]:
    """Return the root namespaces of the thread and of its copy.

    Raises:
        CheckpointerInputError: An id cannot be used, or the thread would be copied to itself.
    """
    source = items.partition_of(checked_id(source_thread_id, "source_thread_id"))
    target = items.partition_of(checked_id(target_thread_id, "target_thread_id"))
    if source.pk == target.pk and _may_be_one_table(read.table.name, storage.table.name):
        msg = f"source and target are both thread {source_thread_id!r}; give another id for the copy"
        if read.table.name != storage.table.name:
            msg += ", or both tables by their ARNs, if they are two"
        raise CheckpointerInputError(msg)
    return source, target


def _may_be_one_table(name: str, other: str) -> bool:
    """Tell whether two names or ARNs may be those of one table. A table's ARN ends in its name."""
    both_are_of_one_kind = name.startswith("arn:") == other.startswith("arn:")
    return name == other or (not both_are_of_one_kind and name.rpartition("/")[2] == other.rpartition("/")[2])


def _may_stay(attempt: _Attempt, thread: CachedThread) -> bool:
    """Tell whether what was copied is committed, and lives as long as what was renewed in the target meanwhile."""
    outlives = thread.kept_until is None or not expires_before(attempt.expiry.readable, thread.kept_until)
    return outlives and protocol.is_reusable(attempt.epoch, thread.epoch)


def _check_source(storage: Storage, within: Sequence[Partition]) -> Op[None]:
    """Raise if a thread has no checkpoints or the saver lacks its key, before anything is written."""
    for partition in within:
        for checkpoint in (yield from NamespaceReader(storage, partition, as_ancestors=True).page())[:1]:
            loaded = LoadedSegments(partition.pk)
            yield from loaded.read_indexes(storage, checkpoint.ids())
            for name, part in items.parts_of(checkpoint.head):
                open_part(storage.codec, checkpoint.head, name, part, loaded.contents)
            return
    yield from look_for_other_savers(storage, within[0])
    raise CheckpointNotFoundError(
        f"thread {within[0].thread_id!r} of table {storage.table.name} has no checkpoint to copy; check its id"
    )


@dataclass
class _Copy:
    """The copy of one namespace."""

    _read: Storage
    _storage: Storage
    _source: Partition
    _target: Partition
    _attempt: _Attempt
    # The namespace's newest checkpoint, while it hides the others; "" if none is hidden, None before the first one.
    _hidden: str | None = None
    _copied: set[bytes] = field(default_factory=set)
    _indexes: dict[bytes, bytes] = field(default_factory=dict)

    def run(self) -> Op[None]:
        """Copy the namespace.

        Raises:
            ChangedMeanwhileError: The namespace has changed and has to be read again.
        """
        # Register first, even if the source is empty now: an earlier attempt may have left items in the target.
        if self._target.namespace:
            yield from register_namespace(self._storage, self._target, self._attempt.expiry.shared)
        history = NamespaceReader(self._read, self._source, first_page=None, as_ancestors=True)
        while not history.done:
            page = yield from history.page()
            counted = yield from self._copy_segments_of(page)
            yield from self._store(counted, is_all=len(page) == 1 and history.done)
        if self._hidden:
            yield from self._show(self._hidden)
        if self._hidden is not None:
            yield from self._check_shown()

    def _store(self, checkpoints: Sequence[StoredCheckpoint], *, is_all: bool) -> Op[None]:
        """Store checkpoints whose segments are stored: their writes, and then their heads."""
        size = sum(each.sealed_bytes() for each in checkpoints)
        heads, writes = yield from work(partial(self._heads_and_writes, checkpoints), size)
        yield from self._storage.table.batch_write(puts=writes)
        if heads and self._hidden is None:
            # The newest head first: a copy that dies half-way must not show an older state as the latest.
            newest, *heads = heads
            yield from self._remove_stale(newest)
            is_hidden = False if is_all else (yield from self._hide(newest))
            if not is_hidden:
                yield from self._storage.table.batch_write(puts=[newest])
            self._hidden = items.checkpoint_id_of(newest) if is_hidden else ""
        yield from self._storage.table.batch_write(puts=heads)

    def _hide(self, newest: Item) -> Op[bool]:
        """Store the newest head as a hidden one, which hides the namespace; return whether it did.

        Does not if the target has readable checkpoints, which would be hidden too, or if a request of this copy that
        seemed lost has shown the head meanwhile.
        """
        if (yield from find_newest(self._storage, self._target, below=None)) is not None:
            return False
        hidden = {**newest, items.READABLE_UNTIL: items.HIDDEN}
        change = protocol.put_hidden_head(self._storage.clock())
        if (yield from self._storage.table.try_put(hidden, change)) is not None:
            return False
        # Another copy may have shown its head since the first look. It looks for hidden heads after that, so at least
        # one of the two sees the other.
        below = items.checkpoint_id_of(newest)
        return (yield from find_newest(self._storage, self._target, below=below)) is None

    def _remove_stale(self, newest: Item) -> Op[None]:
        """Delete hidden heads of earlier attempts, since one of them could become the newest head again."""
        for head in (yield from self._hidden_heads()):
            if items.sort_key(head) != items.sort_key(newest):
                yield from self._storage.table.try_delete(items.key_of(head), protocol.delete_hidden_head())

    def _hidden_heads(self) -> Op[list[Item]]:
        attributes = (PARTITION_KEY, SORT_KEY, items.READABLE_UNTIL)
        query = Query(self._target.pk, prefix=items.CHECKPOINTS, attributes=attributes)
        found = yield from self._storage.table.query_all(query)
        return [each for each in found if each.get(items.READABLE_UNTIL) == items.HIDDEN]

    def _check_shown(self) -> Op[None]:
        """Look whether the hidden head of another copy, which may have died, hides what this one has stored.

        Raises:
            ChangedMeanwhileError: It does. The next attempt deletes it.
        """
        newest = yield from find_newest(self._storage, self._target, below=None)
        if newest is None and (yield from self._hidden_heads()):
            raise ChangedMeanwhileError

    def _show(self, checkpoint_id: str) -> Op[None]:
        """Show the newest head, and with it the namespace.

        Raises:
            ChangedMeanwhileError: The source has lost the checkpoint, and perhaps others before they were copied. Or
                the target has: a deletion deleted it, or another copy that considered it stale.
        """
        if (yield from find(self._read, self._source, checkpoint_id, as_ancestor=True)) is None:
            raise ChangedMeanwhileError
        found = yield from self._storage.table.get(self._target.pk, items.checkpoint_prefix(checkpoint_id))
        if found is None:
            raise ChangedMeanwhileError
        change = protocol.show_head(self._attempt.expiry.readable)
        instead = yield from self._storage.table.try_update(items.key_of(found), change)
        # A head that is there has been shown by a request that seemed lost, or is another copy's.
        if instead is not None and not instead:
            raise ChangedMeanwhileError

    def _copy_segments_of(self, checkpoints: Sequence[StoredCheckpoint]) -> Op[list[StoredCheckpoint]]:
        """Copy the segments of checkpoints that are not copied yet; return the checkpoints as far as acknowledged."""
        missing = yield from self._copy_segments(
            {each for checkpoint in checkpoints for each in checkpoint.ids()}
        )
        counted = []
        for checkpoint in checkpoints:
            if not missing or missing.isdisjoint(reach(checkpoint.ids(), self._indexes)):
                counted.append(checkpoint)
                continue
            whole = yield from load(self._read, checkpoint, LoadedSegments(self._source.pk))
            if whole is not None:
                counted += yield from self._copy_segments_of([whole])
        return counted

    def _copy_segments(self, named: AbstractSet[bytes]) -> Op[set[bytes]]:
        """Copy segments, and those that index segments among them name; return the ids of missing ones."""
        missing: set[bytes] = set()
        while wanted := sorted(reach(named, self._indexes) - self._copied - missing):
            for start in range(0, len(wanted), _SEGMENTS_AT_ONCE):
                some = wanted[start : start + _SEGMENTS_AT_ONCE]
                keys = [items.key(self._source.pk, items.segment_sk(each)) for each in some]
                found = yield from self._read.table.batch_get(keys, consistent=True)
                copies = yield from work(partial(self._segments, found), 8192 * len(found))
                yield from self._storage.table.batch_write(puts=copies.values())
                self._copied |= copies.keys()
                missing |= set(some) - copies.keys()
        return missing

    def _segments(self, found: Sequence[Item]) -> dict[bytes, Item]:
        """Return the copies of segments, by the ids of their originals."""
        return {items.segment_id_of(item): self._segment(item) for item in found}

    def _segment(self, item: Item) -> Item:
        segment_id = items.segment_id_of(item)
        content = open_segment(self._storage.codec, item)
        if is_index(segment_id):
            self._indexes[segment_id] = content
            content = b"".join(map(self._new_id, items.unpack_ids(content)))
        data = seal_segment(self._storage.codec, self._target, self._new_id(segment_id), content)
        copy = items.segment_item(self._target, self._new_id(segment_id), data)
        return items.with_expiry(items.created(copy, self._storage.clock()), self._attempt.expiry.shared)

    def _new_id(self, segment_id: bytes) -> bytes:
        """Return the id of a segment's copy."""
        return derived_id(self._attempt.seed, segment_id)

    def _heads_and_writes(self, checkpoints: Sequence[StoredCheckpoint]) -> tuple[list[Item], list[Item]]:
        """Return the copies of checkpoints' heads, and of their writes."""
        writes = [item for each in checkpoints for item in each.writes]
        return (
            [self._head(each.head) for each in checkpoints],
            [items.with_expiry(self._item(item), self._attempt.expiry.own) for item in writes],
        )

    def _head(self, head: Item) -> Item:
        """Return a head's copy for the target. It has expired for readers if the original has."""
        copy = items.with_lifetime(self._item(head), self._attempt.ttl_seconds, self._attempt.expiry)
        if items.is_expired(head, self._storage.clock()):
            copy[items.READABLE_UNTIL] = head[items.READABLE_UNTIL]
        return copy

    def _item(self, item: Item) -> Item:
        """Return the copy of a head or a writes item for the target, without an expiry."""
        left_out = (TTL_ATTRIBUTE, items.READABLE_UNTIL, items.TTL_SECONDS)
        copy = {name: value for name, value in item.items() if name not in left_out}
        copy[PARTITION_KEY] = {"S": self._target.pk}
        for name, part in items.parts_of(item):
            copy[name] = self._part(item, copy, name, part).attribute(items.sort_key(item))
        copy |= {name: {"B": self._attempt.epoch} for name in items.EPOCHS if name in item}
        return copy

    def _part(self, source: Item, target: Item, name: str, part: Part) -> Part:
        """Return a part of an item, with new ids and sealed for the target."""
        content = open_part(self._storage.codec, source, name, part, self._indexes)
        own, refs = (tuple(map(self._new_id, ids)) for ids in (part.own, part.refs))
        named = [list(map(self._new_id, expand(ids, self._indexes))) for ids in (part.own, part.refs)]
        if own:
            sealed = self._storage.codec.seal_between(content, target, name, (named[0], named[1]))
        else:
            sealed = self._storage.codec.seal(content, target, name, (named[0], named[1]))
        return Part(own, refs, sealed)
