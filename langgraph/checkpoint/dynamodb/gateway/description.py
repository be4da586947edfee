"""The API description: the OpenAPI document of the service, which is /openapi.json."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from langgraph.checkpoint.dynamodb.gateway import media, metrics, problems, wire
from langgraph.checkpoint.dynamodb.gateway.asking import UNITS_HEADER
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint
from langgraph.checkpoint.dynamodb.version import __version__

_REFERENCES = "#/components/schemas/{model}"
_UNITS: dict[str, Any] = {
    "name": UNITS_HEADER,
    "in": "header",
    "description": "Asks for the capacity units that the request consumes; the answer has them as units.",
    "schema": {"type": "string", "enum": ["1"]},
}
_SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A random token, or a JSON Web Token."},
    "iam": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "AWS Signature Version 4, verified by a function URL or API Gateway.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
}
# Either of them is enough.
_SECURITY: list[dict[str, list[str]]] = [{name: []} for name in _SCHEMES]


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of a service with these endpoints."""
    own_models: list[type[BaseModel]] = [
        wire.AboutResponse,
        wire.Health,
        wire.Ready,
        wire.Problem,
    ]
    about, health, ready, _ = ({media.JSON.name: {"schema": _reference(each)}} for each in own_models)
    text = {metrics.MEDIA_TYPE: {"schema": {"type": "string"}}}
    paths = {
        "/about": {"get": _operation("about", about, security=_SECURITY)},
        "/health": {"get": _operation("health", health)},
        "/ready": {"get": _operation("ready", ready)},
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
