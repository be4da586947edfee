"""JSON Web Tokens: what is accepted, what is not, and how often the issuer is asked for its keys."""

import asyncio
import base64
import hmac
import json
import threading
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm

from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.authentication import JsonWebTokens, JwtOptions, KeySet
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.settings import PrincipalsOptions
from tests.gateway.conftest import connection
from tests.support.http_stand_in import Answer, http_stand_in

ISSUER, AUDIENCE = "https://issuer.example", "threads"
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("one", "two", "unknown")}
PUBLIC_KEY = KEYS["one"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
OTHER = ed25519.Ed25519PrivateKey.generate()


def published(*names: str) -> dict[str, Any]:
    """The key set with these keys."""
    keys = [json.loads(ECAlgorithm.to_jwk(KEYS[name].public_key())) | {"kid": name} for name in names]
    return {"keys": keys}


class Issuer:
    """Publishes keys, counts how often it is asked, and takes as long as a test likes; its clock stands still."""

    def __init__(self) -> None:
        """Publish a key."""
        self.keys: Any = published("one")
        self.asked = 0
        self.now = 1000.0
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def __call__(self) -> Any:
        """Give the keys once it may."""
        self.begun.set()
        self.go_on.wait()
        self.asked += 1
        if isinstance(self.keys, Exception):
            raise self.keys
        return self.keys


def token(kid: str | None = "one", key: Any = None, algorithm: str = "ES256", **claims: Any) -> str:
    """A token as the issuer makes it, but for what is said."""
    whole = {"iss": ISSUER, "aud": AUDIENCE, "sub": "me", "exp": time.time() + 60, **claims}
    given = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(
        given, key or KEYS[kid or "one"], algorithm=algorithm, headers={} if kid is None else {"kid": kid}
    )


def options(**given: Any) -> JwtOptions:
    """How the issuer's tokens are verified, and what their claims mean."""
    keys = "https://issuer.example/keys"
    return JwtOptions(jwks_url=keys, issuer=ISSUER, audience=AUDIENCE, algorithms=["ES256"], **given)


def tokens(issuer: Any = None, **given: Any) -> JsonWebTokens:
    """What accepts the issuer's tokens."""
    return JsonWebTokens(options(**given), issuer or Issuer())


async def principal_of(text: str, ways: JsonWebTokens | None = None) -> Principal | None:
    return await (ways or tokens())(connection(headers={"authorization": f"Bearer {text}"}))


@pytest.mark.parametrize(
    ("given", "claims", "principal"),
    [
        ({}, {"sub": "me"}, Principal("me")),
        ({"tenant": "acme"}, {"sub": "me", "tenant": "other"}, Principal("me", "acme")),
        ({"name_claim": "client_id"}, {"client_id": "me", "sub": "x"}, Principal("me")),
        ({"tenant_claim": "org"}, {"sub": "me", "org": "acme"}, Principal("me", "acme")),
        ({"tenant_claim": "org"}, {"sub": "me"}, None),
        ({"tenant_claim": "org"}, {"sub": "me", "org": None}, None),
        ({"tenant_claim": "org"}, {"sub": "me", "org": "a/b"}, None),
        ({"tenant_claim": "org"}, {"sub": "me", "org": ["acme"]}, None),
        ({"owner_claim": "sub"}, {"sub": "me"}, Principal("me", owner="me")),
        ({"owner_claim": "o", "tenant": "a"}, {"sub": "me", "o": "../b"}, Principal("me", "a", owner="../b")),
        ({"owner_claim": "user"}, {"sub": "me"}, None),
        ({"owner_claim": "user"}, {"sub": "me", "user": "acme/ada"}, None),
        ({"owner_claim": "user"}, {"sub": "me", "user": ["ada"]}, None),
        ({}, {"sub": 7}, None),
        ({}, {}, None),
    ],
)
def test_claims_say_who_and_whose(given: Any, claims: Any, principal: Principal | None) -> None:
    assert options(**given).principal(claims) == principal


@pytest.mark.parametrize(
    ("claim", "rights"),
    [
        ("openid t:read t:write", {"read", "write"}),
        (["t:read", 7, None], {"read"}),
        ("[t:read t:administer]", set()),
        ("read t:all", set()),
        ({"t:read": True}, set()),
        (None, set()),
    ],
)
def test_claims_say_what_they_may_do(claim: Any, rights: set[str]) -> None:
    found: Any = options(rights_claim="scope", rights_prefix="t:").principal({"sub": "me", "scope": claim})
    assert found.rights == rights


def text_of(part: bytes) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def crafted(header: Any, secret: bytes = b"") -> str:
    """A token that no library would make: any header, signed by a secret, or not at all."""
    text = f"{text_of(json.dumps(header).encode())}.{token().split('.')[1]}"
    signature = hmac.digest(secret, text.encode(), "sha256") if secret else b""
    return f"{text}.{text_of(signature)}"


DEEP = text_of(b'{"alg":"ES256","kid":' + b"[" * 20_000)


NOT_ACCEPTED = {
    "expired": lambda: token(exp=time.time() - 60),
    "not yet": lambda: token(nbf=time.time() + 60),
    "without an end": lambda: token(exp=None),
    "of another issuer": lambda: token(iss="https://evil.example"),
    "without an issuer": lambda: token(iss=None),
    "for another audience": lambda: token(aud="others"),
    "without an audience": lambda: token(aud=None),
    "of nobody": lambda: token(sub=None),
    "by a key that is not published": lambda: token("unknown"),
    "by another key under its name": lambda: token("one", KEYS["two"]),
    "without the name of a key": lambda: token(None),
    "with a name that is no text": lambda: crafted({"alg": "ES256", "kid": 1}),
    "by another algorithm": lambda: token("one", OTHER, "EdDSA"),
    "by a secret": lambda: token("one", "s" * 64, "HS256"),
    "by the public key as a secret": lambda: crafted({"alg": "HS256", "kid": "one"}, PUBLIC_KEY),
    "not signed": lambda: crafted({"alg": "ES256", "kid": "one"}),
    "with a key of its own": lambda: crafted(
        {"alg": "HS256", "kid": "one", "jwk": {"kty": "oct", "k": "cw"}}, b"s"
    ),
    "no token": lambda: "a.b.c",
    "of bytes": lambda: "\udcff.é.0".encode("utf-8", "replace").decode("latin-1"),
    "nested too deep": lambda: f"{DEEP}.e30.c2ln",
}


@pytest.mark.parametrize("make", NOT_ACCEPTED.values(), ids=NOT_ACCEPTED)
async def test_what_is_not_valid_is_nobody(make: Any) -> None:
    assert await principal_of(make()) is None


async def test_what_is_no_token_of_this_kind_asks_for_no_keys() -> None:
    issuer = Issuer()
    assert await principal_of("a-random-token", tokens(issuer)) is None
    assert await tokens(issuer)(connection()) is None
    assert issuer.asked == 0


async def test_a_valid_token_says_who_it_is_and_clocks_may_differ_by_the_leeway() -> None:
    given = token(exp=time.time() - 1, org="acme")
    assert await principal_of(given, tokens(tenant_claim="org")) == Principal("me", "acme")


# Keys


@pytest.fixture
def issuer() -> Issuer:
    """Give an issuer."""
    return Issuer()


@pytest.fixture
def keys(issuer: Issuer) -> KeySet:
    """Give its keys, by its clock."""
    return KeySet(issuer, lambda: issuer.now)


async def status_of(keys: KeySet, name: str | None) -> int:
    """The status that a token of this key is answered by, as far as the key goes."""
    try:
        return 401 if await keys.key(name) is None else 200
    except ProblemError as problem:
        # It says when somebody may ask the issuer again.
        return problem.status if problem.headers["Retry-After"] in ("10", "11", "12") else 0


async def test_a_new_key_is_found_and_an_old_one_goes(issuer: Issuer, keys: KeySet) -> None:
    assert await keys.key("one") is not None
    issuer.keys = published("two")
    issuer.now += 11
    assert await keys.key("two") is not None
    # Until the issuer may be asked again, the key may be new.
    assert await status_of(keys, "one") == 503
    issuer.keys = published("one")
    issuer.now += 301
    assert await keys.key("two") is None
    assert issuer.asked == 3


@pytest.mark.parametrize("failure", [None, OSError("503 Service Unavailable")], ids=["stranger", "issuer"])
async def test_who_has_a_new_key_is_told_to_come_again_until_it_is_known(
    issuer: Issuer, keys: KeySet, failure: Any
) -> None:
    assert await status_of(keys, "one") == 200
    issuer.now += 60
    if failure is not None:
        issuer.keys = failure
    assert await status_of(keys, "made-up") == (401 if failure is None else 503)
    issuer.keys = published("one", "two")
    issuer.now += 0.5
    # A 401 would be the end of it: a client sends such a request once.
    assert await status_of(keys, "two") == 503
    assert await status_of(keys, "one") == 200
    issuer.now += 10
    # Strangers may open the window. They cannot keep it shut.
    assert await status_of(keys, "made-up") == 401
    assert await status_of(keys, "two") == 200


async def test_who_waits_for_keys_that_were_asked_for_before_is_not_refused_for_good(
    issuer: Issuer, keys: KeySet
) -> None:
    issuer.go_on.clear()
    first = asyncio.create_task(status_of(keys, "made-up"))
    await asyncio.to_thread(issuer.begun.wait)
    issuer.now += 1
    second = asyncio.create_task(status_of(keys, "two"))
    await asyncio.sleep(0)
    issuer.go_on.set()
    assert await first == 401
    assert await second == 503


async def test_keys_for_encryption_verify_nothing(issuer: Issuer, keys: KeySet) -> None:
    issuer.keys["keys"].append(
        json.loads(OKPAlgorithm.to_jwk(OTHER.public_key())) | {"kid": "e", "use": "enc"}
    )
    assert await keys.key("e") is None


@pytest.mark.parametrize("failure", [OSError("no route"), jwt.PyJWTError("?"), {"keys": []}, {}])
async def test_while_the_issuer_fails_what_was_fetched_counts_for_a_day(
    issuer: Issuer, keys: KeySet, failure: Any
) -> None:
    assert await keys.key("one") is not None
    issuer.keys = failure
    issuer.now += 12 * 60 * 60
    assert await keys.key("one") is not None
    assert await keys.key("one") is not None
    assert issuer.asked == 2
    issuer.now += 13 * 60 * 60
    with pytest.raises(ProblemError) as caught:
        await keys.key("one")
    assert caught.value.status == 503
    assert "Retry-After" in caught.value.headers


async def test_many_at_once_wait_for_one_answer_and_who_has_a_key_for_none(
    issuer: Issuer, keys: KeySet
) -> None:
    issuer.go_on.clear()
    first = [asyncio.create_task(keys.key("one")) for _ in range(10)]
    await asyncio.to_thread(issuer.begun.wait)
    issuer.go_on.set()
    assert all(await asyncio.gather(*first))
    issuer.now += 301
    issuer.begun.clear()
    issuer.go_on.clear()
    issuer.keys = published("two")
    waiting = [asyncio.create_task(keys.key("two")) for _ in range(10)]
    await asyncio.to_thread(issuer.begun.wait)
    assert await keys.key("one") is not None
    issuer.go_on.set()
    assert all(await asyncio.gather(*waiting))
    assert issuer.asked == 2


async def test_keys_come_over_http() -> None:
    with http_stand_in() as issuer:
        issuer.always = Answer(body=json.dumps(published("one")).encode())
        verified = options(tenant="acme").model_dump() | {"jwks_url": f"{issuer.address}/keys"}
        authenticate: Any = PrincipalsOptions.model_validate({"jwt": verified}).authenticate()
        assert await principal_of(token(), authenticate) == Principal("me", "acme")
        assert await principal_of(token("one", KEYS["two"]), authenticate) is None
