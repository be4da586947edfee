"""Memories by namespace, in pages in the order of their keys. Nothing here scans the table, or renews an expiry.

The first two labels of a namespace name its partition, and the register of partitions lists these. What is below them
is told by the memories themselves, so no request reads more than a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.dynamodb._format.items import Item, sort_key
from langgraph.checkpoint.dynamodb._format.labels import MEMORIES_MARK, parse_labels
from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime.requests import Query
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from langgraph.checkpoint.dynamodb.errors import (
    CheckpointerError,
    CheckpointerInputError,
    CheckpointNotFoundError,
)
from langgraph.checkpoint.dynamodb.view.documents import ListedMemory, MemoriesDocument, Namespaces
from langgraph.checkpoint.dynamodb.view.nodes import Shower
from langgraph.store.dynamodb.keys import (
    MEMORIES,
    PARTITION_LABELS,
    address_of,
    after,
    parse_address,
    partition_of,
    path_prefix,
)
from langgraph.store.dynamodb.memory_items import parse_memory
from langgraph.store.dynamodb.reads import get, moment, read_value
from langgraph.store.dynamodb.register import partitions_under
from langgraph.store.dynamodb.storage import StoreStorage

_PAGE_MEMORIES = 50
# Deleted and expired memories stay in a partition for a while. A request goes on behind this many of them at most.
_LOOKED_AT_MAX = 1000
_LABELS_MAX = 1000


def store_storage(storage: Storage) -> StoreStorage:
    """Return the storage of a store on the viewer's table, with the saver's key. It reads eventually consistent."""
    return StoreStorage(codec=storage.codec, table=storage.table, consistent_read=False)


def namespaces(storage: StoreStorage, labels: Sequence[str]) -> Op[Namespaces]:
    """Return the next label of the namespaces below none or one label."""
    if len(labels) >= PARTITION_LABELS:
        msg = f"namespace {list(labels)!r} has {len(labels)} labels; its memories tell what is below it"
        raise CheckpointerInputError(msg)
    keys = yield from partitions_under(storage, labels)
    partitions = [parse_labels(each.removesuffix(MEMORIES_MARK)) for each in keys]
    found = sorted({each[len(labels)] for each in partitions if len(each) > len(labels)})
    return Namespaces(labels=found[:_LABELS_MAX], more=len(found[_LABELS_MAX:]))


def memories(storage: StoreStorage, labels: Sequence[str], start: str | None) -> Op[MemoriesDocument]:
    """Return a page of the memories under a namespace; of one label, those that have no second one.

    Raises:
        CheckpointerInputError: There is no label, or `start` is not from an earlier page.
    """
    if not labels:
        msg = "a namespace has at least one label; give those of the memories that you look for"
        raise CheckpointerInputError(msg)
    prefix = path_prefix(MEMORIES, labels)
    if start is not None and not start.startswith(prefix):
        msg = f"the parameter 'after' is {start!r}; give the one of an earlier page of this namespace"
        raise CheckpointerInputError(msg)
    query = Query(
        partition_of(labels),
        between=(start or prefix, after(prefix)),
        consistent=storage.consistent_read,
        first_page=_PAGE_MEMORIES,
    )
    found, last, looked_at, shower = list[ListedMemory](), start, 0, Shower()
    while not query.done and len(found) < _PAGE_MEMORIES and looked_at < _LOOKED_AT_MAX:
        page = [each for each in (yield from storage.table.query_page(query)) if sort_key(each) != start]
        shown = [_shown(storage, each, shower) for each in page]
        found += [each for each in shown if each is not None]
        looked_at += len(page)
        last = sort_key(page[-1]) if page else last
    return MemoriesDocument(memories=found, looked_at=looked_at, after=None if query.done else last)


def _shown(storage: StoreStorage, item: Item, shower: Shower) -> ListedMemory | None:
    """Return a memory, with its value if that is in its item; `None` for one that has been deleted or has expired."""
    address = parse_address(item)
    document = ListedMemory(
        namespace=list(address.namespace),
        key=address.key,
        revision=None,
        created_at=None,
        updated_at=None,
        ttl_seconds=None,
        expires_at=None,
        vectors=0,
        bytes=item_bytes(item),
        value=None,
        problem=None,
    )
    try:
        memory = parse_memory(item, storage.clock())
        if memory is None:
            return None
        expires_at = in_epoch_seconds(memory.expires_at)
        document["revision"] = memory.revision
        document["created_at"] = moment(memory.created_us).isoformat()
        document["updated_at"] = moment(memory.updated_us).isoformat()
        document["ttl_seconds"] = memory.ttl_seconds
        document["expires_at"] = None if expires_at is None else expires_at.isoformat()
        document["vectors"] = memory.vectors
        if not memory.part.own:
            document["value"] = shower.node(read_value(storage.codec, memory, {}))
    except CheckpointerError as error:
        document["problem"] = str(error)
    return document


def memory_value(storage: StoreStorage, labels: Sequence[str], key: str) -> Op[dict[str, Any]]:
    """Read the value of one memory, from wherever it is stored.

    Raises:
        CheckpointNotFoundError: There is no such memory.
    """
    [loaded] = yield from get(storage, [address_of(labels, key)])
    if loaded is None:
        msg = f"namespace {list(labels)!r} has no memory {key!r}; it may have expired. Look at the namespace again"
        raise CheckpointNotFoundError(msg)
    return loaded.value
