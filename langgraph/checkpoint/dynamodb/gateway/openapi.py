"""The API description, which is /openapi.json: the endpoints with their arguments and responses.

A test compares it with the one in tests/fixtures, since the signatures of the functions are the wire.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from ..version import __version__
from . import problems
from .access_log import METRICS_TYPE
from .call import Endpoint
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
_JSON = "application/json"
_SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A random token, or a JSON Web Token."},
}
_SECURITY: list[dict[str, list[str]]] = [{"bearer": []}]


def describe(endpoints: Iterable[Endpoint[Any]]) -> dict[str, Any]:
    """Return the OpenAPI document of a service with these endpoints."""
    models: dict[str, TypeAdapter[Any]] = {
        each.__name__: TypeAdapter(each) for each in (About, ServiceStatus, Problem)
    }
    for each in endpoints:
        models |= {
            f"{each.title}Request": TypeAdapter(each.arguments),
            f"{each.title}Response": each.response,
        }
    schemas, definitions = TypeAdapter.json_schemas(
        [(name, "validation", each) for name, each in models.items()], ref_template=_REFERENCES
    )
    text = {METRICS_TYPE: {"schema": {"type": "string"}}}
    paths = {
        "/about": {"get": _operation("about", _content("About"), security=_SECURITY)},
        "/health": {"get": _operation("health", _content("ServiceStatus"))},
        "/ready": {"get": _operation("ready", _content("ServiceStatus"))},
        "/metrics": {"get": _operation("metrics", text, security=_SECURITY)},
    }
    for each in endpoints:
        paths[each.path] = {"post": _posted(each)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "langgraph-dynamodb gateway",
            "description": "Keeps threads of LangGraph agents that have no access to the table.",
            "version": __version__,
        },
        "paths": paths,
        "components": {
            "schemas": {
                **definitions.get("$defs", {}),
                **{name: each for (name, _), each in schemas.items() if _is_own(name, each)},
            },
            "securitySchemes": _SCHEMES,
        },
    }


def _is_own(name: str, schema: Any) -> bool:
    """Tell whether a schema is more than a reference to itself."""
    return bool(schema != _reference(name))


def _posted(endpoint: Endpoint[Any]) -> dict[str, Any]:
    return _operation(
        endpoint.name.replace("/", "-"),
        _content(f"{endpoint.title}Response"),
        description=f"{inspect.getdoc(endpoint.function)}\n\n{_rights(endpoint)}",
        security=_SECURITY,
        requestBody={"required": True, "content": _content(f"{endpoint.title}Request")},
    )


def _rights(endpoint: Endpoint[Any]) -> str:
    if endpoint.right is None:
        return "Needs the right to read, to write, or both, as its operations do."
    return f"Needs the right to {endpoint.right}."


def _operation(name: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an operation that answers with this content, or with a problem."""
    problem = {problems.MEDIA_TYPE: {"schema": _reference("Problem")}}
    by_status = {
        "200": {"description": "Done.", "content": content},
        "default": {"description": "Not done.", "content": problem},
    }
    return {"operationId": name, "responses": by_status, **more}


def _content(name: str) -> dict[str, Any]:
    return {_JSON: {"schema": _reference(name)}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _REFERENCES.format(model=name)}
