"""Claims: from a verified token to its principal, with tenant and rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb._format.limits import TENANT_PATTERN
from langgraph.checkpoint.dynamodb.config.fields import split
from langgraph.checkpoint.dynamodb.config.types import Options
from langgraph.checkpoint.dynamodb.errors import CheckpointerInputError
from langgraph.checkpoint.dynamodb.gateway.authentication import found_in
from langgraph.checkpoint.dynamodb.gateway.endpoints import Right
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS, Principal

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
        name, tenant = claims.get(self.name_claim), self.tenant
        if self.tenant_claim is not None:
            tenant = claims.get(self.tenant_claim)
            if not isinstance(tenant, str):
                return None
        owner = None if self.owner_claim is None else claims.get(self.owner_claim)
        if not isinstance(name, str) or (self.owner_claim is not None and not isinstance(owner, str)):
            return None
        try:
            return Principal(name, tenant, self._rights(claims), owner)
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
        claims = found_in(request, "authorizer", "jwt", "claims")
        return self.options.principal(claims) if isinstance(claims, dict) else None
