"""Authentication: from a request to its principal. Random tokens are here, and JSON Web Tokens in `jwt`.

The service verifies each token itself, wherever it runs. Nothing else in a request says who sent it. Any other function
may take the place of these.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from starlette.requests import HTTPConnection

from .principals import RIGHTS, Principal
from .problems import forbidden, unauthenticated

Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Principal | None]]
"""Returns the principal of a request, or None if it has no credentials of this kind."""

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
            " configure principals (bearer or jwt), or connect to the gateway directly"
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


class BearerTokens:
    """Authenticates by bearer tokens.

    Args:
        hashes: For each principal the SHA-256 hashes of its tokens, in hexadecimal. With two hashes, a token can be
            replaced while both are valid. A token must be random, of 128 bits or more, since a hash can be guessed
            by trial: `openssl rand -hex 32`.
    """

    def __init__(self, hashes: Mapping[Principal, Iterable[str]]) -> None:
        """Store the hashes. The tokens themselves are stored nowhere."""
        self._known = [(bytes.fromhex(each), principal) for principal, own in hashes.items() for each in own]

    async def __call__(self, request: HTTPConnection) -> Principal | None:
        """Return the principal of a request's token, or None if there is no token or it is unknown."""
        token = bearer_token(request)
        if token is None:
            return None
        digest = hashlib.sha256(token.encode()).digest()
        # All are compared, so the time taken does not tell which one matched.
        found = [principal for known, principal in self._known if hmac.compare_digest(known, digest)]
        return found[0] if found else None
