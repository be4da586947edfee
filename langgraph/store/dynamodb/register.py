"""The register of partitions, by which prefixes of less than two labels are searched without a scan.

Each partition has an entry beside those with the same first label, and the index lists the entries of all. A put needs
the entry before its memory, so that none is there that no search finds, and after it: an erasure removes the entry of
a partition in which it found nothing. It first marks the entry, and only then looks for the last time. So a put that
comes too late for that look finds the mark, or no entry, and registers the partition again. What a put leaves that dies
meanwhile may have no entry. So a sweep, which may run at any time, removes only entries that are a day old.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.labels import REGISTER_MARK
from langgraph.checkpoint.dynamodb._format.limits import PAGE_ITEMS_FIRST
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._operations.listed_partitions import ensure_listed, listed_items
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op

from . import keys, memory_items
from .storage import StoreStorage


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


def stay_registered(storage: StoreStorage, pk: str) -> Op[None]:
    """Register a partition again, in which a memory was stored, if an erasure has removed its entry or is about to."""
    key = keys.entry_key(pk)
    entry = yield from storage.table.get(key[PARTITION_KEY]["S"], key[SORT_KEY]["S"])
    if entry is None or memory_items.LEAVING in entry:
        storage.registered.pop(pk, None)
        yield from register(storage, [pk])


def unregister(storage: StoreStorage, pk: str, until: float) -> Op[None]:
    """Remove the entry of a partition, if nothing is left there but what has expired.

    Args:
        storage: The storage.
        pk: The key of the partition.
        until: An entry that was written later stays, in epoch seconds.
    """
    if not (yield from _is_empty(storage, pk)):
        return
    mark = storage.rng.randbytes(8)
    key = keys.entry_key(pk)
    if (yield from storage.table.try_update(key, memory_items.leave(mark, int(until)))) is not None:
        return
    if (yield from _is_empty(storage, pk)):
        storage.registered.pop(pk, None)
        yield from storage.table.try_delete(key, memory_items.unregister(mark))


def _is_empty(storage: StoreStorage, pk: str) -> Op[bool]:
    query = Query(
        pk,
        first_page=PAGE_ITEMS_FIRST,
        attributes=(PARTITION_KEY, SORT_KEY, *memory_items.LIVE_ATTRIBUTES),
    )
    while not query.done:
        page = yield from storage.table.query_page(query)
        if not all(items.is_expired(each, storage.clock()) for each in page):
            return False
    return True
