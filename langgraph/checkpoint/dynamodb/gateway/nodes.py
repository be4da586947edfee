"""The node cache's operations on messages from the wire. The service stores values as the client serialized them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from langgraph.cache.dynamodb import entries
from langgraph.cache.dynamodb.entries import CacheStorage
from langgraph.checkpoint.dynamodb._format.items import Item, partition_key, sort_key
from langgraph.checkpoint.dynamodb._format.pricing import item_bytes
from langgraph.checkpoint.dynamodb._runtime.steps import Op, work
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointerError
from langgraph.checkpoint.dynamodb.gateway import label_wire as wire
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoints
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.memories import Recent, Room
from langgraph.checkpoint.dynamodb.gateway.opaque import OpaqueValue, opaque_storage
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.shares import Held
from langgraph.checkpoint.dynamodb.gateway.wire import Done
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

Document: TypeAlias = dict[str, Any]
# An entry has up to 390 KB, and what does not fit into an answer is read, and paid for, again.
_READ_AT_ONCE = 16


def cache_storage(saver: DynamoDBSaver) -> CacheStorage:
    """Return the storage of a node cache on a saver's table, with its cipher, for opaque values."""
    storage = opaque_storage(saver)
    return CacheStorage(
        codec=storage.codec,
        table=storage.table,
        consistent_read=False,
        prefix=(),
        owner_key=storage.owner_key,
        clock=storage.clock,
        marked=Recent(),
    )


ENDPOINTS = Endpoints("cache/")


@dataclass(frozen=True)
class Nodes:
    """One method for each of the cache's endpoints: it takes the request, and returns an operation.

    Args:
        storage: The storage that is served, whose serializer takes and returns types and bytes.
        who: Whose request it is.
        held: What the request holds of the service's memory.
        limits: The limits of one request.
    """

    storage: CacheStorage
    who: Principal
    held: Held
    limits: Limits

    @ENDPOINTS.serve("read", wire.CacheGetResponse)
    def get(self, request: wire.CacheGetRequest) -> Op[Document]:
        """Read the values that are cached, as many as fit."""
        values: list[Document | None] = [None] * len(request.keys)
        refused: list[Document] = []
        left: list[int] = []
        room = Room(self.limits.answer_bytes)
        for start in range(0, len(request.keys), _READ_AT_ONCE):
            group = range(start, min(start + _READ_AT_ONCE, len(request.keys)))
            if room.is_full():
                left += group
                continue
            found = yield from self._read([request.keys[each] for each in group])
            for position, item in zip(group, found, strict=True):
                if item is None:
                    continue
                if room.is_full():
                    left.append(position)
                    continue
                opened = yield from _tried(work(partial(self._open, item), item_bytes(item)))
                if isinstance(opened, str):
                    refused.append({"position": position, "reason": opened})
                elif opened is not None:
                    values[position] = opened
                    self.held.add(len(opened["data"]))
                    room.size_bytes += len(opened["data"])
        return {"values": values, "refused": refused, "left": left}

    def _read(self, keys: Sequence[wire.LabelledKey]) -> Op[list[Item | None]]:
        wanted = []
        for each in keys:
            self.who.check_namespace(each.namespace)
            wanted.append(self.storage.key((tuple(each.namespace), each.key)))
        places = [(partition_key(each), sort_key(each)) for each in wanted]
        unique = dict(zip(places, wanted, strict=True))
        found = yield from self.storage.table.batch_get(
            list(unique.values()), consistent=self.storage.consistent_read
        )
        self.held.add(sum(map(item_bytes, found)))
        by_key = {(partition_key(item), sort_key(item)): item for item in found}
        return [by_key.get(each) for each in places]

    def _open(self, item: Item) -> Document | None:
        for kind, data in entries.open_entry(self.storage, item):
            return {"type": kind, "data": data}
        return None

    @ENDPOINTS.serve("write", wire.CacheSetResponse)
    def set(self, request: wire.CacheSetRequest) -> Op[Document]:
        """Cache values."""
        new: dict[tuple[str, str], Item] = {}
        refused: list[Document] = []
        for position, each in enumerate(request.entries):
            self.who.check_namespace(each.namespace)
            full_key, value = (tuple(each.namespace), each.key), OpaqueValue(each.type, each.data)
            made = partial(entries.entry_of, self.storage, full_key, value, each.ttl_seconds)
            item = yield from _tried(work(made, len(each.data)))
            if isinstance(item, str):
                refused.append({"position": position, "reason": item})
            else:
                new[partition_key(item), sort_key(item)] = item
        yield from entries.store(self.storage, list(new.values()))
        return {"refused": refused}

    @ENDPOINTS.serve("write", Done)
    def clear(self, request: wire.CacheClearRequest) -> Op[Document]:
        """Delete values."""
        for each in [request.prefix] if request.namespaces is None else request.namespaces:
            self.who.check_namespace(each)
        storage = replace(self.storage, prefix=tuple(request.prefix) if request.namespaces is None else ())
        namespaces = None if request.namespaces is None else [tuple(each) for each in request.namespaces]
        yield from entries.clear(storage, namespaces)
        return {}


def _tried(operation: Op[Any]) -> Op[Any]:
    """Run an operation on one value; return why it failed, as a text, if it did."""
    try:
        return (yield from operation)
    except CheckpointerConfigurationError as error:
        # Its message may be about the service's key.
        return f"{type(error).__name__}: the gateway cannot open it"
    except (CheckpointerError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
