"""The storage that the operations of the store work with, and their limits."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.dynamodb._format.limits import SEARCH_BYTES_MAX
from langgraph.checkpoint.dynamodb._runtime.cache import Cache
from langgraph.checkpoint.dynamodb._runtime.storage import Storage

from .listings import Listings
from .vector_engine import VectorEngine

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
