"""JSON Web Tokens: PyJWT verifies them with the issuer's public keys."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import jwt
from pydantic import BeforeValidator, Field
from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb.config.fields import NotNegative, split
from langgraph.checkpoint.dynamodb.gateway.authentication import bearer_token
from langgraph.checkpoint.dynamodb.gateway.claims import ClaimOptions
from langgraph.checkpoint.dynamodb.gateway.keys import KeySet, fetcher
from langgraph.checkpoint.dynamodb.gateway.principals import Principal

logger = logging.getLogger(__name__)

# With a shared secret, whoever verifies could also sign; and `none` is no signature.
Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


class JwtOptions(ClaimOptions):
    """How to verify JSON Web Tokens, and the meaning of their claims."""

    jwks_url: str = Field(
        # A key from an unencrypted connection could be anybody's. This machine's own connections are safe.
        pattern=r"^(https://[^/]|http://(localhost|127\.0\.0\.1)[:/])",
        description="The address of the issuer's public keys, with https.",
    )
    issuer: str = Field(min_length=1, description="The value of the claim `iss` that a token needs.")
    audience: str = Field(min_length=1, description="The value of the claim `aud` that a token needs.")
    algorithms: Annotated[list[Algorithm], BeforeValidator(split), Field(min_length=1)] = Field(
        default=["RS256"], description="The algorithms that may sign a token; asymmetric ones only."
    )
    leeway_seconds: Annotated[NotNegative, Field(le=300)] = Field(
        default=10, description="The seconds by which clocks may differ."
    )


class JsonWebTokens:
    """Authenticates by JSON Web Tokens."""

    def __init__(self, options: JwtOptions, fetch: Callable[[], Mapping[str, Any]] | None = None) -> None:
        """Store the options.

        Args:
            options: How to verify tokens.
            fetch: Returns the key set; None fetches it from the address in the options.
        """
        self._options = options
        self._keys = KeySet(fetch or fetcher(options.jwks_url))

    async def __call__(self, request: HTTPConnection) -> Principal | None:
        """Return the principal of a request's token, or None if there is no token or it is not valid.

        Raises:
            ProblemError: The issuer's keys cannot be had, or may have changed since they were fetched.
        """
        token = bearer_token(request)
        # Random tokens have no dots. `BearerTokens` handles them.
        if token is None or token.count(".") != 2:
            return None
        try:
            claims = await self._verified(token)
        except (jwt.PyJWTError, RecursionError) as error:
            # The reason is for the operator: a stranger does not learn how close the token was.
            logger.info("a token was refused: %s", type(error).__name__)
            return None
        return None if claims is None else self._options.principal(claims)

    async def _verified(self, token: str) -> Mapping[str, Any] | None:
        key = await self._keys.key(jwt.get_unverified_header(token).get("kid"))
        if key is None:
            logger.info("a token was refused: its key is not one of the issuer's")
            return None
        options = self._options
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(options.algorithms),
            issuer=options.issuer,
            audience=options.audience,
            leeway=options.leeway_seconds,
            options={"require": ["exp", "iss", "aud", options.name_claim]},
        )
        return claims
