"""`copy_thread`: store the checkpoints and writes of a thread under another thread id.

The source may be in another table, such as a restored one, whose encrypted content is bound to this table's name.

- The target's thread item comes first, with the owner, and says that the thread is a copy that is not complete. What is
  copied says "ask the thread item". So one update shows all of it, in every namespace, when it is complete. A target
  that has checkpoints already stays visible, and gets those of the copy beside its own.
- A target without checkpoints is hidden only as it was read, and an empty one gets a pending epoch before it is looked
  at: what is acknowledged in it meanwhile keeps the copy from hiding it.
- A copy has nothing that its source got after one moment (`_Moment`), so no namespace is ahead of another.
- Writes that the target has stored itself stay: another copy may have ended, and its thread be in use.
- Both threads are confirmed at the end: a copy is of one life of its source, and in one life of its target.
- Segments get new ids, which follow from a random seed. A copy that goes on in another call keeps the seed, if both
  threads still have their epochs, and the moment and the target's expiry are the same. So it stores each segment under
  the same id. Any other one uses ids of its own: what it stores late must not replace a segment that has been renewed
  since, and no deletion of one takes the other.
- Encrypted content is bound to its place. It is opened and sealed again for the new one, which needs the key. The
  serializer is never called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b

from .. import errors, protocol
from .._format import items, limits, pricing, schema
from .._format.content import open_part
from .._format.items import Item, Life, Part, Partition
from .._format.segments import derived_id, expand, is_index, reach
from .._runtime.requests import Query
from .._runtime.steps import Op, gather, work
from .._runtime.storage import CachedThread, Storage
from ..protocol import Thread, is_reusable
from . import arguments, entries, needs, other_savers, put, reads, renew, thread_item
from .compose import part_bytes, seal_segment, unit_data_bytes
from .reads import LoadedSegments, StoredCheckpoint

# How many checkpoints are stored before a copy may stop.
_CHECKPOINTS_AT_ONCE = 25
_SEED_BYTES = 8
_OF_LEFTOVERS = (schema.PARTITION_KEY, schema.SORT_KEY, items.CREATED_AT, *items.EPOCHS)
# How many segments are in memory at a time: as many as one round of requests writes.
_SEGMENTS_AT_ONCE = limits.PARALLEL_REQUESTS * limits.BATCH_WRITE_ITEMS_MAX


@dataclass(frozen=True)
class CopyPosition:
    """The last checkpoint that a part of a copy has stored. The next part goes on behind it."""

    seed: bytes
    checkpoint_ns: str
    checkpoint_id: str


@dataclass(frozen=True)
class _Moment:
    """The ends of a thread's namespaces at one moment.

    A checkpoint needs those of the subgraphs below its namespace, and its writes tell which subgraphs have ended. So
    the namespaces, and what those with subgraphs end with, are read before and after what the others end with, until
    they are the same. Then the others lack nothing, and have nothing of a later step.
    """

    started_from: Mapping[Partition, str | None]
    """All namespaces, and the root checkpoint from which the call of each started, if it is a call's."""
    last_ids: Mapping[Partition, str]
    """The id of the newest checkpoint in each namespace that has one."""
    last_checkpoints: Mapping[Partition, StoredCheckpoint]
    """The newest checkpoint in each namespace with subgraphs, as it was then."""

    def digest(self) -> bytes:
        """Return a digest of what the namespaces with subgraphs end with."""
        ends = [item for each in self.last_checkpoints.values() for item in each.members]
        known = sorted(repr(sorted(each.items())) for each in ends)
        return blake2b("".join(known).encode(), digest_size=_SEED_BYTES).digest()


@dataclass(frozen=True)
class _CopyAttempt:
    """An attempt to copy a thread."""

    # The target as it was when the attempt began. What is copied carries its epoch, and is kept as long.
    thread: CachedThread
    is_hidden: bool
    """Whether the target is not seen before the copy is complete."""
    has_leftovers: bool = False
    """Whether the target may have checkpoints and writes that the source lacks: of another copy, or a former life."""

    @property
    def life(self) -> Life:
        """The life that copied heads tell: until the copy is complete, only the thread item knows whether it lives."""
        return replace(self.thread.life, alive_until=0)


def copy_thread(
    storage: Storage,
    source_thread_id: str,
    target_thread_id: str,
    *,
    source_storage: Storage | None = None,
) -> Op[None]:
    """Copy every checkpoint of a thread, with its writes, to another thread. The source may be in another table."""
    yield from copy_part(storage, source_thread_id, target_thread_id, source_storage=source_storage)


def copy_part(
    storage: Storage,
    source_thread_id: str,
    target_thread_id: str,
    *,
    source_storage: Storage | None = None,
    source_epoch: bytes | None = None,
    after: CopyPosition | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Op[CopyPosition | None]:
    """Copy a thread, or a part of it.

    Args:
        storage: The storage of the target.
        source_thread_id: The thread to copy.
        target_thread_id: The thread to create.
        source_storage: The storage of the source, if it is in another table.
        source_epoch: The epoch of the source that the caller may read, if it may not read what comes after it.
        after: Where an earlier part stopped. The copy begins again if one of the threads was deleted or pruned since,
            or the source was used.
        is_over: Tells whether to stop.

    Returns:
        Where it has stopped; `None` if the copy is complete.

    Raises:
        PinnedEpochError: The epoch of the source, or that of the target to which the storage is pinned, has ended.
        ThreadBusyError: One of the threads changes all the time.
    """
    read = storage if source_storage is None else source_storage
    source, target = checked_places(read, storage, source_thread_id, target_thread_id)
    pinned = None if storage.pinned is None else storage.pinned.epoch
    for _ in range(limits.ATTEMPTS_MAX):
        life = yield from _check_source(read, source)
        if source_epoch is not None and not is_reusable(source_epoch, life.epoch):
            raise thread_item.PinnedEpochError
        attempt = yield from _begin(read, storage, source, target, pinned)
        if attempt is None:
            continue
        if pinned is not None:
            pinned = attempt.thread.epoch
        copying = _CopyOfThread(read, storage, source, target, life, attempt)
        try:
            stopped_at = yield from copying.run(after, is_over)
        except reads.ChangedMeanwhileError:
            continue
        if stopped_at is not None:
            return stopped_at
        again = yield from thread_item.read_thread(read, source)
        if again is None or not is_reusable(again.epoch, life.epoch):
            continue
        if (yield from _end(storage, target, attempt)):
            return None
    raise errors.ThreadBusyError(
        f"thread {source_thread_id!r} could not be copied to {target_thread_id!r}: one of them was deleted, pruned or"
        f" used during each of {limits.ATTEMPTS_MAX} attempts; try again when that has ended"
    )


def _begin(
    read: Storage, storage: Storage, source: Partition, target: Partition, pinned: bytes | None
) -> Op[_CopyAttempt | None]:
    """Begin the target, with its owner, or use it if it has checkpoints; `None` if it has changed meanwhile."""
    yield from other_savers.look_for_other_savers(storage, target)
    now = storage.clock()
    found = yield from storage.table.get(target.pk, items.THREAD)
    known = None if found is None else Thread.parse(found)
    if pinned is not None and (known is None or not is_reusable(pinned, known.epoch)):
        raise thread_item.PinnedEpochError
    if found is not None and known is not None and known.is_alive(now):
        if (yield from _has_checkpoints(storage, target)):
            seen = None if known.is_pending else CachedThread(known.epoch, known.life)
            thread = yield from renew.use_thread(storage, renew.Use(target, None, None), seen, None)
            return None if thread is None else _CopyAttempt(thread, is_hidden=False)
        if not known.is_pending:
            found = yield from storage.table.changed(items.thread_key(target), protocol.suspend_epoch(found))
            if found is None or (yield from _has_checkpoints(storage, target)):
                return None
            known = Thread.parse(found)
    is_begun = known is not None and known.is_being_copied and not known.is_pending
    if known is not None and is_begun and protocol.may_be_used(known.life, now):
        # It has the ttl of who began it. Both store under one epoch, so whatever is stored last is as good.
        return _CopyAttempt(CachedThread(known.epoch, known.life), is_hidden=True, has_leftovers=True)
    return (yield from _begin_hidden(read, storage, source, target, found))


def _begin_hidden(
    read: Storage, storage: Storage, source: Partition, target: Partition, found: Item | None
) -> Op[_CopyAttempt | None]:
    """Begin a target without checkpoints, given its thread item; `None` if it has changed since it was read."""
    now = storage.clock()
    known = None if found is None else Thread.parse(found)
    has_life = known is not None and known.is_alive(now)
    # What a life that has ended has left must never be seen: the epoch is a new one.
    epoch = known.epoch if known is not None and has_life else thread_item.new_epoch(storage)
    life = protocol.new_life(storage.ttl_seconds, now)
    if life.kept_until is not None and known is not None:
        # What is left of the life before expires earlier.
        life = replace(life, kept_until=max(life.kept_until, (known.life.kept_until or 0) + 1))
    listed = None
    if known is None or known.last_active is None:
        original = yield from read.table.get(source.pk, items.THREAD)
        if original is None:
            # It was deleted meanwhile. Nobody would know whose the target is.
            return None
        listed = yield from entries.carried_entry(read, storage, source, target, original)
    change = protocol.begin_copy(found, epoch, life, listed)
    other = yield from storage.table.try_update(items.thread_key(target), change)
    if other is not None:
        # The request may have taken effect, and its response may have been lost.
        seen = Thread.parse(other) if other else None
        if seen is None or not seen.is_being_copied or not is_reusable(seen.epoch, epoch):
            return None
    has_leftovers = known is not None and not has_life
    return _CopyAttempt(CachedThread(epoch, life), is_hidden=True, has_leftovers=has_leftovers)


def _has_checkpoints(storage: Storage, target: Partition) -> Op[bool]:
    """Tell whether readers see checkpoints of a thread."""
    for each in (yield from thread_item.namespaces(storage, target)):
        if (yield from reads.NamespaceReader(storage, each).page()):
            return True
    return False


def _end(storage: Storage, target: Partition, attempt: _CopyAttempt) -> Op[bool]:
    """Show the copy, if nothing has ended its epoch; return whether it is complete and committed."""
    if not attempt.is_hidden:
        seen = yield from thread_item.confirm_epoch(storage, target, attempt.thread.epoch)
        return thread_item.is_confirmed(storage, attempt.thread, seen)
    begun, now = attempt.thread.life, storage.clock()
    if not protocol.may_be_used(begun, now):
        return False
    change = protocol.end_copy(
        attempt.thread.epoch, begun, protocol.new_life(begun.ttl_seconds, now).alive_until
    )
    other = yield from storage.table.try_update(items.thread_key(target), change)
    if other is None:
        return True
    thread = Thread.parse(other) if other else None
    # The request took effect, but its response was lost and it was sent again.
    return (
        thread is not None
        and thread.confirms(attempt.thread.epoch)
        and not thread.is_being_copied
        and thread.life.kept_until == begun.kept_until
    )


def checked_places(
    read: Storage, storage: Storage, source_thread_id: str, target_thread_id: str
) -> tuple[Partition, Partition]:
    """Return the root namespaces of the thread and of its copy.

    Raises:
        CheckpointerInputError: An id cannot be used, or the thread would be copied to itself.
    """
    source = items.partition_of(arguments.checked_id(source_thread_id, "source_thread_id"))
    target = items.partition_of(arguments.checked_id(target_thread_id, "target_thread_id"))
    if source.pk == target.pk and _may_be_one_table(read.table.name, storage.table.name):
        msg = f"source and target are both thread {source_thread_id!r}; give another id for the copy"
        if read.table.name != storage.table.name:
            msg += ", or both tables by their ARNs, if they are two"
        raise errors.CheckpointerInputError(msg)
    return source, target


def _may_be_one_table(name: str, other: str) -> bool:
    """Tell whether two names or ARNs may be those of one table. A table's ARN ends in its name."""
    both_are_of_one_kind = name.startswith("arn:") == other.startswith("arn:")
    return name == other or (not both_are_of_one_kind and name.rpartition("/")[2] == other.rpartition("/")[2])


def _check_source(storage: Storage, source: Partition) -> Op[Thread]:
    """Return the thread, before anything is written.

    Raises:
        CheckpointNotFoundError: It has no checkpoint, or has expired.
        CheckpointCorruptionError: Its newest checkpoint is damaged, or the saver lacks its key.
    """
    thread = yield from thread_item.read_thread(storage, source)
    markers = yield from thread_item.namespace_markers(storage, source)
    for partition in (source, *(thread_item.marked_namespace(source, each) for each in markers)):
        for checkpoint in (yield from reads.NamespaceReader(storage, partition).page())[:1]:
            loaded = LoadedSegments(partition.pk)
            yield from loaded.read_indexes(storage, checkpoint.ids())
            for name, part in items.parts_of(checkpoint.head):
                open_part(storage.codec, checkpoint.head, name, part, loaded.contents)
            if thread is not None:
                return thread
    yield from other_savers.look_for_other_savers(storage, source)
    raise errors.CheckpointNotFoundError(
        f"thread {source.thread_id!r} of table {storage.table.name} has no checkpoint to copy; check its id"
    )


@dataclass(frozen=True)
class _CopyOfThread:
    """The copy of a thread in one life of its source, and in one life of its target."""

    read: Storage
    storage: Storage
    source: Partition
    target: Partition
    life: Thread
    attempt: _CopyAttempt

    def run(self, after: CopyPosition | None, is_over: Callable[[], bool]) -> Op[CopyPosition | None]:
        """Copy the namespaces; return where it stopped, if it did.

        Raises:
            ChangedMeanwhileError: A namespace has changed and has to be read again.
        """
        moment = yield from self._moment()
        basis = self._digest(moment)
        seed = self.storage.rng.randbytes(_SEED_BYTES) + basis
        if after is not None and after.seed[_SEED_BYTES:] == basis:
            seed = after.seed
        else:
            after = None
        places = set(moment.started_from)
        if self.attempt.has_leftovers:
            # A copy that died may have found namespaces that the source has lost since.
            markers = yield from thread_item.namespace_markers(self.storage, self.target)
            places |= {thread_item.marked_namespace(self.source, each) for each in markers}
        # The root comes last: in a target that is seen, its newest checkpoint needs those of the subgraphs.
        for each in sorted(places, key=lambda each: each.namespace, reverse=True):
            if after is not None and each.namespace > after.checkpoint_ns:
                continue
            is_begun = after is not None and each.namespace == after.checkpoint_ns
            copying = _Copy(self.read, self.storage, each, self.target, self.life, self.attempt, seed, moment)
            stopped_at = yield from copying.run(after.checkpoint_id if after and is_begun else None, is_over)
            if stopped_at is not None:
                return CopyPosition(seed, each.namespace, stopped_at)
        return None

    def _moment(self) -> Op[_Moment]:
        """Read what the namespaces of the source end with.

        Raises:
            ChangedMeanwhileError: It was something else each time.
        """
        before: tuple[dict[Partition, str | None], dict[Partition, StoredCheckpoint]] | None = None
        others: dict[Partition, str] = {}
        for _ in range(limits.ATTEMPTS_MAX):
            found: dict[Partition, str | None] = {self.source: None}
            for marker in (yield from thread_item.namespace_markers(self.read, self.source)):
                found[thread_item.marked_namespace(self.source, marker)] = items.text(
                    marker, items.STARTED_FROM
                )
            around = {"", *(name for each in found for name in needs.namespaces_around(each.namespace))}
            ends = yield from self._newest([each for each in found if each.namespace in around])
            if before is not None and (before[0], _ids(before[1])) == (found, _ids(ends)):
                has_subgraphs = len(found) > 1
                return _Moment(found, others | _ids(ends), before[1] if has_subgraphs else {})
            before = found, ends
            others = yield from self._last_ids([each for each in found if each.namespace not in around])
        raise reads.ChangedMeanwhileError

    def _last_ids(self, partitions: Sequence[Partition]) -> Op[dict[Partition, str]]:
        """Read the ids of the newest checkpoints, of some namespaces at a time: a thread may have thousands."""
        found: dict[Partition, str] = {}
        for start in range(0, len(partitions), limits.PARALLEL_REQUESTS):
            found |= _ids((yield from self._newest(partitions[start : start + limits.PARALLEL_REQUESTS])))
        return found

    def _newest(self, partitions: Sequence[Partition]) -> Op[dict[Partition, StoredCheckpoint]]:
        """Read the newest checkpoint of each namespace that has one."""
        found = yield from gather([self._newest_of(each) for each in partitions])
        return {each: newest for each, newest in zip(partitions, found, strict=True) if newest is not None}

    def _newest_of(self, partition: Partition) -> Op[StoredCheckpoint | None]:
        history = reads.NamespaceReader(self.read, partition, as_ancestors=True)
        while not history.done:
            for each in _committed((yield from history.page()), self.life):
                return each
        return None

    def _digest(self, moment: _Moment) -> bytes:
        """Return what tells the lives of both threads, and the moment, from others. A seed ends in it.

        If the target was renewed since, what is copied has to be kept for longer, all of it.
        """
        parts = (
            self.read.table.name.encode(),
            self.source.pk.encode(),
            self.life.epoch,
            self.attempt.thread.epoch,
            str(self.attempt.life.kept_until).encode(),
            moment.digest(),
        )
        return blake2b(
            b"".join(len(each).to_bytes(4, "big") + each for each in parts), digest_size=_SEED_BYTES
        ).digest()


def _ids(checkpoints: Mapping[Partition, StoredCheckpoint]) -> dict[Partition, str]:
    return {partition: each.checkpoint_id for partition, each in checkpoints.items()}


def _committed(page: Iterable[StoredCheckpoint], life: Thread) -> list[StoredCheckpoint]:
    """Return those that were acknowledged. What carries another epoch was not, or is of a life that has ended."""
    return [each for each in page if protocol.is_committed(each.head, items.BODY, life)]


def _sort_keys(checkpoints: Iterable[StoredCheckpoint]) -> set[str]:
    return {items.sort_key(item) for each in checkpoints for item in each.members}


@dataclass
class _Copy:
    """The copy of one namespace."""

    _read: Storage
    _storage: Storage
    _source: Partition
    _thread: Partition
    _life: Thread
    _attempt: _CopyAttempt
    _seed: bytes
    _moment: _Moment
    _copied: set[bytes] = field(default_factory=set)
    _stored: set[bytes] = field(default_factory=set)
    _indexes: dict[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the place of the copy."""
        self._target = items.partition_of(self._thread.thread_id, self._source.namespace)

    def run(self, below: str | None, is_over: Callable[[], bool]) -> Op[str | None]:
        """Copy the namespace, the newest checkpoint first, or those below one; return where it stopped, if it did.

        Raises:
            ChangedMeanwhileError: The namespace has changed and has to be read again.
        """
        # Register first, even if the source is empty now: an earlier attempt may have left items in the target.
        if self._target.namespace:
            until, started_from = self._attempt.life.kept_until, self._moment.started_from.get(self._source)
            yield from thread_item.register_namespace(self._storage, self._target, until, started_from)
        history = self._history(below)
        while not history.done:
            copied = self._of_moment((yield from self._committed(history)))
            for start in range(0, len(copied), _CHECKPOINTS_AT_ONCE):
                some = copied[start : start + _CHECKPOINTS_AT_ONCE]
                yield from self._store((yield from self._copy_segments_of(some)))
                if is_over():
                    return some[-1].checkpoint_id
        if self._attempt.has_leftovers:
            yield from self._remove_leftovers()
        return None

    def _history(self, below: str | None = None) -> reads.NamespaceReader:
        return reads.NamespaceReader(
            self._read, self._source, below=below, first_page=None, as_ancestors=True
        )

    def _committed(self, history: reads.NamespaceReader) -> Op[list[StoredCheckpoint]]:
        return _committed((yield from history.page()), self._life)

    def _of_moment(self, page: Sequence[StoredCheckpoint]) -> list[StoredCheckpoint]:
        """Return the checkpoints of the moment, with the writes that the last of them had then."""
        last_id = self._moment.last_ids.get(self._source)
        last = self._moment.last_checkpoints.get(self._source)
        return [
            last if last is not None and each.checkpoint_id == last_id else each
            for each in page
            if last_id is not None and each.checkpoint_id <= last_id
        ]

    def _store(self, checkpoints: Sequence[StoredCheckpoint]) -> Op[None]:
        """Store checkpoints whose segments are stored: their writes, and then their heads."""
        size = sum(each.sealed_bytes() for each in checkpoints)
        heads, writes = yield from work(partial(self._heads_and_writes, checkpoints), size)
        loose = items.named_ids([*heads, *writes]) - self._stored
        protocol.check_rule("a copy may name segments that it has stored", loose)
        if not all((yield from gather([self._put_writes(each) for each in writes]))):
            raise reads.ChangedMeanwhileError
        # A copy that dies half-way in a target that is seen must not show an older state as the latest.
        first = 0 if self._attempt.is_hidden else 1
        for some in (heads[:first], heads[first:]):
            stored = yield from gather([self._put_head(each) for each in some])
            if not all(stored):
                raise reads.ChangedMeanwhileError

    def _put_writes(self, writes: Item) -> Op[bool]:
        """Store a task's writes, unless the target has its own; return whether it is still what this copy fills."""
        replaced: Item | None = None
        for _ in range(limits.MERGE_ATTEMPTS_MAX):
            other = yield from self._storage.table.try_put(writes, protocol.copy_writes(replaced))
            kept_until, is_hidden = self._attempt.life.kept_until, self._attempt.is_hidden
            if other is None or other == writes:
                return True
            if other and not protocol.may_copy_over(other, kept_until, is_hidden=is_hidden):
                return True
            replaced = other or None
            thread = yield from thread_item.read_thread(self._storage, self._target)
            if thread is None or not is_reusable(thread.epoch, self._attempt.thread.epoch):
                return False
        return False

    def _put_head(self, head: Item) -> Op[bool]:
        """Store a head; return whether it is stored. A copy that was overtaken must not replace what came later."""
        return (yield from put.put_head(self._storage, self._target, head, self._attempt.thread.epoch))

    def _remove_leftovers(self) -> Op[None]:
        """Remove checkpoints and writes that the source does not have.

        Raises:
            ChangedMeanwhileError: The source or the target has changed, or another copy is of a later moment.
        """
        query = Query(self._target.pk, prefix=items.CHECKPOINTS, attributes=_OF_LEFTOVERS)
        found = {items.sort_key(each): each for each in (yield from self._storage.table.query_all(query))}
        history, now, of_moment = self._history(), set[str](), set[str]()
        while not history.done:
            page = yield from self._committed(history)
            now |= _sort_keys(page)
            of_moment |= _sort_keys(self._of_moment(page))
        if not found.keys().isdisjoint(now - of_moment):
            raise reads.ChangedMeanwhileError
        leftovers = [each for sk, each in found.items() if sk not in of_moment]
        if not leftovers:
            return
        # Another copy to this id may have found more in a later life of the source, and may have ended.
        source = yield from thread_item.read_thread(self._read, self._source)
        target = yield from thread_item.read_thread(self._storage, self._target)
        is_ours = target is not None and target.is_being_copied and target.commits(self._attempt.thread.epoch)
        if source is None or not is_reusable(source.epoch, self._life.epoch) or not is_ours:
            raise reads.ChangedMeanwhileError
        deletions = [(items.key_of(each), protocol.delete_as_read(each)) for each in leftovers]
        yield from gather([self._storage.table.try_delete(key, change) for key, change in deletions])

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
            whole = yield from reads.load(self._read, checkpoint, LoadedSegments(self._source.pk))
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
                self._stored |= set(map(items.segment_id_of, copies.values()))
                missing |= set(some) - copies.keys()
        return missing

    def _segments(self, found: Sequence[Item]) -> dict[bytes, Item]:
        """Return the copies of segments, by the ids of their originals."""
        return {items.segment_id_of(item): self._segment(item) for item in found}

    def _segment(self, item: Item) -> Item:
        segment_id = items.segment_id_of(item)
        content = reads.open_segment(self._storage.codec, item)
        if is_index(segment_id):
            self._indexes[segment_id] = content
            content = b"".join(map(self._new_id, items.unpack_ids(content)))
        room = unit_data_bytes(self._target, {}, self._storage.clock())
        data = seal_segment(self._storage.codec, self._target, self._new_id(segment_id), content, room)
        copy = items.segment_item(self._target, self._new_id(segment_id), data)
        return items.with_expiry(items.created(copy, self._storage.clock()), self._attempt.life.kept_until)

    def _new_id(self, segment_id: bytes) -> bytes:
        """Return the id of a segment's copy."""
        return derived_id(self._seed, segment_id)

    def _heads_and_writes(self, checkpoints: Sequence[StoredCheckpoint]) -> tuple[list[Item], list[Item]]:
        """Return the copies of checkpoints' heads, and of their writes."""
        writes = [item for each in checkpoints for item in each.writes]
        return (
            [self._head(each.head) for each in checkpoints],
            [self._writes(item) for item in writes],
        )

    def _head(self, head: Item) -> Item:
        """Return a head's copy for the target. One that readers do not see any more is there for others only."""
        copy, now = items.with_life(self._item(head), self._attempt.life), self._storage.clock()
        if not items.is_shown(head, now):
            copy[items.SHOWN_UNTIL] = {"N": str(int(now))}
        return copy

    def _writes(self, item: Item) -> Item:
        """Return the copy of a task's writes for the target."""
        copy = items.created(self._item(item), protocol.copied_at(self._storage.clock()))
        return items.with_expiry(copy, self._attempt.life.kept_until)

    def _item(self, item: Item) -> Item:
        """Return the copy of a head or a writes item for the target, without the times of its life."""
        left_out = (schema.TTL_ATTRIBUTE, schema.ALIVE_UNTIL, items.SHOWN_UNTIL, items.TTL_SECONDS)
        copy = {name: value for name, value in item.items() if name not in left_out}
        copy[schema.PARTITION_KEY] = {"S": self._target.pk}
        for name, part in items.parts_of(item):
            copy[name] = self._part(item, copy, name, part).attribute(items.sort_key(item))
        copy |= {name: {"B": self._attempt.thread.epoch} for name in items.EPOCHS if name in item}
        return copy

    def _part(self, source: Item, target: Item, name: str, part: Part) -> Part:
        """Return a part of an item, with new ids and sealed for the target."""
        content = open_part(self._storage.codec, source, name, part, self._indexes)
        own, refs = (tuple(map(self._new_id, ids)) for ids in (part.own, part.refs))
        named = [list(map(self._new_id, expand(ids, self._indexes))) for ids in (part.own, part.refs)]
        beside: int | None = None
        if name != items.SEALED_METADATA:
            rest = {each: value for each, value in target.items() if each != name}
            beside = pricing.item_bytes(rest) + len(name) + part_bytes(own + refs)
        seal = self._storage.codec.seal_between if own else self._storage.codec.seal
        sealed = seal(content, target, name, (named[0], named[1]), beside=beside)
        return Part(own, refs, sealed)
