"""Listings: for the search of the next page, all that the searches before it have read and not returned.

Who reads a long list page by page, by `limit` and `offset`, would read all of it for each page. So a store keeps what a
full page has left, for a few seconds. The next page goes on from there, and so fits the one before, whatever other
processes store meanwhile. What this process stores or deletes drops it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process

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
        self._bytes_max = bytes_max
        start_in_every_process(self)

    def start(self) -> None:
        """Start with none; also after a fork."""
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[L, int]] = {}
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
            return self._kept.pop((search, returned), (None,))[0]

    def keep(self, search: Hashable, returned: int, listing: L, now: float) -> None:
        """Keep what is left of a listing."""
        if not self._bytes_max:
            return
        size = max(_LISTING_BYTES_MIN, listing.size_bytes)
        with self._lock:
            self._kept.pop((search, returned), None)
            if size <= self._bytes_max:
                self._kept[search, returned] = listing, size
            self._forget_bad(now)
            while sum(each for _, each in self._kept.values()) > self._bytes_max:
                del self._kept[next(iter(self._kept))]

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
        self._kept = {key: each for key, each in self._kept.items() if self._is_good(each[0], now)}

    def _is_good(self, listing: L, now: float) -> bool:
        since = self._changes - listing.changes_before
        if since > len(self._changed) or now - listing.read_at > LISTING_SECONDS:
            return False
        changed = list(self._changed)[len(self._changed) - since :]
        return not any(_overlap(listing.namespace, each) for each in changed)


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether one of two namespaces is under the other."""
    return all(label == another for label, another in zip(one, other, strict=False))
