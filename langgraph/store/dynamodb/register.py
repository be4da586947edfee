"""The register of partitions, by which prefixes of less than two labels are searched without a scan.

Each partition has an entry beside those with the same first label, and the index lists the entries of all. A put writes
the entry before the memory, once an hour and process. It is removed from an empty partition when it is a day old, so no
put that relies on it is still under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph.checkpoint.dynamodb._format.items import Item, number
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, RUN_ID, RUN_INDEX, SORT_KEY
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.store.dynamodb import items
from langgraph.store.dynamodb.keys import (
    ENTRIES,
    PARTITION_LABELS,
    REGISTER_SHARDS,
    entry_key,
    entry_partition,
    partition_of,
    register_of,
    shard_of,
)
from langgraph.store.dynamodb.storage import LEFTOVER_SECONDS, REGISTERED_SECONDS, StoreStorage


def register(storage: StoreStorage, partitions: Iterable[str]) -> Op[None]:
    """Register partitions, unless this process has done so within the last hour."""
    now = storage.clock()
    due = [
        pk for pk in dict.fromkeys(partitions) if storage.registered.get(pk, 0.0) <= now - REGISTERED_SECONDS
    ]
    yield from gather([storage.table.send("put_item", Item=_entry(pk, now)) for pk in due])
    storage.registered.update(dict.fromkeys(due, now))


def _entry(pk: str, now: float) -> Item:
    return {**entry_key(pk), RUN_ID: {"S": shard_of(pk)}, items.REGISTERED: {"N": str(int(now))}}


def partitions_under(storage: StoreStorage, namespace: Sequence[str]) -> Op[list[str]]:
    """Return the keys of the partitions that may have memories under a namespace, in order.

    The partitions of one first label are read strongly consistent. The index, which lists all, is not; but a process
    always finds those that it has registered itself.
    """
    if len(namespace) >= PARTITION_LABELS:
        return [partition_of(namespace)]
    if namespace:
        query = Query(register_of(namespace[0]), prefix=ENTRIES, consistent=storage.consistent_read)
        entries = yield from storage.table.query_all(query)
        return sorted({entry_partition(each) for each in entries})
    shards = [
        Query(shard, consistent=False, index=(RUN_INDEX, RUN_ID), attributes=(PARTITION_KEY, SORT_KEY))
        for shard in REGISTER_SHARDS
    ]
    pages = yield from gather([storage.table.query_all(each) for each in shards])
    return sorted({entry_partition(each) for page in pages for each in page} | {*storage.registered})


def unregister(storage: StoreStorage, pk: str) -> Op[None]:
    """Remove the entry of a partition that was found empty, if it is old."""
    key = entry_key(pk)
    entry = yield from storage.table.get(key[PARTITION_KEY]["S"], key[SORT_KEY]["S"])
    registered_at = None if entry is None else number(entry, items.REGISTERED)
    if registered_at is not None and registered_at <= storage.clock() - LEFTOVER_SECONDS:
        yield from storage.table.try_delete(key, items.unregister(registered_at))
