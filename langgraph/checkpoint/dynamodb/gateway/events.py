"""Events: what AWS says about a request that it has authenticated, before the function sees it.

Mangum puts the event into the ASGI scope. Headers prove nothing here: anybody can send one. Whoever may invoke the
function directly can write any event, so only the function URL, or API Gateway, may invoke it.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import HTTPConnection


def found_in(request: HTTPConnection, *place: str) -> Any:
    """Return the value at a place in the `requestContext` of a request's event, or None if there is none."""
    value = request.scope.get("aws.event")
    for name in ("requestContext", *place):
        value = value.get(name) if isinstance(value, dict) else None
    return value
