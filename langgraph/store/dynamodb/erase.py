"""`delete_namespace`, and `sweep_ttl`: delete all memories under a namespace, or those that have expired.

Each memory's item goes first, if it still has the value that was read, and then its segments and vectors. Both also
remove the segments and vectors that no memory names: a put that died, or a call that died after its commit, has left
them. A put that is under way may be about to name them, if they are young. So a sweep leaves young ones, and an erasure
first leaves a tombstone in the place of their memory, over which no put commits whose segments are older.

Last goes the partition's entry in the register, if nothing else is left. Every step may be repeated, so either can be
called again where it ended.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather
from langgraph.checkpoint.dynamodb.errors import CheckpointCorruptionError

from . import keys, memory_items, reads, similarity
from .partitions import partitions_under, unregister
from .put import NewMemory, put
from .resources import LEFTOVER_SECONDS, StoreStorage

logger = logging.getLogger(__name__)

Part: TypeAlias = tuple[int, keys.Address | None]


def remove_under(storage: StoreStorage, namespace: Sequence[str], *, is_erasure: bool) -> Op[int]:
    """Delete every memory under a namespace, or those that have expired; return how many there were."""
    with storage.listings.changing([namespace]):
        removed, _ = yield from remove_part(storage, namespace, is_erasure=is_erasure)
    return removed


def remove_part(
    storage: StoreStorage,
    namespace: Sequence[str],
    after: keys.Address | None = None,
    until: float = math.inf,
    *,
    is_erasure: bool,
) -> Op[Part]:
    """Delete memories under a namespace, in the order of their keys, for a limited time.

    Args:
        storage: The storage.
        namespace: The namespace.
        after: The memory behind which to go on; `None` for the beginning.
        until: When to stop, in epoch seconds.
        is_erasure: Whether to delete every memory, and not only those that have expired.

    Returns:
        How many memories were deleted, and the one behind which to go on; `None` at the end.
    """
    removed = 0
    remove_one = _remove if is_erasure else _remove_expired
    # Whatever the store's option for reads, a deletion misses nothing.
    strong = replace(storage, consistent_read=True)
    partitions = yield from partitions_under(strong, namespace)
    if len(namespace) == 1:
        # Its own partition needs no register: a put that died beside an earlier erasure may not have got there.
        partitions = sorted({*partitions, keys.partition_of(namespace)})
    start = None if after is None else (after.pk, after.sk)
    for pk, between in keys.ranges_from(partitions, keys.path_prefix(keys.MEMORIES, namespace), start):
        query = Query(pk, between=between)
        while not query.done:
            read = yield from storage.table.query_page(query)
            # Only what is behind it, since it may still be there, as a tombstone.
            page = [each for each in read if (pk, items.sort_key(each)) != start]
            removed += sum((yield from gather([remove_one(storage, item) for item in page])))
            if page and storage.clock() >= until:
                return removed, keys.parse_address(page[-1])
        left = yield from _leftovers(storage, pk, namespace, is_erasure=is_erasure)
        yield from _remove_leftovers(storage, left, is_erasure=is_erasure)
        # An erasure removes every entry, also one of a process whose clock is ahead.
        age_seconds = -LEFTOVER_SECONDS if is_erasure else LEFTOVER_SECONDS
        yield from unregister(storage, pk, storage.clock() - age_seconds)
    return removed, None


def _remove(storage: StoreStorage, item: Item) -> Op[bool]:
    """Delete a memory, also if another put replaces it meanwhile, or it is damaged; return whether it lived."""
    try:
        return (yield from _remove_intact(storage, item))
    except CheckpointCorruptionError as error:
        # Otherwise it would keep everything behind it from being erased. Its segments and vectors go as leftovers.
        logger.warning("An erasure deletes a damaged memory: %s", error)
        yield from storage.table.batch_write(deletes=[items.key_of(item)])
        yield from _bury(storage, item, memory_items.TOMBSTONE_SECONDS)
        return True


def _remove_intact(storage: StoreStorage, item: Item) -> Op[bool]:
    now = storage.clock()
    is_live = not items.is_expired(item, now)
    is_tombstone = items.SHOWN_UNTIL in item
    if is_tombstone and (items.expires_at(item) or 0) > now:
        return False
    if memory_items.changed_us(item) <= (now - memory_items.TOMBSTONE_SECONDS) * 1_000_000:
        change = memory_items.remove_revision(memory_items.revision_of(item))
        if (yield from storage.table.try_delete(items.key_of(item), change)) is None:
            yield from similarity.remove(storage, (yield from reads.belongings(storage, item)))
            return is_live
    if not is_tombstone:
        # The put of so new a memory may be sent twice, and arrive again: a tombstone keeps it out.
        yield from _bury(storage, item, memory_items.TOMBSTONE_SECONDS)
    return is_live


def _bury(storage: StoreStorage, item_key: Item, kept_seconds: int) -> Op[None]:
    yield from put(storage, NewMemory(keys.parse_address(item_key), None, kept_seconds=kept_seconds))


def _remove_expired(storage: StoreStorage, item: Item) -> Op[bool]:
    """Delete a memory that has expired, unless a put or a read comes first; return whether it was deleted."""
    now = storage.clock()
    end = items.expires_at(item)
    if end is None or end > now:
        return False
    change = memory_items.remove_expired(memory_items.revision_of(item), now)
    if (yield from storage.table.try_delete(items.key_of(item), change)) is not None:
        return False
    yield from similarity.remove(storage, (yield from reads.belongings(storage, item)))
    return memory_items.VALUE in item


# Segments and vectors that no memory names


@dataclass(frozen=True)
class _Leftover:
    """A segment or a vector that no memory named when it was read."""

    key: Item
    memory_key: Item
    """Of the memory that it belongs to."""
    created_at: int


def _leftovers(
    storage: StoreStorage, pk: str, namespace: Sequence[str], *, is_erasure: bool
) -> Op[list[_Leftover]]:
    """Read the segments and vectors under a namespace that no memory names."""
    prefix = keys.path_prefix(keys.MEMORIES, namespace)
    attributes = (PARTITION_KEY, SORT_KEY, items.CREATED_AT, memory_items.PART_OF)
    kinds = (items.SEGMENTS, keys.path_prefix(keys.VECTORS, namespace))
    parts = yield from gather(
        [storage.table.query_all(Query(pk, prefix=each, attributes=attributes)) for each in kinds]
    )
    read = [(each, _owner(each)) for kind in parts for each in kind]
    found = [(part, *owner) for part, owner in read if owner is not None]
    # After the parts: a memory that is committed meanwhile names them.
    query = Query(pk, prefix=prefix, attributes=(PARTITION_KEY, SORT_KEY, memory_items.REVISION))
    memories = (yield from storage.table.query_all(query)) if found else []
    named = {(items.sort_key(each), memory_items.revision_of(each)) for each in memories}
    left = [
        _Leftover(items.key_of(part), items.key(pk, sk), created_at)
        for part, sk, revision, created_at in found
        if sk.startswith(prefix) and (sk, revision) not in named
    ]
    # What is damaged may be of any memory of the partition, so only an erasure of all of them removes it.
    if is_erasure and len(namespace) <= keys.PARTITION_LABELS:
        left += [
            _Leftover(items.key_of(part), items.key_of(part), 0) for part, owner in read if owner is None
        ]
    return left


def _owner(part: Item) -> tuple[str, str, int] | None:
    """Return the sort key of the memory that a segment or a vector belongs to, its revision, and when it was stored.

    Returns:
        `None` if the segment or vector is damaged: it keeps no other from being removed.
    """
    try:
        said = items.text(part, memory_items.PART_OF)
        sk, revision = keys.parse_vector(part) if said is None else keys.parse_part_of(part, said)
        return sk, revision, items.number(part, items.CREATED_AT) or 0
    except CheckpointCorruptionError as error:
        logger.warning("A part of a memory is damaged: %s", error)
        return None


def _remove_leftovers(storage: StoreStorage, left: Sequence[_Leftover], *, is_erasure: bool) -> Op[None]:
    """Remove leftovers that no put can be about to name.

    An erasure also removes young ones, after a tombstone for each memory that a put may be about to commit with them.
    """
    old_at = storage.clock() - LEFTOVER_SECONDS
    gone = left if is_erasure else [each for each in left if each.created_at <= old_at]
    young = {items.sort_key(each.memory_key): each.memory_key for each in gone if each.created_at > old_at}
    yield from gather([_bury(storage, each, LEFTOVER_SECONDS) for each in young.values()])
    yield from similarity.remove(storage, [each.key for each in gone])
