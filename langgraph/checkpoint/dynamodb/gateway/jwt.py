"""JSON Web Tokens: PyJWT verifies them with the issuer's public keys, or API Gateway has; and what claims mean."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import jwt
from pydantic import BeforeValidator, Field
from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb._format.limits import TENANT_PATTERN
from langgraph.checkpoint.dynamodb.config.fields import split
from langgraph.checkpoint.dynamodb.config.types import Options
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway.authentication import authorizer_of, bearer_token
from langgraph.checkpoint.dynamodb.gateway.endpoints import Right
from langgraph.checkpoint.dynamodb.gateway.keys import KeySet, fetcher
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS, Principal

logger = logging.getLogger(__name__)

Rights = Annotated[list[Right], BeforeValidator(split)]
Tenant = Annotated[str, Field(pattern=TENANT_PATTERN)]


class ClaimOptions(Options):
    """The meaning of a token's claims."""

    name_claim: str = Field(default="sub", min_length=1, description="The claim that names the principal.")
    tenant_claim: str | None = Field(
        default=None,
        min_length=1,
        description="The claim that names the tenant; a token without it is refused.",
    )
    tenant: Tenant | None = Field(
        default=None,
        description="The tenant of all tokens, if no claim names it; without either, all threads.",
    )
    owner_claim: str | None = Field(
        default=None,
        min_length=1,
        description="The claim that names the owner whose threads these are, such as sub; a token without it is"
        " refused.",
    )
    rights_claim: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The claim with the rights, a list or a text with spaces, such as scope; other words"
            " in it are ignored."
        ),
    )
    rights_prefix: str = Field(
        default="",
        description="The prefix of a right in that claim, such as checkpoints: in checkpoints:read.",
    )
    rights: Rights = Field(
        default=["read", "write"], description="The rights of all tokens, if no claim has them."
    )

    def principal(self, claims: Mapping[str, Any]) -> Principal | None:
        """Return the principal of a token's claims, or None if they name no principal, tenant or owner."""
        wanted = [each for each in (self.name_claim, self.tenant_claim, self.owner_claim) if each is not None]
        if not all(isinstance(claims.get(each), str) for each in wanted):
            return None
        tenant = self.tenant if self.tenant_claim is None else claims[self.tenant_claim]
        owner = None if self.owner_claim is None else claims[self.owner_claim]
        try:
            return Principal(claims[self.name_claim], tenant, self._rights(claims), owner)
        except CheckpointerInputError:
            return None

    def _rights(self, claims: Mapping[str, Any]) -> frozenset[Right]:
        if self.rights_claim is None:
            return frozenset(self.rights)
        claim = claims.get(self.rights_claim)
        # API Gateway writes a list as text, in square brackets.
        words = claim.strip("[]").split() if isinstance(claim, str) else claim
        named = words if isinstance(words, list) else []
        return frozenset(each for each in RIGHTS if f"{self.rights_prefix}{each}" in named)


@dataclass(frozen=True)
class AuthorizerClaims:
    """Authenticates by the claims of a token that a JWT authorizer of API Gateway has verified."""

    options: ClaimOptions
    """The meaning of the claims."""

    async def __call__(self, request: HTTPConnection) -> Principal | None:
        """Return the principal of the token in a request's event, or None if there is none."""
        claims = authorizer_of(request, "jwt").get("claims")
        return self.options.principal(claims) if isinstance(claims, dict) else None


# By how much clocks may differ.
_LEEWAY_SECONDS = 10
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
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", options.name_claim]},
        )
        return claims
