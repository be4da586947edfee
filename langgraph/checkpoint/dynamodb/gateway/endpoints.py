"""The endpoint table: each operation's name, its request, its answer and the right that it needs.

The API description, which is /openapi.json, is made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from langgraph.checkpoint.dynamodb.gateway import label_wire, media, metrics, problems, wire
from langgraph.checkpoint.dynamodb.gateway.asking import UNITS_HEADER
from langgraph.checkpoint.dynamodb.gateway.principals import Right
from langgraph.checkpoint.dynamodb.version import __version__

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


_REFERENCES = "#/components/schemas/{model}"
_UNITS: dict[str, Any] = {
    "name": UNITS_HEADER,
    "in": "header",
    "description": "Asks for the capacity units that the request consumes; the answer has them as units.",
    "schema": {"type": "string", "enum": ["1"]},
}
_SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A random token, or a JSON Web Token."},
}
_SECURITY: list[dict[str, list[str]]] = [{"bearer": []}]


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of a service with these endpoints."""
    own_models: list[type[BaseModel]] = [wire.AboutResponse, wire.ServiceStatus, wire.Problem]
    about, status, _ = ({media.JSON.name: {"schema": _reference(each)}} for each in own_models)
    text = {metrics.MEDIA_TYPE: {"schema": {"type": "string"}}}
    paths = {
        "/about": {"get": _operation("about", about, security=_SECURITY)},
        "/health": {"get": _operation("health", status)},
        "/ready": {"get": _operation("ready", status)},
        "/metrics": {"get": _operation("metrics", text, security=_SECURITY)},
    }
    models = dict.fromkeys(own_models)
    for each in endpoints:
        paths[each.path] = {"post": _posted(each)}
        models |= dict.fromkeys((each.model, each.answer))
    _, definitions = models_json_schema([(each, "validation") for each in models], ref_template=_REFERENCES)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "langgraph-dynamodb gateway",
            "description": "Keeps threads of LangGraph agents that have no access to the table.",
            "version": __version__,
        },
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": _SCHEMES,
        },
    }


def _posted(endpoint: Endpoint) -> dict[str, Any]:
    return _operation(
        endpoint.name.replace("/", "-"),
        {each.name: {"schema": _reference(endpoint.answer)} for each in media.MEDIA},
        description=_rights(endpoint),
        security=_SECURITY,
        parameters=[_UNITS],
        requestBody={
            "required": True,
            "content": {each.name: {"schema": _reference(endpoint.model)} for each in media.MEDIA},
        },
    )


def _rights(endpoint: Endpoint) -> str:
    if endpoint.right is None:
        return "Needs the right to read, to write, or both, as its operations do."
    return f"Needs the right to {endpoint.right}."


def _operation(name: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an operation that answers with this content, or with a problem."""
    problem = {problems.MEDIA_TYPE: {"schema": _reference(wire.Problem)}}
    by_status = {
        "200": {"description": "Done.", "content": content},
        "default": {"description": "Not done.", "content": problem},
    }
    return {"operationId": name, "responses": by_status, **more}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REFERENCES.format(model=model.__name__)}
