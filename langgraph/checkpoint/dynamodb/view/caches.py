"""The caches of what was read and decoded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .._runtime.cache import LruCache

# Bytes of segments' plaintexts, and of serialized values. Decoded values take several times as much memory.
_SEGMENT_BYTES_MAX = 256 * 1024 * 1024
_VALUE_BYTES_MAX = 32 * 1024 * 1024


class Caches:
    """The caches that all threads of a session share."""

    def __init__(self) -> None:
        """Start empty."""
        self.segments: LruCache[Hashable, bytes] = LruCache(_SEGMENT_BYTES_MAX)
        self.values: LruCache[Hashable, Any] = LruCache(_VALUE_BYTES_MAX)
        self.objects: LruCache[Hashable, Any] = LruCache(_VALUE_BYTES_MAX)
        """Messages and other objects, which successive values often share."""
