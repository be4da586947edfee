"""The endpoints: each one's name, its request, its answer and the right that it needs.

The methods that serve them are in operations.py, memories.py and nodes.py. The API description, which is /openapi.json,
and the table in docs/wire.md are made from the endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from langgraph.checkpoint.dynamodb.gateway import media, metrics, problems, wire
from langgraph.checkpoint.dynamodb.gateway.asking import UNITS_HEADER
from langgraph.checkpoint.dynamodb.gateway.principals import Right
from langgraph.checkpoint.dynamodb.version import __version__

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Endpoint:
    """One operation as `POST /checkpoints/{name}`, or as `POST /{name}` if the name has a slash."""

    name: str
    operation: str
    """The name of the method that serves it, and of its events."""
    model: type[wire.Message]
    answer: type[BaseModel]
    right: Right | None
    """The right that it needs. None: each operation of the request needs its own."""
    absent: Mapping[str, Any] | None
    """The answer of an endpoint that creates no thread, where its thread does not exist. None: an error."""
    is_joined: bool
    """Whether it may take longer than one request, and a repeated request joins it."""

    @property
    def path(self) -> str:
        """The path that it is served at."""
        return f"/{self.name}" if "/" in self.name else f"/checkpoints/{self.name}"


class Endpoints(list[Endpoint]):
    """The endpoints of a class, each of whose methods serves one: it takes the request, and returns an operation."""

    def __init__(self, prefix: str = "") -> None:
        """Begin with none. `prefix` is what their names begin with."""
        super().__init__()
        self._prefix = prefix

    def serve(
        self,
        right: Right | None,
        answer: type[BaseModel],
        *,
        name: str | None = None,
        absent: Mapping[str, Any] | None = None,
        is_joined: bool = False,
    ) -> Callable[[F], F]:
        """Add an endpoint that the decorated method serves, whose model is the type of the method's `request`.

        Args:
            right: As in `Endpoint`.
            answer: The shape of what its operation returns.
            name: The endpoint's name; by default the method's, with hyphens.
            absent: As in `Endpoint`.
            is_joined: As in `Endpoint`.
        """

        def added(method: F) -> F:
            own = name or method.__name__.replace("_", "-")
            model = get_type_hints(method)["request"]
            made = Endpoint(self._prefix + own, method.__name__, model, answer, right, absent, is_joined)
            self.append(made)
            return method

        return added


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
