"""The storage that the store's operations work with, and what it holds beside a table: listings, and a vector engine.

A *listing* has all that the searches for earlier pages have read and not returned. Who reads a long list page by page,
by `limit` and `offset`, would read all of it for each page. So a store keeps what a full page has left, for a few
seconds. The next page goes on from there, and so fits the one before, whatever other processes store meanwhile. What
this process stores or deletes drops it.
"""

import threading
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from langgraph.checkpoint.dynamodb._format.limits import SEARCH_BYTES_MAX
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process
from langgraph.checkpoint.dynamodb._runtime.storage import Cache, LruCache, Storage


@dataclass(frozen=True)
class Vector:
    """A vector for an engine to keep."""

    id: str
    """Unique. A new value of a memory has new ids."""
    namespace: tuple[str, ...]
    embedding: Sequence[float]


@runtime_checkable
class VectorEngine(Protocol):
    """Keeps vectors and finds similar ones. The methods block, and may be called from several OS threads.

    An engine may be late, and may keep vectors that were deleted or have expired: the store returns a memory only if
    its present value has the vector. It must not drop a vector that it was given.
    """

    def put(self, vectors: Sequence[Vector]) -> None:
        """Keep vectors. A call may be repeated."""

    def delete(self, ids: Sequence[str]) -> None:
        """Forget vectors. Some may not be there."""

    def search(
        self, namespace: tuple[str, ...], embedding: Sequence[float], limit: int
    ) -> Sequence[tuple[str, float]]:
        """Return up to `limit` ids and scores of vectors under a namespace, the most similar ones first.

        Args:
            namespace: The labels that the namespaces begin with, whole ones; `()` for all.
            embedding: The query.
            limit: How many to return. Fewer mean that there are no more.
        """


# How old what is kept may be when a page is returned from it, and how many bytes of memory a store keeps.
LISTING_SECONDS = 5.0
LISTINGS_BYTES_MAX = 32 * 1024 * 1024
# What a listing counts for at least, which bounds their number.
_LISTING_BYTES_MIN = 256 * 1024
# How many changes are remembered. A listing that has seen more is dropped.
_CHANGES_KEPT = 1_000


class Listing(Protocol):
    """The memories that one search has read."""

    namespace: Sequence[str]
    read_at: float
    """In epoch seconds."""
    changes_before: int
    """How many changes this process had made when it was begun."""

    @property
    def size_bytes(self) -> int:
        """The estimated memory of what it has not returned, in bytes."""


L = TypeVar("L", bound=Listing)


class Listings(Generic[L]):
    """The listings of a store, by search and the number of memories that were returned. Safe to use from OS threads."""

    def __init__(self, bytes_max: int = 0) -> None:
        """Take how many bytes to keep; by default nothing is kept."""
        self._kept: LruCache[Hashable, L] = LruCache(bytes_max)
        start_in_every_process(self)

    def start(self) -> None:
        """Start with none; also after a fork."""
        self._lock = threading.Lock()
        # How many changes this process has made, and the namespaces of the last ones.
        self._changes = 0
        self._changed = deque[Sequence[str]](maxlen=_CHANGES_KEPT)

    def begin(self, listing: L) -> L:
        """Note a listing before anything is read for it, and return it."""
        with self._lock:
            listing.changes_before = self._changes
        return listing

    def take(self, search: Hashable, returned: int, now: float) -> L | None:
        """Return the listing of a search that has returned so many memories, if it is still good."""
        with self._lock:
            self._forget_bad(now)
            listing = self._kept.get((search, returned))
            self._kept.forget((search, returned))
            return listing

    def keep(self, search: Hashable, returned: int, listing: L, now: float) -> None:
        """Keep what is left of a listing."""
        with self._lock:
            self._forget_bad(now)
            self._kept.keep((search, returned), listing, max(_LISTING_BYTES_MIN, listing.size_bytes))

    @contextmanager
    def changing(self, namespaces: Iterable[Sequence[str]]) -> Iterator[None]:
        """Drop the listings in which the block may have stored or deleted something, under one of some namespaces."""
        try:
            yield
        finally:
            with self._lock:
                for each in namespaces:
                    self._changes += 1
                    self._changed.append(each)

    def _forget_bad(self, now: float) -> None:
        for key, listing in self._kept.entries():
            if not self._is_good(listing, now):
                self._kept.forget(key)

    def _is_good(self, listing: L, now: float) -> bool:
        since = self._changes - listing.changes_before
        # A clock that was set back would keep it for as long again.
        is_young = 0 <= now - listing.read_at <= LISTING_SECONDS
        if since > len(self._changed) or not is_young:
            return False
        changed = list(self._changed)[len(self._changed) - since :]
        return not any(_overlap(listing.namespace, each) for each in changed)


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether one of two namespaces is under the other."""
    return all(label == another for label, another in zip(one, other, strict=False))


# A value that is larger, sealed, is kept in segments.
INLINE_VALUE_BYTES_MAX = 100 * 1024
# The maximum size of a value, serialized.
VALUE_BYTES_MAX = 64 * 1024 * 1024
# A sweep removes segments and vectors that no memory names when they are older than this. A put commits within
# UPLOAD_SECONDS_MAX of its segments; only a process that is suspended in between takes longer.
LEFTOVER_SECONDS = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class StoreStorage(Storage):
    """The storage of a store."""

    cache: Cache = field(default_factory=lambda: Cache(0))
    consistent_read: bool = True
    """Whether reads are strongly consistent."""
    search_bytes_max: int = SEARCH_BYTES_MAX
    registered: MutableMapping[str, float] = field(default_factory=dict)
    """When this process has registered a partition, in epoch seconds, by the partition's key."""
    listings: Listings[Any] = field(default_factory=Listings)
    """The memories that searches have left to the next page."""
    engine: VectorEngine | None = None
    """The engine that compares vectors beside the table, if the store was given one."""
