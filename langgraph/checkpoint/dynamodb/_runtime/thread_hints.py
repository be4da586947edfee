"""Thread hints: what one process knows of a thread, as a request or an answer takes it to another.

A client of the gateway keeps the hint of the last answer in its cache, and sends it with the next request about the
thread. The service puts it into a cache for this one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from langgraph.checkpoint.dynamodb._format.items import Partition
from langgraph.checkpoint.dynamodb._runtime.cache import Cache, CachedThread

Hint: TypeAlias = Mapping[str, Any]


def hint_of(cache: Cache, partition: Partition, thread: CachedThread | None) -> Hint | None:
    """Return the hint about a thread, with what is known of one of its namespaces; `None` if it is not known."""
    if thread is None:
        return None
    hint: dict[str, Any] = {"epoch": thread.epoch, "ttl_seconds": thread.ttl_seconds}
    known = cache.namespaces(partition.root, thread.epoch)
    if partition.namespace in known:
        hint |= {"registered": True, "registered_until": known[partition.namespace]}
    return hint


def remember_hint(cache: Cache, partition: Partition, hint: Hint | None) -> None:
    """Cache what a hint says."""
    if hint is None:
        return
    thread = cache.remember_thread(partition.root, hint["epoch"], hint["ttl_seconds"])
    if hint.get("registered"):
        cache.remember_namespace(partition.root, thread, partition.namespace, hint["registered_until"])


def thread_of(hint: Hint | None) -> CachedThread | None:
    """Return the thread of a hint."""
    return None if hint is None else CachedThread(hint["epoch"], hint["ttl_seconds"])
