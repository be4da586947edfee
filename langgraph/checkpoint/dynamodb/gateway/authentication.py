"""Authentication: from a request to its principal. Three ways are built in; any function may be a fourth."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS, Principal
from langgraph.checkpoint.dynamodb.gateway.problems import forbidden, unauthenticated

Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Principal | None]]
"""Returns the principal of a request from its headers and scope, or None if it has no credentials of this kind."""

_ANYBODY = Principal("anybody", rights=RIGHTS)


def any_of(ways: Sequence[Authenticate]) -> Authenticate:
    """Return a function that tries several ways, one after the other."""

    async def authenticate(request: HTTPConnection) -> Principal | None:
        for way in ways:
            principal = await way(request)
            if principal is not None:
                return principal
        return None

    return authenticate


async def anybody_on_this_machine(request: HTTPConnection) -> Principal | None:
    """Accept every request that comes from this machine and is addressed to it. For development.

    Raises:
        ProblemError: The request came from elsewhere, through a proxy, or by a name that a web page may have made up.
    """
    if _is_forwarded(request):
        raise forbidden(
            "the gateway runs with --insecure, and this request came through a proxy, which anybody may use;"
            " configure principals (bearer, jwt or iam), or connect to the gateway directly"
        )
    host = request.client.host if request.client else ""
    if not (is_of_this_machine(host) and is_of_this_machine(request.url.hostname or "")):
        raise forbidden(
            "the gateway runs with --insecure, and serves only clients on its own machine; use localhost"
        )
    return _ANYBODY


def _is_forwarded(request: HTTPConnection) -> bool:
    """Tell whether a proxy on this machine passed the request on. The client's address is then the proxy's."""
    names_a_proxy = any(
        each in ("forwarded", "via", "x-real-ip") or each.startswith("x-forwarded-")
        for each in request.headers
    )
    # nginx adds no header by default, but it speaks HTTP/1.0, which none of our clients do.
    return names_a_proxy or request.scope.get("http_version") == "1.0"


def is_of_this_machine(host: str) -> bool:
    """Tell whether a name or an address always means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bearer_token(request: HTTPConnection) -> str | None:
    """Return the token of an `Authorization: Bearer` header, or None if there is none.

    Raises:
        ProblemError: There are several such headers.
    """
    headers = request.headers.getlist("authorization")
    if len(headers) > 1:
        raise unauthenticated()
    scheme, _, token = headers[0].partition(" ") if headers else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else None


def found_in(request: HTTPConnection, *place: str) -> Any:
    """Return the value at a place in the `requestContext` of a request's event, or None if there is none.

    AWS authenticates a request before the function sees it, and says in the event who made it. Mangum puts the event
    into the ASGI scope. Headers prove nothing here: anybody can send one. Whoever may invoke the function directly can
    write any event, so only the function URL, or API Gateway, may invoke it.
    """
    value = request.scope.get("aws.event")
    for name in ("requestContext", *place):
        value = value.get(name) if isinstance(value, dict) else None
    return value
