"""The calls of the node cache. The service stores values as the client serialized them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field

from langgraph.cache.dynamodb import entries
from langgraph.cache.dynamodb.entries import CacheStorage, entry_of, store

from .._format import limits, pricing
from .._format.items import Item, partition_key, sort_key
from .._runtime.steps import Op, work
from ..errors import CheckpointerConfigurationError, CheckpointerError
from . import memory_calls, opaque
from .call import MANY_MAX, Argument, Bytes, Response, named_by, serve
from .serving import Serving, check_begins

if TYPE_CHECKING:
    from ..saver import DynamoDBSaver

# An entry has up to 390 KB, and what does not fit into a response is read, and paid for, again.
_READ_AT_ONCE = 16


def cache_storage(saver: DynamoDBSaver) -> CacheStorage:
    """Return the storage of a node cache on a saver's table, with its cipher, for opaque values."""
    storage = opaque.opaque_storage(saver)
    return CacheStorage(
        codec=storage.codec,
        table=storage.table,
        consistent_read=False,
        prefix=(),
        owner_key=storage.owner_key,
        clock=storage.clock,
        marked=memory_calls.Recent(),
    )


NodeLabels: TypeAlias = Annotated[tuple[str, ...], named_by("nodes")]
CacheSeconds: TypeAlias = Annotated[float, Field(ge=0, le=limits.TTL_SECONDS_MAX)]


@dataclass(frozen=True)
class NodeKey(Argument):
    """A cached node's namespace and key."""

    namespace: NodeLabels
    key: str


@dataclass(frozen=True, kw_only=True)
class CacheEntry(NodeKey):
    """A value to cache. Without a ttl it never expires."""

    type: str
    data: Bytes
    ttl_seconds: CacheSeconds | None = None


@dataclass(frozen=True)
class Refused(Response):
    """Why one of several was not read, or not stored."""

    position: int
    reason: str


@dataclass(frozen=True)
class CachedValues(Response):
    """The values in the order of the keys; null where nothing is cached. `left` are the keys that had no room."""

    values: list[opaque.Value | None]
    refused: list[Refused]
    left: list[int]


@dataclass(frozen=True)
class CachedEntries(Response):
    """All values are cached but those that are refused."""

    refused: list[Refused]


@serve("read", name="cache/get")
def get(it: Serving, keys: Annotated[tuple[NodeKey, ...], Field(max_length=MANY_MAX)]) -> Op[CachedValues]:
    """Read the values that are cached, as many as fit."""
    values: list[opaque.Value | None] = [None] * len(keys)
    refused: list[Refused] = []
    left: list[int] = []
    room = memory_calls.ResponseRoom(it.fullness())
    for start in range(0, len(keys), _READ_AT_ONCE):
        group = range(start, min(start + _READ_AT_ONCE, len(keys)))
        if room.is_full():
            left += group
            continue
        found = yield from _read(it, [keys[each] for each in group])
        for position, item in zip(group, found, strict=True):
            if item is None:
                continue
            if room.is_full():
                left.append(position)
                continue
            opened = yield from _tried(work(partial(_open, it.cache, item), pricing.item_bytes(item)))
            if isinstance(opened, str):
                refused.append(Refused(position, opened))
            elif opened is not None:
                values[position] = opaque.Value(*opened)
                it.held(len(opened.data))
                room.size_bytes += len(opened.data)
    return CachedValues(values, refused, left)


def _read(it: Serving, keys: Sequence[NodeKey]) -> Op[list[Item | None]]:
    wanted = [it.cache.key((each.namespace, each.key)) for each in keys]
    places = [(partition_key(each), sort_key(each)) for each in wanted]
    unique = dict(zip(places, wanted, strict=True))
    found = yield from it.cache.table.batch_get(list(unique.values()), consistent=it.cache.consistent_read)
    it.held(sum(map(pricing.item_bytes, found)))
    by_key = {(partition_key(item), sort_key(item)): item for item in found}
    return [by_key.get(each) for each in places]


def _open(storage: CacheStorage, item: Item) -> opaque.OpaqueValue | None:
    return next(iter(entries.open_entry(storage, item)), None)


@serve("write", name="cache/set", operation="set")
def set_entries(
    it: Serving, entries: Annotated[tuple[CacheEntry, ...], Field(max_length=MANY_MAX)]
) -> Op[CachedEntries]:
    """Cache values."""
    new: dict[tuple[str, str], Item] = {}
    refused: list[Refused] = []
    for position, each in enumerate(entries):
        full_key, value = (each.namespace, each.key), opaque.OpaqueValue(each.type, each.data)
        made = partial(entry_of, it.cache, full_key, value, each.ttl_seconds)
        item = yield from _tried(work(made, len(each.data)))
        if isinstance(item, str):
            refused.append(Refused(position, item))
        else:
            new[partition_key(item), sort_key(item)] = item
    yield from store(it.cache, list(new.values()))
    return CachedEntries(refused)


@serve("write", name="cache/clear")
def clear(
    it: Serving, namespaces: tuple[NodeLabels, ...] | None = None, prefix: NodeLabels | None = None
) -> Op[None]:
    """Delete the values of namespaces, each by itself; null: of all that begin with the prefix."""
    if namespaces is None:
        # Also one that is not given: it is that of all.
        check_begins(prefix or (), it.who.labels)
    return entries.clear(replace(it.cache, prefix=prefix or () if namespaces is None else ()), namespaces)


def _tried(operation: Op[Any]) -> Op[Any]:
    """Run an operation on one value; return why it failed, as a text, if it did."""
    try:
        return (yield from operation)
    except CheckpointerConfigurationError as error:
        # Its message may be about the service's key.
        return f"{type(error).__name__}: the gateway cannot open it"
    except (CheckpointerError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
