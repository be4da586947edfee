"""The items of the node cache, by kind, without a serializer or a key. For tools, not for agents."""

from __future__ import annotations

from langgraph.cache.dynamodb.entries import ENTRIES
from langgraph.checkpoint.dynamodb._format.items import Item, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK
from langgraph.checkpoint.dynamodb._operations.listed_partitions import listed_items
from langgraph.checkpoint.dynamodb._operations.usage import Sum, usage_by_kind
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage


def cache_usage(storage: Storage) -> Op[dict[str, Sum]]:
    """Read every partition of the node cache, and count its items and bytes by kind."""
    markers = yield from listed_items(storage.table, CACHE_MARK)
    return (yield from usage_by_kind(storage.table, map(partition_key, markers), _kind))


def _kind(item: Item) -> str:
    return "cached nodes" if sort_key(item).startswith(ENTRIES) else "cache markers"
