"""`delete_namespace`, and `sweep_ttl`: delete all memories under a namespace, or those that have expired.

Each memory's item goes first, if it still has the value that was read, and then its segments and vectors. Both also
remove what puts have left that died: segments and vectors that no memory names, and the entries of empty partitions.
Such leftovers are a day old before they go, since a put may be about to commit what looks like one. Every step may be
repeated, so either can be called again where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.store.dynamodb import memory_items
from langgraph.store.dynamodb.engine import remove
from langgraph.store.dynamodb.keys import MEMORIES, VECTORS, parse_address, path_prefix
from langgraph.store.dynamodb.put import Put, put
from langgraph.store.dynamodb.reads import belongings
from langgraph.store.dynamodb.register import partitions_under, unregister
from langgraph.store.dynamodb.storage import LEFTOVER_SECONDS, TOMBSTONE_SECONDS, StoreStorage


def delete_namespace(storage: StoreStorage, namespace: Sequence[str]) -> Op[int]:
    """Delete every memory under a namespace; return how many there were."""
    return (yield from _through(storage, namespace, _remove))


def sweep_ttl(storage: StoreStorage, namespace: Sequence[str]) -> Op[int]:
    """Delete memories under a namespace that have expired; return how many there were."""
    return (yield from _through(storage, namespace, _remove_expired))


def _through(
    storage: StoreStorage, namespace: Sequence[str], step: Callable[[StoreStorage, Item], Op[bool]]
) -> Op[int]:
    removed = 0
    # Whatever the store's option for reads, a deletion misses nothing.
    strong = replace(storage, consistent_read=True)
    for pk in (yield from partitions_under(strong, namespace)):
        query = Query(pk, prefix=path_prefix(MEMORIES, namespace))
        while not query.done:
            page = yield from storage.table.query_page(query)
            removed += sum((yield from gather([step(storage, item) for item in page])))
        yield from _remove_leftovers(storage, pk)
    return removed


def _remove(storage: StoreStorage, item: Item) -> Op[bool]:
    """Delete a memory, also if another put replaces it meanwhile; return whether it lived."""
    now = storage.clock()
    is_live = not items.is_expired(item, now)
    if memory_items.updated_us(item) <= (now - TOMBSTONE_SECONDS) * 1_000_000:
        change = memory_items.remove_revision(memory_items.revision_of(item))
        if (yield from storage.table.try_delete(items.key_of(item), change)) is None:
            yield from remove(storage, (yield from belongings(storage, item)))
            return is_live
    if is_live:
        # The put of so new a memory may be sent twice, and arrive again: a tombstone keeps it out.
        yield from put(storage, Put(parse_address(item), None))
    return is_live


def _remove_expired(storage: StoreStorage, item: Item) -> Op[bool]:
    """Delete a memory that has expired, unless a put or a read comes first; return whether it was deleted."""
    now = storage.clock()
    end = items.expires_at(item)
    if end is None or end > now:
        return False
    change = memory_items.remove_expired(memory_items.revision_of(item), now)
    if (yield from storage.table.try_delete(items.key_of(item), change)) is not None:
        return False
    yield from remove(storage, (yield from belongings(storage, item)))
    return memory_items.VALUE in item


def _remove_leftovers(storage: StoreStorage, pk: str) -> Op[None]:
    """Remove what no memory of a partition names, and the partition's entry if it is empty, once they are old."""
    kinds = [
        Query(pk, prefix=kind, attributes=(PARTITION_KEY, SORT_KEY, items.CREATED_AT))
        for kind in (items.SEGMENTS, VECTORS)
    ]
    segments, vectors = yield from gather([storage.table.query_all(each) for each in kinds])
    memories = yield from storage.table.query_all(Query(pk, prefix=MEMORIES))
    if not memories:
        yield from unregister(storage, pk)
    old = [
        each
        for each in (*segments, *vectors)
        if (items.number(each, items.CREATED_AT) or 0) <= storage.clock() - LEFTOVER_SECONDS
    ]
    if old:
        named = yield from gather([belongings(storage, each) for each in memories])
        kept = {items.sort_key(each) for keys in named for each in keys}
        yield from remove(storage, [each for each in old if items.sort_key(each) not in kept])
