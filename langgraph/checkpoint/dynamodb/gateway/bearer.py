"""Bearer tokens: random texts. The service knows their SHA-256 hashes, several for each principal."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping

from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb.gateway.authentication import bearer_token
from langgraph.checkpoint.dynamodb.gateway.principals import Principal


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
