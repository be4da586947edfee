"""Entries of the node cache: one item each, in a partition of its namespace.

    entry         PK label/…/%K#   SK K#esc(key), with a cipher K# and a keyed digest: LangGraph's key is a hash of the
                                   input, by which short inputs could be guessed
    cache marker  PK the same      SK R            found by the index, so that all entries can be cleared without a scan

A marker is written before the first entry, once an hour and process, and stays: there is one for each node.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias, TypeVar

from langgraph.cache.base import FullKey, Namespace

from langgraph.checkpoint.dynamodb._format import content, items, limits, pricing, schema
from langgraph.checkpoint.dynamodb._format.codec import Codec, rough_bytes
from langgraph.checkpoint.dynamodb._format.items import Item
from langgraph.checkpoint.dynamodb._format.labels import CACHE_MARK, label_path
from langgraph.checkpoint.dynamodb._operations.listed_partitions import ensure_listed, listed
from langgraph.checkpoint.dynamodb._runtime.events import running_meter
from langgraph.checkpoint.dynamodb._runtime.options import check_ttl
from langgraph.checkpoint.dynamodb._runtime.requests import Query, Table, grouped
from langgraph.checkpoint.dynamodb._runtime.steps import Op, gather, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError

logger = logging.getLogger(__name__)

# An item has at most 400 KB. A value that is larger, sealed, is not cached.
ENTRY_BYTES_MAX = 390 * 1024
ENTRIES = "K#"
_MARKER = "R"
# How many namespaces are cleared side by side.
_CLEARED_AT_ONCE = 100
# Before the content, sealed with it: when the value expires, in epoch microseconds; 0 for never.
_ENDS_BYTES = 8

T = TypeVar("T")
Values: TypeAlias = Mapping[FullKey, tuple[Any, int | None]]


@dataclass(frozen=True, kw_only=True)
class CacheStorage:
    """The table and the codec for the operations of a cache."""

    codec: Codec
    table: Table
    consistent_read: bool
    prefix: tuple[str, ...]
    """Labels in front of every namespace."""
    owner_key: bytes | None = field(default=None, repr=False)
    """The key of the digests that stand for the keys of entries, if the codec encrypts."""
    clock: Callable[[], float] = time.time
    marked: MutableMapping[str, float] = field(default_factory=dict)
    """When this process has marked a namespace, in epoch seconds, by its partition's key."""

    def key(self, full_key: FullKey) -> Item:
        """Return the key of an entry.

        Raises:
            CheckpointerInputError: DynamoDB cannot store it.
            CheckpointerConfigurationError: The codec encrypts, and there is no `owner_key`.
        """
        key = entry_key(self.prefix, full_key)
        if self.codec.encrypts:
            place = "".join((items.partition_key(key), items.sort_key(key)))
            digest = blake2b(place.encode(), key=checked_owner_key(self.owner_key), digest_size=16)
            key[schema.SORT_KEY] = {"S": ENTRIES + digest.hexdigest()}
        return key


def checked_owner_key(owner_key: bytes | None) -> bytes:
    """Return the key of the digests of a cache that encrypts; raise if it has none."""
    if owner_key is None:
        raise CheckpointerConfigurationError(
            "the cache encrypts, and has no owner_key, so the keys of its entries, which are hashes of inputs, would be"
            " readable in the table; pass owner_key= with 16 to 64 secret bytes, the same in every process"
        )
    return owner_key


def get(storage: CacheStorage, keys: Sequence[FullKey]) -> Op[dict[FullKey, Any]]:
    """Read the values that are cached. What cannot be read is logged and left out."""
    wanted: dict[tuple[str, str], FullKey] = {}
    for namespace, name in keys:
        full_key = (tuple(namespace), name)
        item_key = yield from attempt(work(partial(storage.key, full_key)), "read", full_key)
        if item_key is not None:
            wanted[items.partition_key(item_key), items.sort_key(item_key)] = full_key
    item_keys = [items.key(pk, sk) for pk, sk in wanted]
    read = storage.table.batch_get(item_keys, consistent=storage.consistent_read)
    found = yield from attempt(read, "read", keys)
    values: dict[FullKey, Any] = {}
    for item in found or []:
        full_key = wanted[items.partition_key(item), items.sort_key(item)]
        opened = yield from attempt(
            work(partial(open_entry, storage, item), pricing.item_bytes(item)), "read", full_key
        )
        if opened:
            values[full_key] = opened[0]
    return values


def open_entry(storage: CacheStorage, item: Item) -> list[Any]:
    """Return the value of an entry, in a list; an empty one if it has expired."""
    raw = storage.codec.open(items.binary(item, items.DATA), item, items.DATA)
    ends_us = int.from_bytes(raw[:_ENDS_BYTES], "big")
    if 0 < ends_us <= storage.clock() * 1_000_000:
        return []
    return [content.unpack_typed(storage.codec, item, raw[_ENDS_BYTES:])]


def put(storage: CacheStorage, values: Values) -> Op[None]:
    """Cache values. What cannot be stored is logged and left out."""
    new: dict[tuple[str, str], Item] = {}
    for full_key, (value, ttl_seconds) in values.items():
        item = yield from attempt(_composed(storage, full_key, value, ttl_seconds), "store", full_key)
        if item is not None:
            new[items.partition_key(item), items.sort_key(item)] = item
    yield from attempt(store(storage, list(new.values())), "store", list(values))


def store(storage: CacheStorage, new: Sequence[Item]) -> Op[None]:
    """Store entries, after the markers of their namespaces."""
    partitions = [items.partition_key(item) for item in new]
    marker = partial(items.key, sk=_MARKER)
    yield from ensure_listed(storage.table, CACHE_MARK, partitions, marker, storage.marked, storage.clock())
    yield from storage.table.batch_write(puts=new)


def attempt(operation: Op[T], verb: str, what: object) -> Op[T | None]:
    """Run an operation; log its error and return `None`: a cache that fails must not fail the run."""
    try:
        return (yield from operation)
    except Exception as error:  # noqa: BLE001 - whatever it is, the node can run.
        logger.warning("The node cache could not %s %s: %s: %s", verb, what, type(error).__name__, error)
        meter = running_meter.get()
        if meter is not None:
            meter.error = meter.error or error
        return None


def _composed(storage: CacheStorage, full_key: FullKey, value: Any, ttl_seconds: float | None) -> Op[Item]:
    return (yield from work(partial(entry_of, storage, full_key, value, ttl_seconds), rough_bytes(value)))


def entry_of(storage: CacheStorage, full_key: FullKey, value: Any, ttl_seconds: float | None) -> Item:
    """Return the entry of a value.

    Raises:
        ValueError: The ttl is out of range, or the value or its key is too large.
        CheckpointSerializationError: The serializer cannot write the value.
    """
    if ttl_seconds is not None:
        check_ttl("ttl", ttl_seconds, at_least=0)
    item_key = storage.key(full_key)
    ends = None if ttl_seconds is None else storage.clock() + ttl_seconds
    raw = (0 if ends is None else int(ends * 1_000_000)).to_bytes(_ENDS_BYTES, "big")
    raw += content.pack_typed(*storage.codec.dumps(value, f"the value of node cache entry {full_key}"))
    beside = pricing.item_bytes(items.with_expiry(item_key, None if ends is None else math.ceil(ends)))
    sealed = storage.codec.seal(raw, item_key, items.DATA, beside=beside + len(items.DATA))
    if len(sealed) > ENTRY_BYTES_MAX:
        raise ValueError(f"it has {len(sealed)} bytes, compressed, over the limit of {ENTRY_BYTES_MAX}")
    return items.with_expiry(
        {**item_key, items.DATA: {"B": sealed}}, None if ends is None else math.ceil(ends)
    )


def clear(storage: CacheStorage, namespaces: Sequence[Namespace] | None) -> Op[None]:
    """Delete the entries of namespaces, or of all under the prefix."""
    if namespaces is None:
        partitions = yield from _marked_partitions(storage)
    else:
        partitions = [_partition(storage.prefix, each) for each in namespaces]
    for group in grouped(dict.fromkeys(partitions), count_max=_CLEARED_AT_ONCE):
        yield from gather([_clear(storage, pk) for pk in group])


def _marked_partitions(storage: CacheStorage) -> Op[list[str]]:
    prefix = label_path(storage.prefix)
    found = yield from listed(storage.table, CACHE_MARK, items.partition_key, prefix)
    # A process finds what it has marked itself, even if the index does not have it yet.
    return sorted(found | {pk for pk in [*storage.marked] if pk.startswith(prefix)})


def _clear(storage: CacheStorage, pk: str) -> Op[None]:
    query = Query(pk, prefix=ENTRIES, attributes=(schema.PARTITION_KEY, schema.SORT_KEY))
    while not query.done:
        page = yield from storage.table.query_page(query)
        yield from storage.table.batch_write(deletes=page)


def _partition(prefix: Sequence[str], namespace: Sequence[str]) -> str:
    pk = label_path([*prefix, *namespace]) + CACHE_MARK
    return items.checked_key(pk, limits.PARTITION_KEY_BYTES_MAX, "the namespace")


def entry_key(prefix: Sequence[str], full_key: FullKey) -> Item:
    """Return the key of an entry; raise `CheckpointerInputError` if DynamoDB cannot store it."""
    namespace, name = full_key
    sk = items.checked_key(ENTRIES + items.escape(name, "key"), limits.SORT_KEY_BYTES_MAX, "the key")
    return items.key(_partition(prefix, namespace), sk)
