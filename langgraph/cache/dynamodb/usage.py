"""The items of the node cache, by kind, without a serializer or a key. For tools, not for agents."""

from __future__ import annotations

from langgraph.cache.dynamodb.entries import ENTRIES
from langgraph.checkpoint.dynamodb._format.items import partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._operations.listed_partitions import listed_items
from langgraph.checkpoint.dynamodb._operations.usage import Sum
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage


def cache_usage(storage: LocalStorage) -> Op[dict[str, Sum]]:
    """Read every partition of the node cache, and count its items and bytes by kind."""
    markers = yield from listed_items(storage.table, CACHE_MARK)
    kinds: dict[str, Sum] = {}
    for pk in sorted({partition_key(each) for each in markers}):
        query = Query(pk, consistent=False)
        while not query.done:
            for item in (yield from storage.table.query_page(query)):
                kind = "cached nodes" if sort_key(item).startswith(ENTRIES) else "cache markers"
                kinds.setdefault(kind, Sum()).add(item_bytes(item))
    return kinds
