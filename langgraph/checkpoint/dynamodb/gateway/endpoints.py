"""The endpoint table: each operation's name, its request, the right that it needs and the threads that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from langgraph.checkpoint.dynamodb.gateway import label_wire, responses, wire

Right: TypeAlias = Literal["read", "write", "administer"]


def _thread(request: Any) -> Iterable[str | None]:
    return (request.thread_id,)


def _source_and_target(request: wire.CopyThreadRequest) -> Iterable[str | None]:
    return (request.source_thread_id, request.target_thread_id)


def _threads(request: Any) -> Iterable[str | None]:
    thread_ids: Iterable[str | None] = request.thread_ids
    return thread_ids


def _all(_request: Any) -> Iterable[str | None]:
    return (None,)


def _none(_request: Any) -> Iterable[str | None]:
    return ()


# The saver's methods that have another name than their endpoint.
_METHODS = {
    "delta-channel-history": "get_delta_channel_history",
    "runs": "list_runs",
    "threads": "list_threads",
}


def _rights_of_batch(request: label_wire.BatchRequest) -> Iterable[Right]:
    return {"write" if isinstance(each, label_wire.StorePut) else "read" for each in request.ops}


@dataclass(frozen=True)
class Endpoint:
    """One operation as `POST /checkpoints/{name}`, or as `POST /{name}` if the name has a slash."""

    name: str
    model: type[wire.Message]
    answer: type[BaseModel]
    """The answer's model; for a stream, that of one document."""
    right: Right
    threads: Callable[[Any], Iterable[str | None]] = _thread
    """Returns every thread that a request names. None stands for all threads."""
    absent: Mapping[str, Any] | None = None
    """The answer of an endpoint that creates no thread, where its thread does not exist. None: an error."""
    is_joined: bool = False
    """Whether it may take longer than one request, and a repeated request joins it."""

    rights: Callable[[Any], Iterable[Right]] | None = None
    """Returns the rights that a request needs, where that depends on the request."""

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
    Endpoint(
        "get-tuple", wire.GetTupleRequest, responses.GetTupleResponse, "read", absent={"checkpoint": None}
    ),
    Endpoint("list", wire.ListRequest, responses.ListDocument, "read", absent={"end": True, "more": False}),
    Endpoint(
        "delta-channel-history",
        wire.DeltaChannelHistoryRequest,
        responses.DeltaChannelHistoryResponse,
        "read",
        absent={"channels": {}},
    ),
    Endpoint("put", wire.PutRequest, responses.PutResponse, "write"),
    Endpoint("put-writes", wire.PutWritesRequest, responses.Done, "write"),
    Endpoint("delete-thread", wire.DeleteThreadRequest, responses.Done, "administer", absent={}),
    Endpoint("delete-for-runs", wire.DeleteForRunsRequest, responses.Done, "administer", _all),
    Endpoint(
        "copy-thread",
        wire.CopyThreadRequest,
        responses.Joined,
        "administer",
        _source_and_target,
        is_joined=True,
    ),
    Endpoint(
        "prune",
        wire.PruneRequest,
        responses.Joined,
        "administer",
        _threads,
        absent={"done": True},
        is_joined=True,
    ),
    Endpoint("set-thread", wire.SetThreadRequest, responses.Done, "write"),
    Endpoint("threads", wire.ThreadsRequest, responses.ThreadsResponse, "read", _none),
    Endpoint("runs", wire.RunsRequest, responses.RunsResponse, "read", absent={"runs": []}),
    Endpoint("lock", wire.LockRequest, responses.LockResponse, "write"),
)
LABEL_ENDPOINTS = (
    Endpoint(
        "store/batch",
        label_wire.BatchRequest,
        label_wire.BatchResponse,
        "read",
        _none,
        rights=_rights_of_batch,
    ),
    Endpoint("store/put-if", label_wire.PutIfRequest, label_wire.PutIfResponse, "write", _none),
    Endpoint(
        "store/delete-namespace",
        label_wire.DeleteNamespaceRequest,
        label_wire.DeleteNamespaceResponse,
        "write",
        _none,
    ),
    Endpoint(
        "store/sweep-ttl", label_wire.SweepTtlRequest, label_wire.DeleteNamespaceResponse, "write", _none
    ),
    Endpoint(
        "store/export-items", label_wire.ExportItemsRequest, label_wire.ExportItemsResponse, "read", _none
    ),
    Endpoint(
        "store/import-items", label_wire.ImportItemsRequest, label_wire.ImportItemsResponse, "write", _none
    ),
    Endpoint("cache/get", label_wire.CacheGetRequest, label_wire.CacheGetResponse, "read", _none),
    Endpoint("cache/set", label_wire.CacheSetRequest, label_wire.CacheSetResponse, "write", _none),
    Endpoint("cache/clear", label_wire.CacheClearRequest, responses.Done, "write", _none),
)
