"""The store and the node cache that the service runs on its saver's table, and which operation serves an endpoint."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from langgraph.cache.dynamodb.entries import CacheStorage
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint
from langgraph.checkpoint.dynamodb.gateway.holding import Held
from langgraph.checkpoint.dynamodb.gateway.label_rights import Scope
from langgraph.checkpoint.dynamodb.gateway.label_wire import Labelled
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.memories import Memories
from langgraph.checkpoint.dynamodb.gateway.nodes import Nodes
from langgraph.checkpoint.dynamodb.gateway.opaque import inert_serde, opaque_storage
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver
from langgraph.store.dynamodb.storage import StoreStorage

# Clients name namespaces, so the memory of what was listed is bounded.
_LISTED_MAX = 10_000


class Recent(OrderedDict[str, float]):
    """When partitions were listed, of those that were listed last."""

    def __setitem__(self, pk: str, listed_at: float) -> None:
        """Remember a partition, and forget the oldest one if there are too many."""
        super().__setitem__(pk, listed_at)
        if len(self) > _LISTED_MAX:
            self.popitem(last=False)


class LabelOperations:
    """The operations of the endpoints for memories and cached nodes."""

    def __init__(
        self, saver: DynamoDBSaver, limits: Limits, *, answer_bytes: int, part_seconds: float
    ) -> None:
        """Make a store and a cache on a saver's table, with its cipher."""
        storage = saver.storage
        memories = StoreStorage(
            codec=saver.storage_with(Codec, inert_serde(saver)).codec,
            table=storage.table,
            clock=storage.clock,
            rng=storage.rng,
            consistent_read=storage.consistent_read,
            search_bytes_max=limits.search_bytes_max,
            registered=Recent(),
        )
        nodes = CacheStorage(
            codec=opaque_storage(saver).codec,
            table=storage.table,
            consistent_read=False,
            prefix=(),
            clock=storage.clock,
            marked=Recent(),
        )
        self._served = {
            "store": Memories(memories, answer_bytes=answer_bytes, part_seconds=part_seconds),
            "cache": Nodes(nodes, answer_bytes=answer_bytes),
        }

    def operation(
        self, endpoint: Endpoint, request: Labelled, principal: Principal, held: Held
    ) -> Op[dict[str, Any]]:
        """Return the operation of an endpoint for a request.

        Raises:
            ProblemError: The principal reaches no namespaces.
        """
        served = self._served[endpoint.name.partition("/")[0]]
        operation: Op[dict[str, Any]] = getattr(served, endpoint.attribute)(
            request, Scope.of(principal), held
        )
        return operation
