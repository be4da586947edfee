"""Thread hints: a client's knowledge of a thread, as the cache of the one request that carries it."""

from __future__ import annotations

import sys
from typing import Any

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._runtime.cache import Cache, CachedThread
from langgraph.checkpoint.dynamodb.gateway import wire


def cache_of(shared: Cache, partition: Partition, hint: wire.ThreadHint | None) -> Cache:
    """Return a cache with the client's hint, and with the facts about the table from the service's own cache."""
    cache = Cache(sys.maxsize, shared.facts)
    if hint is not None:
        known = cache.remember_thread(partition.root, hint.epoch, hint.ttl_seconds)
        if hint.registered:
            cache.remember_namespace(partition.root, known, partition.namespace, hint.registered_until)
    return cache


def thread_of(hint: wire.ThreadHint | None) -> CachedThread | None:
    """Return the thread of a client's hint."""
    return None if hint is None else CachedThread(hint.epoch, hint.ttl_seconds)


def hint_of(cache: Cache, partition: Partition, thread: CachedThread | None) -> dict[str, Any] | None:
    """Return the hint that the client should send from now on."""
    if thread is None:
        return None
    hint: dict[str, Any] = {"epoch": thread.epoch, "ttl_seconds": thread.ttl_seconds}
    known = cache.namespaces(partition.root, thread.epoch)
    if partition.namespace in known:
        hint |= {"registered": True, "registered_until": known[partition.namespace]}
    return hint
