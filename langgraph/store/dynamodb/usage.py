"""The items that belong to memories, by kind, without a serializer or a key. For tools, not for agents."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format.items import SEGMENTS, Item, is_expired, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.labels import REGISTER_MARK
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._operations.listed_partitions import listed_items
from langgraph.checkpoint.dynamodb._operations.usage import Sum
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import LocalStorage
from langgraph.store.dynamodb.keys import ENTRIES, MEMORIES, VECTORS, entry_partition

_KINDS = {VECTORS: "vectors", SEGMENTS: "segments of memories", ENTRIES: "partition entries"}


def memory_usage(storage: LocalStorage) -> Op[dict[str, Sum]]:
    """Read every partition of memories, and count its items and bytes by kind."""
    entries = yield from listed_items(storage.table, REGISTER_MARK)
    kinds: dict[str, Sum] = {}
    for pk in sorted({entry_partition(each) for each in entries} | {partition_key(each) for each in entries}):
        query = Query(pk, consistent=False)
        while not query.done:
            for item in (yield from storage.table.query_page(query)):
                kinds.setdefault(_kind(item, storage.clock()), Sum()).add(item_bytes(item))
    return kinds


def _kind(item: Item, now: float) -> str:
    if sort_key(item).startswith(MEMORIES):
        return "deleted and expired memories" if is_expired(item, now) else "memories"
    return _KINDS[sort_key(item)[:2]]
