"""Authentication: from a request to its principal, by random tokens or JSON Web Tokens.

The service verifies each token itself, wherever it runs. Nothing else in a request says who sent it. Any other function
may take the place of these. PyJWT verifies JSON Web Tokens with the issuer's public keys, which are fetched off the
event loop, at a rate that strangers cannot raise.
"""

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import jwt
from anyio import to_thread
from pydantic import BeforeValidator, Field
from starlette.requests import HTTPConnection

from .._format.limits import TENANT_PATTERN
from .._runtime.failures import is_of_this_machine
from ..config.fields import Options, split
from ..errors import CheckpointerError, CheckpointerInputError
from . import call, problems
from .serving import RIGHTS, Principal

Authenticate: TypeAlias = Callable[[HTTPConnection], Awaitable[Principal | None]]
"""Returns the principal of a request, or None if it has no credentials of this kind."""

_ANYBODY = Principal("anybody", rights=RIGHTS)


def either(first: Authenticate, second: Authenticate) -> Authenticate:
    """Return a function that tries two ways, one after the other."""

    async def authenticate(request: HTTPConnection) -> Principal | None:
        return await first(request) or await second(request)

    return authenticate


async def anybody_on_this_machine(request: HTTPConnection) -> Principal | None:
    """Accept every request that comes from this machine and is addressed to it. For development."""
    if _is_forwarded(request):
        raise problems.forbidden(
            "the gateway runs with --insecure, and this request came through a proxy, which anybody may use;"
            " configure principals (bearer or jwt), or connect to the gateway directly"
        )
    host = request.client.host if request.client else ""
    if not (is_of_this_machine(host) and is_of_this_machine(request.url.hostname or "")):
        raise problems.forbidden(
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


def bearer_token(request: HTTPConnection) -> str | None:
    """Return the token of an `Authorization: Bearer` header, or None if there is none."""
    headers = request.headers.getlist("authorization")
    if len(headers) > 1:
        raise problems.unauthenticated()
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


logger = logging.getLogger(__name__)

Rights = Annotated[list[call.Right], BeforeValidator(split)]
Tenant = Annotated[str, Field(pattern=TENANT_PATTERN)]


# By how much clocks may differ.
_LEEWAY_SECONDS = 10
# With a shared secret, whoever verifies could also sign; and `none` is no signature.
Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


class JwtOptions(Options):
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

    def _rights(self, claims: Mapping[str, Any]) -> frozenset[call.Right]:
        if self.rights_claim is None:
            return frozenset(self.rights)
        claim = claims.get(self.rights_claim)
        words = claim.split() if isinstance(claim, str) else claim
        named = words if isinstance(words, list) else []
        return frozenset(each for each in RIGHTS if f"{self.rights_prefix}{each}" in named)


class JsonWebTokens:
    """Authenticates by JSON Web Tokens."""

    def __init__(self, options: JwtOptions, fetch: Callable[[], Mapping[str, Any]] | None = None) -> None:
        """Store the options. By default the key set is fetched from the address in them."""
        self._options = options
        client = jwt.PyJWKClient(options.jwks_url, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS)
        self._keys = KeySet(fetch or client.fetch_data)

    async def __call__(self, request: HTTPConnection) -> Principal | None:
        """Return the principal of a request's token, or None if there is no token or it is not valid."""
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


# A key that the issuer has withdrawn is accepted for this long.
_FRESH_SECONDS = 300
# For an unknown key, or after a failure, the keys are fetched again once in this time, however many keys strangers make
# up.
_PAUSE_SECONDS = 10
# While the issuer does not answer, the keys that were fetched last stay valid for a day.
_KEPT_SECONDS = 24 * 60 * 60
_TIMEOUT_SECONDS = 5


class KeySet:
    """The keys of one issuer, by their ids."""

    def __init__(
        self, fetch: Callable[[], Mapping[str, Any]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start without keys. `fetch` returns the JSON Web Key Set."""
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key of an id, or None if the issuer does not have it.

        None is certain: the keys were fetched for this request. A client gives up on a 401. So while the issuer may not
        be asked again, a request with a key that it may have published since is answered with 503.
        """
        is_certain = False
        # A request whose key was valid a moment ago does not wait for the fetch of another.
        if self._is_due(key_id) and not (key_id in self._keys and self._fetching.locked()):
            async with self._fetching:
                is_certain = await self._refresh(key_id)
        if self._clock() - self._fetched_at > _KEPT_SECONDS:
            raise self._unsettled("the keys that tokens are verified with cannot be fetched")
        found = self._keys.get(key_id)
        if found is None and not is_certain:
            raise self._unsettled("the token's key is not known yet")
        return found

    def _unsettled(self, says: str) -> problems.ProblemError:
        retry_seconds = self._tried_at + _PAUSE_SECONDS - self._clock()
        return problems.ProblemError(
            503, f"{says}; send the request again", CheckpointerError, retry_seconds=retry_seconds
        )

    def _is_due(self, key_id: str | None) -> bool:
        now = self._clock()
        is_wanted = key_id not in self._keys or now - self._fetched_at > _FRESH_SECONDS
        return is_wanted and now - self._tried_at >= _PAUSE_SECONDS

    async def _refresh(self, key_id: str | None) -> bool:
        """Fetch the keys, unless another request has done so meanwhile; tell whether they came for this one."""
        if not self._is_due(key_id):
            return False
        try:
            found = await to_thread.run_sync(self._fetch)
            keys = jwt.PyJWKSet.from_dict(dict(found)).keys
        except (jwt.PyJWTError, OSError, ValueError) as error:
            logger.warning("the keys that tokens are verified with cannot be fetched: %s", error)
            return False
        finally:
            # Not before: whoever comes meanwhile waits for these keys.
            self._tried_at = self._clock()
        self._keys = {each.key_id: each for each in keys if each.public_key_use in ("sig", None)}
        self._fetched_at = self._tried_at
        return True
