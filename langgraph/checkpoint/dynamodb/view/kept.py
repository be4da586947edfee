"""What was read and decoded, kept within bounds: what was used least recently goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

# Of segments' plaintexts, and of the values decoded from them, which take up several times what they did serialized.
_SEGMENT_BYTES_MAX = 256 * 1024 * 1024
_VALUE_BYTES_MAX = 32 * 1024 * 1024


class Shelf(Generic[T]):
    """Things by their keys, up to so many bytes; the one that was kept last always stays. Several threads share it."""

    def __init__(self, bytes_max: int) -> None:
        """Start empty."""
        self._bytes_max = bytes_max
        self._size = 0
        self._things: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, /) -> T | None:
        """What is here, and is used now; None where it is not, or not any more."""
        with self._lock:
            if key not in self._things:
                return None
            self._things.move_to_end(key)
            return self._things[key][0]

    def keep(self, key: Hashable, thing: T, size_bytes: int, /) -> None:
        """Keep something, and let go of what there is no room for."""
        with self._lock:
            if key in self._things:
                self._size -= self._things.pop(key)[1]
            self._things[key] = (thing, size_bytes)
            self._size += size_bytes
            while self._size > self._bytes_max and len(self._things) > 1:
                self._size -= self._things.popitem(last=False)[1][1]


class Segment(NamedTuple):
    """What a segment holds, and how large its item is."""

    content: bytes
    item_bytes: int


class Value(NamedTuple):
    """A value, which may be None, and how many bytes it was read from."""

    value: Any
    size_bytes: int


class Kept:
    """What all threads of a session share the room for."""

    def __init__(self) -> None:
        """Start empty."""
        self.segments: Shelf[Segment] = Shelf(_SEGMENT_BYTES_MAX)
        self.values: Shelf[Value] = Shelf(_VALUE_BYTES_MAX)
        self.objects: Shelf[Any] = Shelf(_VALUE_BYTES_MAX)
        """Messages and other objects, which one value after the other has."""
