"""The endpoint table: each operation's name, its request, its answer and the right that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from langgraph.checkpoint.dynamodb.gateway import label_wire, wire

Right: TypeAlias = Literal["read", "write", "administer"]


# The saver's methods that have another name than their endpoint.
_METHODS = {
    "delta-channel-history": "get_delta_channel_history",
    "runs": "list_runs",
    "threads": "list_threads",
}


@dataclass(frozen=True)
class Endpoint:
    """One operation as `POST /checkpoints/{name}`, or as `POST /{name}` if the name has a slash."""

    name: str
    model: type[wire.Message]
    answer: type[BaseModel]
    right: Right | None
    """The right that it needs. None: each operation of the request needs its own."""
    absent: Mapping[str, Any] | None = None
    """The answer of an endpoint that creates no thread, where its thread does not exist. None: an error."""
    is_joined: bool = False
    """Whether it may take longer than one request, and a repeated request joins it."""

    @property
    def path(self) -> str:
        """The path that it is served at."""
        return f"/{self.name}" if "/" in self.name else f"/checkpoints/{self.name}"

    @property
    def attribute(self) -> str:
        """The name of the method that serves it."""
        return self.name.rpartition("/")[2].replace("-", "_")

    @property
    def method(self) -> str:
        """The name of the saver's method, for events."""
        return _METHODS.get(self.name, self.attribute)


ENDPOINTS = (
    Endpoint("get-tuple", wire.GetTupleRequest, wire.GetTupleResponse, "read", absent={"checkpoint": None}),
    Endpoint(
        "list",
        wire.ListRequest,
        wire.ListResponse,
        "read",
        absent={"checkpoints": [], "after": None, "problem": None},
    ),
    Endpoint(
        "delta-channel-history",
        wire.DeltaChannelHistoryRequest,
        wire.DeltaChannelHistoryResponse,
        "read",
        absent={"channels": {}, "after": None},
    ),
    Endpoint("put", wire.PutRequest, wire.PutResponse, "write"),
    Endpoint("put-writes", wire.PutWritesRequest, wire.PutWritesResponse, "write"),
    Endpoint("delete-thread", wire.DeleteThreadRequest, wire.Done, "administer", absent={}),
    Endpoint("delete-for-runs", wire.DeleteForRunsRequest, wire.Done, "administer"),
    Endpoint("copy-thread", wire.CopyThreadRequest, wire.Joined, "administer", is_joined=True),
    Endpoint("prune", wire.PruneRequest, wire.Joined, "administer", absent={"done": True}, is_joined=True),
    Endpoint("set-thread", wire.SetThreadRequest, wire.Done, "write"),
    Endpoint("threads", wire.ThreadsRequest, wire.ThreadsResponse, "read"),
    Endpoint("runs", wire.RunsRequest, wire.RunsResponse, "read", absent={"runs": []}),
    Endpoint("lock", wire.LockRequest, wire.LockResponse, "write"),
)
LABEL_ENDPOINTS = (
    Endpoint("store/batch", label_wire.BatchRequest, label_wire.BatchResponse, None),
    Endpoint(
        "store/delete-namespace",
        label_wire.DeleteNamespaceRequest,
        label_wire.DeleteNamespaceResponse,
        "write",
    ),
    Endpoint("store/sweep-ttl", label_wire.SweepTtlRequest, label_wire.DeleteNamespaceResponse, "write"),
    Endpoint("cache/get", label_wire.CacheGetRequest, label_wire.CacheGetResponse, "read"),
    Endpoint("cache/set", label_wire.CacheSetRequest, label_wire.CacheSetResponse, "write"),
    Endpoint("cache/clear", label_wire.CacheClearRequest, wire.Done, "write"),
)
