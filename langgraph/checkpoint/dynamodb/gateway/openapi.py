"""The API description, which is /openapi.json: the endpoints with their arguments and responses.

A test compares it with the one in tests/fixtures, since the signatures of the functions are the wire.
"""

import inspect
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from ..version import __version__
from . import access_log, call, problems
from .limits import Limits


@dataclass(frozen=True)
class Problem:
    """A problem, as RFC 9457 has it. It may have more fields. Its type names the exception that the client raises."""

    type: Annotated[str, Field(pattern=f"^{problems.TYPE_PREFIX}")]
    title: str
    status: int
    request_id: str
    detail: str | None = None


@dataclass(frozen=True)
class About:
    """The service's version and limits, and the owner that these credentials are bound to."""

    wire_version: int
    limits: Limits
    owner: str | None


@dataclass(frozen=True)
class ServiceStatus:
    """The process runs (`ok`), or the table answers (`ready`)."""

    status: Literal["ok", "ready"]


_REFERENCES = "#/components/schemas/{model}"
_PROBLEM = {problems.MEDIA_TYPE: {"schema": {"$ref": _REFERENCES.format(model=Problem.__name__)}}}
_SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A random token, or a JSON Web Token."},
}
_SECURITY: list[dict[str, list[str]]] = [{"bearer": []}]


def describe(endpoints: Collection[call.Endpoint[Any]]) -> dict[str, Any]:
    """Return the OpenAPI document of a service with these endpoints."""
    models: dict[Any, TypeAdapter[Any]] = {
        each: TypeAdapter(each) for each in (About, ServiceStatus, Problem)
    }
    for each in endpoints:
        models |= {(each, "request"): TypeAdapter(each.arguments), (each, "response"): each.response}
    schemas, definitions = TypeAdapter.json_schemas(
        [(key, "validation", each) for key, each in models.items()], ref_template=_REFERENCES
    )

    def content(key: Any) -> dict[str, Any]:
        return {"application/json": {"schema": schemas[key, "validation"]}}

    text = {access_log.METRICS_TYPE: {"schema": {"type": "string"}}}
    paths = {
        "/about": {"get": _operation("about", content(About), security=_SECURITY)},
        "/health": {"get": _operation("health", content(ServiceStatus))},
        "/ready": {"get": _operation("ready", content(ServiceStatus))},
        "/metrics": {"get": _operation("metrics", text, security=_SECURITY)},
    }
    for each in endpoints:
        posted = _operation(
            each.name.replace("/", "-"),
            content((each, "response")),
            description=f"{inspect.getdoc(each.function)}\n\n{_rights(each)}",
            security=_SECURITY,
            requestBody={"required": True, "content": content((each, "request"))},
        )
        paths[each.path] = {"post": posted}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "langgraph-dynamodb gateway",
            "description": "Keeps threads of LangGraph agents that have no access to the table.",
            "version": __version__,
        },
        "paths": paths,
        "components": {"schemas": definitions["$defs"], "securitySchemes": _SCHEMES},
    }


def _rights(endpoint: call.Endpoint[Any]) -> str:
    if endpoint.right is None:
        return "Needs the right to read, to write, or both, as its operations do."
    return f"Needs the right to {endpoint.right}."


def _operation(name: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an operation that answers with this content, or with a problem."""
    by_status = {
        "200": {"description": "Done.", "content": content},
        "default": {"description": "Not done.", "content": _PROBLEM},
    }
    return {"operationId": name, "responses": by_status, **more}
