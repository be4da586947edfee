"""Storage: codec, cache, clock and table for operations. Savers, command line, gateway and viewer pass it to them.

The cache has checkpoints, threads and segments that a process stored or read: bounded, and never a source of truth.
With a cached checkpoint, its child and its tasks' writes can reuse segments without reading it back. Segments never
change, so a cached one need not be read again. A lost entry costs a read. A stale entry is found out when the thread's
epoch is confirmed after each commit. Which checkpoints exist is never cached: readers ask the table.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from typing_extensions import Self

from .._format.codec import Codec
from .._format.content import SharedValues
from .._format.items import Item, Life
from .._format.segments import Chunk, StoredValue, inline_bytes
from ..errors import CheckpointerUnavailableError
from ..protocol import Thread, is_reusable, is_settled
from . import events, fork
from .requests import Table

# The cache


@dataclass(frozen=True)
class CachedCheckpoint:
    """How a checkpoint stores its values, from which its child is composed."""

    epoch: bytes
    versions: Mapping[str, Any]
    values: Mapping[str, StoredValue]
    chunks: Mapping[bytes, Chunk]
    # By channel, the ancestor that it is rebuilt from, the oldest first; "" is the very first checkpoint.
    sources: Mapping[str, str]
    # The life of its thread when it was stored. Its ancestors are kept as long as it is.
    life: Life = field(default_factory=Life)
    # Whether the thread had this epoch when the checkpoint was seen. Then no deletion can remove its segments while it
    # exists.
    is_committed: bool = True
    # The plaintexts of its segments, if it was just read: a child may have to store them again.
    contents: Mapping[bytes, bytes] = field(default_factory=dict)
    # The values at the front of its body, if its child can share them.
    shared: SharedValues | None = None

    @property
    def thread(self) -> CachedThread | None:
        """The thread, as far as the checkpoint tells; `None` if a deletion has settled it."""
        if is_settled(self.epoch):
            return None
        return CachedThread(self.epoch, Life() if self.life.ttl_seconds is None else self.life)

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        values = self.values.values()
        stored = inline_bytes(values) + sum(300 + 70 * len(value.segments) for value in values)
        shared = () if self.shared is None else self.shared.names
        stored += 100 * len(shared)
        return 1000 + stored + 100 * len(self.versions) + 150 * len(self.sources) + 300 * len(self.chunks)


@dataclass(frozen=True)
class CachedThread:
    """A thread's epoch, life and registered namespaces with their expiries, as a process last saw them."""

    epoch: bytes
    life: Life
    namespaces: dict[str, int | None] = field(default_factory=dict)
    last_active: int | None = None
    """When the directory last noted activity, in epoch seconds; `None` if the thread is not known to be in it."""

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        return 500 + 250 * len(self.namespaces)


class CachedSegment(NamedTuple):
    """A segment as it was stored or read: its sealed bytes, and its content's digest, length and expiry.

    It stays sealed, which takes less memory, and leaves less plaintext in memory if the saver encrypts.
    """

    sealed: bytes
    chunk: Chunk

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entry, in bytes."""
        return 700 + len(self.sealed)


_Key: TypeAlias = tuple[str, str] | str | tuple[str, bytes, bytes]
"""Of a checkpoint: its partition and id. Of a thread: its partition. Of a segment: its partition, the epoch under which
its expiry was known, and its id."""
# Of how many partitions the checkpoint that was cached last is known.
_LATEST_MAX = 10_000

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A bounded cache that several OS threads may share. The least recently used entries are dropped first."""

    def __init__(self, size_max: int) -> None:
        """Take the bound on the sizes of all entries together."""
        self._size_max = size_max
        fork.start_in_every_process(self)

    def start(self) -> None:
        """Start empty; also after a fork, which may have come while another OS thread was changing the entries."""
        self._size = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.lock = threading.RLock()
        """Held for each call, and by those who change an entry that they have read."""

    def get(self, key: K, /) -> V | None:
        """Return an entry and mark it as used; `None` if it is not cached."""
        with self.lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def keep(self, key: K, entry: V, size: int, /) -> None:
        """Cache an entry instead of the one before, and drop those for which there is no more room.

        One for which there is no room at all drops no other.
        """
        with self.lock:
            self.forget(key)
            if size > self._size_max:
                return
            self._entries[key] = entry, size
            self._size += size
            while self._size > self._size_max:
                self.forget(next(iter(self._entries)))

    def entries(self) -> list[tuple[K, V]]:
        """Return all entries with their keys."""
        with self.lock:
            return [(key, entry) for key, (entry, _) in self._entries.items()]

    def forget(self, key: K) -> None:
        """Drop an entry."""
        with self.lock:
            self._size -= self._entries.pop(key, (None, 0))[1]


SharedRead: TypeAlias = "Future[Sequence[Thread | None]]"
"""A read of a thread item. Its result has the answer, or is empty if the read failed."""


PUT = "put"
"""A put of a checkpoint of a partition."""
RENEWAL = "renewal"
"""A renewal in a thread."""


@dataclass(frozen=True, eq=False)
class UnderWay:
    """A put or renewal that has begun and not ended. It may never end: an event loop may be stopped and kept."""

    began_at: float
    ended: Future[None] = field(default_factory=Future)


@dataclass
class Facts:
    """Facts about a table that a process finds out once."""

    is_shared: bool | None = None
    """Whether the table may hold another saver's threads; `None` before the first look."""
    has_told_of_ttl: bool = False
    """Whether the log says already that a thread has another ttl than the saver."""
    has_told_of_missing_owner: bool = False
    """Whether the log says already that a thread entered the directory without an owner."""


class Cache:
    """Recently used checkpoints, threads and segments, up to a total size. Safe to use from several OS threads."""

    def __init__(self, bytes_max: int, facts: Facts | None = None) -> None:
        """Take the bound on the estimated size of all entries, and known facts about the table."""
        self.facts = facts or Facts()
        # By their keys in the table, segments with an epoch: it implies that their expiries still hold.
        self._entries: LruCache[_Key, CachedCheckpoint | CachedThread | CachedSegment] = LruCache(bytes_max)
        # By partition, the id of the checkpoint that was cached last.
        self._latest: LruCache[str, str] = LruCache(_LATEST_MAX)
        fork.start_in_every_process(self)

    def start(self) -> None:
        """Start with nothing under way; also after a fork, which copies no OS threads."""
        # For each partition, the ends of the puts that are under way. For each thread, the reads that confirm its
        # epoch, which operations share.
        self._under_way: dict[tuple[str, str], list[UnderWay]] = {}
        self.thread_reads = SharedReads()
        self._lock = threading.Lock()

    def checkpoint(self, pk: str, checkpoint_id: str) -> CachedCheckpoint | None:
        """Return the entry of a checkpoint, or `None` if it is not cached."""
        entry = self._get([(pk, checkpoint_id)])[0]
        return entry if isinstance(entry, CachedCheckpoint) else None

    def remember_checkpoint(self, pk: str, checkpoint_id: str, entry: CachedCheckpoint) -> None:
        """Cache a checkpoint's entry."""
        self._store((pk, checkpoint_id), entry)
        self._latest.keep(pk, checkpoint_id, 1)

    def remember_kept(self, pk: str, checkpoint_id: str, kept_until: int) -> None:
        """Cache until when a checkpoint is kept, if it is cached."""
        with self._entries.lock:
            entry = self._entries.get((pk, checkpoint_id))
            if isinstance(entry, CachedCheckpoint):
                entry = replace(entry, life=replace(entry.life, kept_until=kept_until))
                self._store((pk, checkpoint_id), entry)

    def latest(self, pk: str) -> str | None:
        """Return the id of that checkpoint of a partition that was cached last, or `None` if it is not cached."""
        latest = self._latest.get(pk)
        return None if latest is None or self._entries.get((pk, latest)) is None else latest

    @contextmanager
    def working(self, kind: str, pk: str, began_at: float) -> Iterator[None]:
        """Make known, inside the block, what this process is doing in a partition: `PUT` or `RENEWAL`."""
        work = UnderWay(began_at)
        with self._lock:
            all_work = self._under_way
            all_work.setdefault((kind, pk), []).append(work)
        try:
            yield
        finally:
            with self._lock:
                all_work[kind, pk].remove(work)
                if not all_work[kind, pk]:
                    del all_work[kind, pk]
            work.ended.set_result(None)

    def under_way(self, kind: str, pk: str, after: float) -> Future[None] | None:
        """Return what tells the end of the last work of a kind that began after a time and has not ended, if any."""
        with self._lock:
            begun = [each.ended for each in self._under_way.get((kind, pk), []) if each.began_at > after]
        return begun[-1] if begun else None

    def thread(self, root: str, epoch: bytes | None = None) -> CachedThread | None:
        """Return the entry of a thread; `None` if it is not cached, or not under the epoch that is given."""
        entry = self._get([root])[0]
        if not isinstance(entry, CachedThread) or (epoch is not None and not is_reusable(entry.epoch, epoch)):
            return None
        return entry

    def remember_thread(self, root: str, seen: CachedThread) -> CachedThread:
        """Cache a thread as it was seen, and return its entry. A new epoch drops the registered namespaces."""
        with self._entries.lock:
            entry = self._entries.get(root)
            if not isinstance(entry, CachedThread) or not is_reusable(entry.epoch, seen.epoch):
                entry = replace(seen, namespaces={})
            last_active = _latest(entry.last_active, seen.last_active)
            entry = replace(entry, last_active=last_active, life=entry.life.latest(seen.life))
            self._store(root, entry)
            return entry

    def remember_namespace(
        self, root: str, known: CachedThread, namespace: str, expires_at: int | None
    ) -> None:
        """Cache that a thread's namespace is registered, and when its marker expires."""
        with self._entries.lock:
            entry = self.remember_thread(root, known)
            # Not in a copy: a thread may have thousands, and each subgraph's call adds one.
            entry.namespaces[namespace] = expires_at
            self._store(root, entry)

    def segments(self, pk: str, epoch: bytes, ids: Iterable[bytes]) -> dict[bytes, CachedSegment]:
        """Return those of a partition's segments that were cached while the thread had this epoch.

        A deletion may shorten expiries, and it ends the epoch first. So expiries that were cached under the thread's
        epoch still hold.
        """
        wanted = list(ids)
        found = self._get([(pk, epoch, each) for each in wanted])
        return {
            each: entry for each, entry in zip(wanted, found, strict=True) if isinstance(entry, CachedSegment)
        }

    def remember_segments(self, pk: str, epoch: bytes, segments: Mapping[bytes, CachedSegment]) -> None:
        """Cache segments that were stored or read while the thread had this epoch."""
        for each, segment in segments.items():
            self._store((pk, epoch, each), segment)

    def forget(self, key: _Key) -> None:
        """Drop the entry of a checkpoint or a thread."""
        self._entries.forget(key)

    def forget_thread(self, root: str) -> None:
        """Drop the entries of a thread that has no checkpoint any more, and of the one that was cached last."""
        self.forget(root)
        latest = self._latest.get(root)
        if latest is not None:
            self.forget((root, latest))

    def _get(self, keys: Iterable[_Key]) -> list[CachedCheckpoint | CachedThread | CachedSegment | None]:
        found = [self._entries.get(key) for key in keys]
        meter = events.running_meter.get()
        if meter is not None:
            meter.count_lookups(found)
        return found

    def _store(self, key: _Key, entry: CachedCheckpoint | CachedThread | CachedSegment) -> None:
        self._entries.keep(key, entry, entry.size_bytes)


def _latest(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


class SharedReads:
    """Reads of thread items that operations of one process share. Safe to use from several OS threads.

    An answer is good for everything that was acknowledged before its request was sent. So operations join a read only
    as long as it has not been sent. While one is under way, the next one waits for its end and collects who joins.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._unsent: dict[str, tuple[SharedRead, float]] = {}
        self._sent: dict[str, SharedRead] = {}
        self._lock = threading.Lock()

    def join(self, root: str, now: float, after: float) -> tuple[SharedRead, bool, SharedRead | None]:
        """Join the read of a thread item that was begun after a time and has not been sent yet.

        An older one may never be sent, if its event loop was stopped and kept.

        Returns:
            The read, whether the caller has to send it, and the one that was sent last if it has not ended.
        """
        with self._lock:
            sent, unsent = self._sent.get(root), self._unsent.get(root)
            if unsent is not None and unsent[1] > after:
                return unsent[0], False, sent
            read: SharedRead = Future()
            self._unsent[root] = read, now
            return read, True, sent

    def send(self, root: str, read: SharedRead) -> None:
        """Let nobody join a read any more: the request is sent now."""
        with self._lock:
            self._drop_unsent(root, read)
            self._sent[root] = read

    def end(self, root: str, read: SharedRead, answer: Sequence[Thread | None]) -> None:
        """Give those who joined the answer; without one each of them has to read for itself."""
        with self._lock:
            self._drop_unsent(root, read)
            if self._sent.get(root) is read:
                del self._sent[root]
        read.set_result(answer)

    def _drop_unsent(self, root: str, read: SharedRead) -> None:
        if self._unsent.get(root, (None,))[0] is read:
            del self._unsent[root]


# The storage


def _nothing(_size_bytes: int) -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """All that operations need: the table, codec, cache, clock, id source, and a saver's options."""

    codec: Codec
    cache: Cache
    table: Table
    ttl_seconds: int | None = None
    """The ttl that a new thread gets; `None` for none."""
    share_equal_pieces: bool = True
    """Whether pieces that are stored already are named again, by their digests."""
    clock: Callable[[], float] = time.time
    """Returns the time, in epoch seconds."""
    rng: random.Random = field(default_factory=random.SystemRandom)
    """The source of epochs, tokens and segment ids."""
    owner_from: str | None = None
    """The key of a config whose value names the owner of its thread; `None` keeps new threads out of the directory."""
    owner_key: bytes | None = field(default=None, repr=False)
    """The key of the digests that stand for owners, if the codec encrypts."""
    owner: str | None = None
    """The owner of new threads whose config names none, and whose threads a list shows that is not told."""
    entry: Callable[[], Item] | None = None
    """Makes what the directory holds of a thread that is new in it: its owner. `None` keeps the thread out of it."""
    pinned: CachedThread | None = None
    """The only state of its thread that an operation may store under. `None`: whatever epoch the thread has."""
    on_read: Callable[[int], None] = _nothing
    """Told about how many bytes an operation reads. It may raise, which ends the operation."""

    def counting(self, on_read: Callable[[int], None]) -> Self:
        """Return the storage that tells `on_read` what is read and opened: an estimate first, which is taken back."""
        return replace(self, on_read=on_read, codec=self.codec.counting(on_read))

    def after(self, error: BaseException) -> Storage:
        """Return the storage with which an operation cleans up after an error.

        If a request was retried for all of `retry_seconds` already, the caller must not wait for as long again.
        """
        if not isinstance(error, CheckpointerUnavailableError):
            return self
        return replace(self, table=replace(self.table, sends_once=True))
