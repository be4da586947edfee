"""Bounded caches of what was read and decoded. The least recently used entries are dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Bytes of segments' plaintexts, and of serialized values. Decoded values take several times as much memory.
_SEGMENT_BYTES_MAX = 256 * 1024 * 1024
_VALUE_BYTES_MAX = 32 * 1024 * 1024


class LruCache(Generic[T]):
    """A bounded cache that several OS threads may share. It always keeps the entry that was added last."""

    def __init__(self, size_max: int) -> None:
        """Start empty, with room for entries of this size together."""
        self._size_max = size_max
        self._size = 0
        self._things: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, /) -> T | None:
        """Return an entry and mark it as used, or None if it is not cached."""
        with self._lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return self._things[key][0]

    def keep(self, key: Hashable, thing: T, size: int, /) -> None:
        """Add an entry, and drop those for which there is no more room."""
        with self._lock:
            if key in self._things:
                self._size -= self._things.pop(key)[1]
            self._things[key] = (thing, size)
            self._size += size
            while self._size > self._size_max and len(self._things) > 1:
                self._size -= self._things.popitem(last=False)[1][1]


class Caches:
    """The caches that all threads of a session share."""

    def __init__(self) -> None:
        """Start empty."""
        self.segments: LruCache[bytes] = LruCache(_SEGMENT_BYTES_MAX)
        self.values: LruCache[Any] = LruCache(_VALUE_BYTES_MAX)
        self.objects: LruCache[Any] = LruCache(_VALUE_BYTES_MAX)
        """Messages and other objects, which successive values often share."""
