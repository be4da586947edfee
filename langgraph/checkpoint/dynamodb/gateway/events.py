"""Events: what AWS says of a request that it has authenticated itself, before the function sees it.

Mangum puts the event into the ASGI scope. A header says nothing here: anybody can send one. Who may invoke the function
directly can write any event, so nobody but the function URL, or API Gateway, may.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import HTTPConnection


def found_in(request: HTTPConnection, *place: str) -> Any:
    """What a request's event has in a place of its `requestContext`; None where there is no event, or nothing."""
    value = request.scope.get("aws.event")
    for name in ("requestContext", *place):
        value = value.get(name) if isinstance(value, dict) else None
    return value
