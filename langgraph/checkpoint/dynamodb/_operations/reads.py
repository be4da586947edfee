"""Reading checkpoints: finding heads, and loading the segments they name.

A reader may meet a checkpoint whose segments a deletion has just removed. It reads the head again; if the
segments are still missing, the thread's epoch says whether the checkpoint was ever acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from .._format import items, limits, schema
from .._format.codec import Codec, open_plain
from .._format.items import Item, Partition
from .._format.segments import Chunk, expand, is_index, piece
from .._runtime.requests import Query, Table
from .._runtime.steps import Op, gather, work
from .._runtime.storage import CachedSegment, Storage
from ..errors import CheckpointCorruptionError
from ..protocol import Thread, is_committed, is_reusable, is_settled


class ChangedMeanwhileError(Exception):
    """An item that was being read has been replaced or deleted; it has to be found again."""


@dataclass(frozen=True)
class StoredCheckpoint:
    """The items of one checkpoint, as they were read: its head and its tasks' writes."""

    head: Item
    writes: Sequence[Item] = ()

    @cached_property
    def checkpoint_id(self) -> str:
        """The checkpoint's id."""
        return items.checkpoint_id_of(self.head)

    @property
    def members(self) -> Sequence[Item]:
        """The head and the writes items."""
        return (self.head, *self.writes)

    def own_ids(self) -> set[bytes]:
        """Return the ids of the segments that hold the items' own content, without those of the values."""
        return items.own_ids(self.members)

    def ids(self) -> set[bytes]:
        """Return the ids of all segments that the items name."""
        return items.named_ids(self.members)

    def sealed_bytes(self) -> int:
        """Return how many sealed bytes the items hold themselves."""
        return items.sealed_bytes(self.members)


# Finding heads


class LifeOfThread:
    """Tells which heads of a thread readers see. Reads the thread item at most once, and in most cases not at all."""

    def __init__(self, storage: Storage) -> None:
        """Start without having read it."""
        self._storage = storage
        self._read: list[Thread | None] = []
        self.is_over = False
        """Whether the thread is known to be dead."""

    def shows(self, head: Item) -> Op[bool]:
        """Tell whether readers see a head: its thread is alive, and has not begun anew since the head was stored.

        A head carries until when its thread was alive when it was stored. A use is noted before anything is stored, so
        only the thread item tells what came later.
        """
        until, now = items.number(head, schema.ALIVE_UNTIL), self._storage.clock()
        if until is None or until > now:
            return True
        if not self._read:
            root = items.parse_partition(items.partition_key(head)).root
            item = yield from self._storage.table.get(root, items.THREAD)
            self._read.append(None if item is None else Thread.parse(item))
        thread = self._read[0]
        self.is_over = thread is None or not thread.is_alive(now)
        return not self.is_over and is_committed(head, items.BODY, thread)


class NamespaceReader:
    """A namespace's checkpoints, newest first, read page by page."""

    def __init__(
        self,
        storage: Storage,
        partition: Partition,
        *,
        below: str | None = None,
        includes_below: bool = False,
        first_page: int | None = limits.PAGE_ITEMS_FIRST,
        consistent: bool = True,
        as_ancestors: bool = False,
    ) -> None:
        """Start at the newest checkpoint, or at the newest one with a smaller id than `below`.

        `includes_below` starts at `below` itself. `as_ancestors` also yields checkpoints that are kept only because
        later ones are rebuilt from them.
        """
        self.partition = partition
        self._storage = storage
        self._as_ancestors = as_ancestors
        self._excluded = None if includes_below else below
        self._life = LifeOfThread(storage)
        self._writes: list[Item] = []
        self._headless: list[Item] = []
        until = items.AFTER_CHECKPOINTS
        if below is not None:
            until = items.after_checkpoint(below) if includes_below else items.checkpoint_prefix(below)
        self._query = Query(
            partition.pk,
            between=(items.CHECKPOINTS, until),
            descending=True,
            consistent=consistent,
            first_page=first_page,
        )

    @property
    def done(self) -> bool:
        """Whether everything has been read."""
        return self._query.done

    @property
    def headless(self) -> list[Item]:
        """The writes that were read so far and have no head."""
        return [*self._headless, *(self._writes if self.done else ())]

    def page(self, at_least: int = 0) -> Op[list[StoredCheckpoint]]:
        """Read pages of `at_least` items until a live checkpoint is complete, or to the end of the namespace."""
        checkpoints: list[StoredCheckpoint] = []
        while not checkpoints and not self.done:
            checkpoints = yield from self.next_page(at_least)
        return checkpoints

    def next_page(self, at_least: int = 0) -> Op[list[StoredCheckpoint]]:
        """Read one page and return the checkpoints that it completes; there may be none."""
        checkpoints: list[StoredCheckpoint] = []
        for item in (yield from self._storage.table.query_page(self._query, at_least)):
            if not items.is_head(item):
                self._writes.append(item)
            else:
                checkpoints += yield from self._complete(item)
            if self._life.is_over:
                self._query.done = True
                return []
        return checkpoints

    def _complete(self, head: Item) -> Op[list[StoredCheckpoint]]:
        """Return the checkpoint that a head completes, if it is live.

        Writes sort behind their head, so a descending query returns them before it.
        """
        checkpoint_id = items.checkpoint_id_of(head)
        writes = [item for item in self._writes if items.checkpoint_id_of(item) == checkpoint_id]
        self._headless += [item for item in self._writes if items.checkpoint_id_of(item) != checkpoint_id]
        self._writes = []
        if checkpoint_id == self._excluded:
            return []
        if not self._as_ancestors and not (yield from self._life.shows(head)):
            return []
        checkpoint = _live(self._storage, head, writes, as_ancestor=self._as_ancestors)
        return [] if checkpoint is None else [checkpoint]


def find_newest(storage: Storage, partition: Partition, *, below: str | None) -> Op[StoredCheckpoint | None]:
    """Read the items of the newest live checkpoint, or of the newest one with a smaller id than `below`.

    Takes them from a single page if one can hold them. Between two pages a put may store what the first one lacked,
    and a deletion may remove what the second one would have found. So each attempt starts with a new, larger page.
    """
    first_page = limits.PAGE_ITEMS_FIRST
    while True:
        history = NamespaceReader(storage, partition, below=below, first_page=first_page)
        checkpoints = yield from history.next_page()
        if not checkpoints and not history.done and first_page < limits.PAGE_ITEMS_MAX:
            first_page *= limits.PAGE_ITEMS_GROWTH
            continue
        checkpoints = checkpoints or (yield from history.page())
        return checkpoints[0] if checkpoints else None


def find(
    storage: Storage,
    partition: Partition,
    checkpoint_id: str,
    *,
    as_ancestor: bool = False,
) -> Op[StoredCheckpoint | None]:
    """Read the items of one checkpoint; return `None` if it is not there or has expired."""
    query = Query(partition.pk, prefix=items.checkpoint_prefix(checkpoint_id))
    found = yield from storage.table.query_all(query)
    if not found or not items.is_head(found[0]):
        return None
    if not as_ancestor and not (yield from LifeOfThread(storage).shows(found[0])):
        return None
    return _live(storage, found[0], found[1:], as_ancestor=as_ancestor)


def _live(
    storage: Storage, head: Item, writes: Sequence[Item], *, as_ancestor: bool
) -> StoredCheckpoint | None:
    """Return the items of a checkpoint that have not expired, or `None` if its head has."""
    now = storage.clock()
    if items.is_expired(head, now, as_ancestor=True) if as_ancestor else not items.is_shown(head, now):
        return None
    items.check_format(head)
    return StoredCheckpoint(head, [each for each in writes if not items.is_expired(each, now)])


class AncestorReader:
    """Reads checkpoints of a namespace by id: in pages, newest first, and one alone if it is out of order."""

    def __init__(self, storage: Storage, partition: Partition, *, below: str | None = None) -> None:
        """Start below a checkpoint, or at the newest one."""
        self._storage = storage
        self._partition = partition
        # A checkpoint may be rebuilt from ancestors that have expired for readers.
        self._history = NamespaceReader(storage, partition, below=below, as_ancestors=True)
        self.read: dict[str, StoredCheckpoint] = {}

    def newest(self) -> Op[StoredCheckpoint | None]:
        """Return the newest checkpoint of the namespace."""
        yield from self._next_page(0)
        return next(iter(self.read.values()), None)

    def checkpoint(self, checkpoint_id: str, at_least: Callable[[], int]) -> Op[StoredCheckpoint | None]:
        """Return the items of a checkpoint. Each page that has to be read has `at_least()` items or more."""
        # Ids only ascend within one process, so a parent may lie outside the range that history is read in.
        while checkpoint_id not in self.read and not self._history.done:
            checkpoints = yield from self._next_page(at_least())
            if checkpoints and checkpoints[-1].checkpoint_id < checkpoint_id:
                break
        if checkpoint_id not in self.read:
            return (yield from find(self._storage, self._partition, checkpoint_id, as_ancestor=True))
        return self.read[checkpoint_id]

    def back(self, head: Item, last: str) -> Op[list[StoredCheckpoint]]:
        """Walk back from a head's parent to the ancestor `last`, or to the first checkpoint."""
        path, passed = list[StoredCheckpoint](), {items.checkpoint_id_of(head)}
        while not path or path[-1].checkpoint_id != last:
            parent_id = items.text(head, items.PARENT)
            if parent_id is None or parent_id in passed:
                # This is the first checkpoint, or one that was put again as a child of its own descendants.
                break
            passed.add(parent_id)
            checkpoint = yield from self.checkpoint(parent_id, lambda: 0)
            if checkpoint is None:
                break
            path.append(checkpoint)
            head = checkpoint.head
        return path

    def _next_page(self, at_least: int) -> Op[list[StoredCheckpoint]]:
        checkpoints = yield from self._history.page(at_least)
        self.read |= {checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints}
        return checkpoints


# Loading what heads name


class LoadedSegments:
    """The segments of one partition that were read."""

    def __init__(
        self, pk: str, epoch: bytes | None = None, indexes: Mapping[bytes, bytes] | None = None
    ) -> None:
        """Start with none, or with index segments.

        Args:
            pk: The partition.
            epoch: The epoch of the head that names them. They are cached under it; `None` caches nothing.
            indexes: The contents of index segments, by id.
        """
        self.contents: dict[bytes, bytes] = dict(indexes or {})
        """The plaintexts, by segment id."""
        self.chunks: dict[bytes, Chunk] = {}
        """Their digests, lengths and expiries, if they are cached."""
        self.epoch = epoch
        self.is_committed = False
        """Whether the thread had this epoch when the head was seen. If so, the head stays whole while it exists."""
        self._pk = pk

    @classmethod
    def of(cls, head: Item) -> LoadedSegments:
        """Start with none, for the segments of a head."""
        return cls(items.partition_key(head), items.binary(head, items.EPOCH))

    def read(
        self, storage: Storage, ids: Iterable[bytes], *, from_cache: bool = False, by_keys: bool = False
    ) -> Op[set[bytes]]:
        """Read segments, and those that index segments among them name; return the ids of missing ones.

        Segments never change, so eventually consistent reads are enough, and the cache if `from_cache` is set.
        Only segments that seem missing are read again, strongly consistent. With `by_keys`, no page of the partition is
        read, most of which may be other segments.
        """
        wanted = set(expand(ids, self.contents)) - self.contents.keys()
        page = {} if by_keys else (yield from self._page(storage, wanted, from_cache=from_cache))
        missing: set[bytes] = set()
        while wanted:
            cached = self._cached(storage, wanted, from_cache=from_cache)
            read = {each: page[each] for each in sorted(wanted & page.keys() - cached.keys())}
            rest = wanted - cached.keys() - page.keys()
            storage.on_read(limits.SEGMENT_BYTES_USUAL * len(wanted))
            read |= _by_id((yield from segment_items(storage.table, self._pk, rest)))
            contents = yield from work(
                partial(self._open, storage, read, cached), limits.SEGMENT_BYTES_USUAL * len(wanted)
            )
            self.contents |= contents
            if self.epoch is not None:
                new = yield from work(
                    partial(_cached_segments, read, contents), limits.SEGMENT_BYTES_USUAL * len(read)
                )
                storage.cache.remember_segments(self._pk, self.epoch, new)
                self.chunks |= {each: segment.chunk for each, segment in {**cached, **new}.items()}
            missing |= wanted - contents.keys()
            wanted = _named_by_indexes(contents) - self.contents.keys() - missing
        return missing

    def read_indexes(self, storage: Storage, ids: Iterable[bytes]) -> Op[set[bytes]]:
        """Read the index segments among some, without a key; return the ids of missing ones."""
        wanted = set(filter(is_index, expand(ids, self.contents))) - self.contents.keys()
        missing: set[bytes] = set()
        while wanted:
            read = yield from segment_items(storage.table, self._pk, wanted)
            contents = yield from work(
                partial(open_segments, None, read), limits.SEGMENT_BYTES_USUAL * len(read)
            )
            self.contents |= contents
            missing |= wanted - contents.keys()
            wanted = set(filter(is_index, _named_by_indexes(contents))) - self.contents.keys() - missing
        return missing

    def read_all(self, storage: Storage, checkpoint: StoredCheckpoint) -> Op[set[bytes]]:
        """Read every segment that a checkpoint names; return the ids of missing ones.

        Uses the cache only if the checkpoint is committed. A deletion may have removed segments of any other one, and a
        process that has them cached must not return what nobody else can read.
        """
        ids = checkpoint.ids()
        if self.epoch is None:
            return (yield from self.read(storage, ids))
        entry = storage.cache.checkpoint(self._pk, checkpoint.checkpoint_id)
        is_known = entry is not None and entry.is_committed and is_reusable(entry.epoch, self.epoch)
        self.is_committed = is_known or is_settled(self.epoch)
        if self.is_committed or not storage.cache.segments(self._pk, self.epoch, ids):
            return (yield from self.read(storage, ids, from_cache=self.is_committed))
        root = items.parse_partition(self._pk).root
        reads: list[Op[Any]] = [
            self.read(storage, ids, from_cache=True),
            storage.table.get(root, items.THREAD),
        ]
        missing, thread = yield from gather(reads)
        self.is_committed = thread is not None and is_reusable(self.epoch, Thread.parse(thread).epoch)
        if self.is_committed:
            return set(missing)
        self.contents.clear()
        self.chunks.clear()
        return (yield from self.read(storage, ids))

    def missing(self, ids: Iterable[bytes]) -> list[bytes]:
        """Return which of some segments were not read, including those that index segments name."""
        return [each for each in expand(ids, self.contents) if each not in self.contents]

    def _page(
        self, storage: Storage, wanted: Collection[bytes], *, from_cache: bool
    ) -> Op[dict[bytes, Item]]:
        """Read a page of the partition's segments, if that is likely to be cheaper than reading them by their keys.

        Segment ids are random, so a page is a fair sample of the partition. It has at most a quarter more items than
        are wanted. Segments that it lacks are read by their keys.
        """
        count = sum(limits.INDEX_GROUP if is_index(each) else 1 for each in wanted)
        is_begun = self.contents or self._cached(storage, wanted, from_cache=from_cache)
        if is_begun or not limits.QUERIED_SEGMENTS_MIN <= count <= limits.QUERIED_SEGMENTS_MAX:
            return {}
        first_page = len(wanted) + count * 5 // 4
        query = Query(self._pk, prefix=items.SEGMENTS, consistent=False, first_page=first_page)
        return _by_id((yield from storage.table.query_page(query)))

    def _cached(
        self, storage: Storage, wanted: Collection[bytes], *, from_cache: bool
    ) -> Mapping[bytes, CachedSegment]:
        if self.epoch is None or not from_cache:
            return {}
        return storage.cache.segments(self._pk, self.epoch, wanted)

    def _open(
        self, storage: Storage, read: Mapping[bytes, Item], cached: Mapping[bytes, CachedSegment]
    ) -> dict[bytes, bytes]:
        from_cache = _items_of(self._pk, cached)
        contents: dict[bytes, bytes] = {}
        size = 0
        for segment_id, item in {**from_cache, **read}.items():
            # The codec counts what it opens.
            storage.on_read(-limits.SEGMENT_BYTES_USUAL)
            content = contents[segment_id] = open_segment(storage.codec, item)
            size += len(content)
            # The limit holds for the values, the body that describes them and the writes, each by itself.
            storage.codec.check_size(size // 3, item)
        return contents


def _items_of(pk: str, cached: Mapping[bytes, CachedSegment]) -> dict[bytes, Item]:
    return {
        each: {**items.key(pk, items.segment_sk(each)), items.DATA: {"B": segment.sealed}}
        for each, segment in cached.items()
    }


def open_cached(
    storage: Storage, partition: Partition, epoch: bytes, ids: Iterable[bytes]
) -> dict[bytes, bytes]:
    """Return the plaintexts of those segments that are cached under an epoch."""
    cached = storage.cache.segments(partition.pk, epoch, ids)
    return open_segments(storage.codec, _items_of(partition.pk, cached).values())


def segment_items(table: Table, pk: str, ids: Iterable[bytes]) -> Op[list[Item]]:
    """Read segments by their ids.

    Segments never change, so an eventually consistent read is enough. Segments that seem missing are read again,
    strongly consistent.
    """
    left, found = set(ids), list[Item]()
    for consistent in (False, True):
        keys = [items.key(pk, items.segment_sk(each)) for each in sorted(left)]
        found += yield from table.batch_get(keys, consistent=consistent)
        left -= {items.segment_id_of(item) for item in found}
    return found


def open_segments(codec: Codec | None, read: Iterable[Item]) -> dict[bytes, bytes]:
    """Return the plaintexts of segments by their ids. Index segments alone need no codec."""
    return {each: open_segment(codec, item) for each, item in _by_id(read).items()}


def _by_id(segments: Iterable[Item]) -> dict[bytes, Item]:
    return {items.segment_id_of(item): item for item in segments}


def _named_by_indexes(contents: Mapping[bytes, bytes]) -> set[bytes]:
    return {named for each, data in contents.items() if is_index(each) for named in items.unpack_ids(data)}


def _cached_segments(
    read: Mapping[bytes, Item], contents: Mapping[bytes, bytes]
) -> dict[bytes, CachedSegment]:
    cached = {}
    for segment_id, item in read.items():
        chunk = Chunk.of(piece(contents[segment_id]), items.number(item, schema.TTL_ATTRIBUTE))
        cached[segment_id] = CachedSegment(items.binary(item, items.DATA), chunk)
    return cached


def open_segment(codec: Codec | None, segment: Item) -> bytes:
    """Open a segment; index segments need no codec."""
    data = items.binary(segment, items.DATA)
    if codec is None or is_index(items.segment_id_of(segment)):
        return open_plain(data, segment)
    return codec.open(data, segment, items.DATA)


def load(
    storage: Storage, checkpoint: StoredCheckpoint, loaded: LoadedSegments
) -> Op[StoredCheckpoint | None]:
    """Read every segment that a checkpoint names.

    Returns:
        The checkpoint without writes that were never acknowledged; `None` if it was never acknowledged itself.

    Raises:
        CheckpointCorruptionError: Segments of something that was acknowledged are missing.
        ChangedMeanwhileError: The checkpoint has to be found again.
    """
    missing = yield from loaded.read_all(storage, checkpoint)
    if not missing:
        return checkpoint
    if (yield from lost_parts(storage, checkpoint.head, loaded)):
        return None
    whole = []
    for item in checkpoint.writes:
        lost = yield from lost_parts(storage, item, loaded)
        left = {name: value for name, value in item.items() if name not in lost}
        if next(items.parts_of(left), None) is not None:
            whole.append(left)
    return StoredCheckpoint(checkpoint.head, whole)


def lost_parts(
    storage: Storage, item: Item, loaded: LoadedSegments, names: Sequence[str] = items.PARTS
) -> Op[set[str]]:
    """Return the names of those parts of a head or writes item that lack segments, as they were never acknowledged.

    Raises:
        CheckpointCorruptionError: Such a part is committed and has not changed: the table is damaged.
        ChangedMeanwhileError: Such a part has changed, or its item has expired.
    """
    missing = {name: loaded.missing(part.ids) for name, part in items.parts_of(item) if name in names}
    lost = {name: ids for name, ids in missing.items() if ids}
    if lost:
        yield from judge(storage, item, lost)
    return set(lost)


def judge(storage: Storage, item: Item, lost: Mapping[str, Sequence[bytes]]) -> Op[None]:
    """Find out why segments of an item's parts are missing; return if the parts were never acknowledged.

    Raises:
        CheckpointCorruptionError: A part is committed and has not changed: the table is damaged.
        ChangedMeanwhileError: A part has changed, or the item has expired.
    """
    partition = items.parse_partition(items.partition_key(item))
    again = yield from storage.table.get(partition.pk, items.sort_key(item))
    if again is None or any(again.get(name) != item.get(name) for name in lost):
        raise ChangedMeanwhileError
    if items.is_expired(again, storage.clock() + limits.REMOVED_EARLY_SECONDS, as_ancestor=True):
        # DynamoDB may have removed the segments: the reader was slow, or its clock is.
        raise ChangedMeanwhileError
    thread_item = yield from storage.table.get(partition.root, items.THREAD)
    thread = None if thread_item is None else Thread.parse(thread_item)
    missing = [each for name, ids in lost.items() if is_committed(again, name, thread) for each in ids]
    if not missing:
        return
    segments = ", ".join(items.segment_sk(each) for each in missing[:3])
    raise CheckpointCorruptionError(
        f"{items.name_of(item)} needs segments that are not in the table ({len(missing)} missing, first:"
        f" {segments}); restore them from a backup or point-in-time recovery, or delete the thread"
    )
