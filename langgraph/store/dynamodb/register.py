"""The register of partitions, by which prefixes of less than two labels are searched without a scan.

Each partition has an entry beside those with the same first label, and the index lists the entries of all. A put writes
the entry before the memory, once an hour and process. The entry of a partition with nothing in it but what expires is
removed when it is a day old, so no put that relies on it is still under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item, number
from langgraph.checkpoint.dynamodb._format.labels import REGISTER_MARK
from langgraph.checkpoint.dynamodb._format.limits import PAGE_ITEMS_FIRST
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._operations.listed_partitions import ensure_listed, listed_items
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.store.dynamodb import keys, memory_items
from langgraph.store.dynamodb.storage import LEFTOVER_SECONDS, StoreStorage


def register(storage: StoreStorage, partitions: Iterable[str]) -> Op[None]:
    """Register partitions, unless this process has done so within the last hour."""
    now = storage.clock()

    def entry(pk: str) -> Item:
        return {**keys.entry_key(pk), memory_items.REGISTERED: {"N": str(int(now))}}

    yield from ensure_listed(storage.table, REGISTER_MARK, partitions, entry, storage.registered, now)


def partitions_under(storage: StoreStorage, namespace: Sequence[str]) -> Op[list[str]]:
    """Return the keys of the partitions that may have memories under a namespace, in order.

    The partitions of one first label are read strongly consistent. The index, which lists all, is not; but a process
    always finds those that it has registered itself.
    """
    if len(namespace) >= keys.PARTITION_LABELS:
        return [keys.partition_of(namespace)]
    if namespace:
        query = Query(keys.register_of(namespace[0]), prefix=keys.ENTRIES, consistent=storage.consistent_read)
        entries = yield from storage.table.query_all(query)
        return sorted({keys.entry_partition(each) for each in entries})
    entries = yield from listed_items(storage.table, REGISTER_MARK)
    return sorted({keys.entry_partition(each) for each in entries} | {*storage.registered})


def unregister(storage: StoreStorage, pk: str) -> Op[None]:
    """Remove the entry of a partition, if it is old, and nothing is left there but what has expired."""
    query = Query(
        pk,
        first_page=PAGE_ITEMS_FIRST,
        attributes=(PARTITION_KEY, SORT_KEY, *memory_items.LIVE_ATTRIBUTES),
    )
    while not query.done:
        page = yield from storage.table.query_page(query)
        if not all(items.is_expired(each, storage.clock()) for each in page):
            return
    key = keys.entry_key(pk)
    entry = yield from storage.table.get(key[PARTITION_KEY]["S"], key[SORT_KEY]["S"])
    registered_at = None if entry is None else number(entry, memory_items.REGISTERED)
    if registered_at is not None and registered_at <= storage.clock() - LEFTOVER_SECONDS:
        yield from storage.table.try_delete(key, memory_items.unregister(registered_at))
