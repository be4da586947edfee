"""The items that belong to memories, by kind, without a serializer or a key. For tools, not for agents."""

from __future__ import annotations

from functools import partial

from langgraph.checkpoint.dynamodb._format.items import SEGMENTS, Item, is_expired, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.labels import REGISTER_MARK
from langgraph.checkpoint.dynamodb._operations.listed_partitions import listed_items
from langgraph.checkpoint.dynamodb._operations.usage import Sum, usage_by_kind
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.store.dynamodb.keys import ENTRIES, MEMORIES, VECTORS, entry_partition

_KINDS = {VECTORS: "vectors", SEGMENTS: "segments of memories", ENTRIES: "partition entries"}


def memory_usage(storage: Storage) -> Op[dict[str, Sum]]:
    """Read every partition of memories, and count its items and bytes by kind."""
    entries = yield from listed_items(storage.table, REGISTER_MARK)
    partitions = [*map(entry_partition, entries), *map(partition_key, entries)]
    return (yield from usage_by_kind(storage.table, partitions, partial(_kind, storage.clock())))


def _kind(now: float, item: Item) -> str:
    if sort_key(item).startswith(MEMORIES):
        return "deleted and expired memories" if is_expired(item, now) else "memories"
    return _KINDS[sort_key(item)[:2]]
