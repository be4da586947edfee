"""The API description: what /openapi.json adds to the framework's own, since the service reads bodies itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from langgraph.checkpoint.dynamodb.gateway import answers, media, problems
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint
from langgraph.checkpoint.dynamodb.gateway.units import HEADER
from langgraph.checkpoint.dynamodb.gateway.wire import List

_REFERENCES = "#/components/schemas/{model}"
_PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "What went wrong, as RFC 9457 has it; type names the exception that the client raises.",
    "type": "object",
    "properties": {
        "type": {"type": "string", "pattern": f"^{problems.TYPE_PREFIX}"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
    },
    "required": ["type", "title", "status", "request_id"],
}
_STATUSES = {
    "400": "The request cannot be used.",
    "401": "Credentials are missing or not accepted.",
    "403": "These credentials may not do this.",
    "404": "A checkpoint that another one needs is missing.",
    "406": "Accept has no media type of this service.",
    "409": "Somebody else has the thread, or what is stored of it is damaged.",
    "413": "The body is too large.",
    "415": "The body's media type, version or compression is unknown.",
    "422": "A value cannot be written.",
    "429": "Too many requests of this principal.",
    "500": "The gateway failed; its log says why.",
    "503": "The table, or the gateway, has too much to do.",
    "504": "The request took too long.",
}
_UNITS: dict[str, Any] = {
    "name": HEADER,
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
SECURITY: list[dict[str, list[str]]] = [{name: []} for name in _SCHEMES]


def problem_responses() -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses for requests that fail."""
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": _REFERENCES.format(model="Problem")}}}
    return {status: {"description": says, "content": content} for status, says in _STATUSES.items()}


def operation(endpoint: Endpoint) -> dict[str, Any]:
    """Return the OpenAPI operation of an endpoint, without its path."""
    is_stream = endpoint.model is List
    encodings = (media.JSON,) if endpoint.is_plain else media.MEDIA
    names = [each.stream_name if is_stream else each.name for each in encodings]
    answer = {"schema": _reference(endpoint.answer)}
    return {
        "description": f"Needs the right to {endpoint.right}.",
        "security": SECURITY,
        "parameters": [_UNITS],
        "requestBody": {
            "required": True,
            "content": {each.name: {"schema": _reference(endpoint.model)} for each in media.MEDIA},
        },
        "responses": {"200": {"description": "Done.", "content": dict.fromkeys(names, answer)}},
    }


def answered(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI responses of an operation that answers with a document of the service itself."""
    content = {media.JSON.name: {"schema": _reference(model)}}
    return {"responses": {"200": {"description": "Done.", "content": content}}}


def answered_by_text(media_type: str) -> dict[str, Any]:
    """Return the OpenAPI responses of an operation that answers with text."""
    content = {media_type: {"schema": {"type": "string"}}}
    return {"responses": {"200": {"description": "Done.", "content": content}}}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REFERENCES.format(model=model.__name__)}


def _models(endpoints: Iterable[Endpoint]) -> list[type[BaseModel]]:
    of_endpoints = [model for each in endpoints for model in (each.model, each.answer)]
    return list(dict.fromkeys([*of_endpoints, answers.About, answers.Health, answers.Ready]))


def describe(app: FastAPI, endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of an application that serves these endpoints."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    _, definitions = models_json_schema(
        [(each, "validation") for each in _models(endpoints)], ref_template=_REFERENCES
    )
    # FastAPI describes every answer that it does not make itself as JSON of unknown content.
    for path in ("/metrics", "/checkpoints/list"):
        [described] = document["paths"][path].values()
        del described["responses"]["200"]["content"][media.JSON.name]
    components = document.setdefault("components", {})
    components["schemas"] = {**components.get("schemas", {}), **definitions["$defs"], "Problem": _PROBLEM}
    components["securitySchemes"] = _SCHEMES
    return document
