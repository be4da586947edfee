"""Whatever is sent, the service answers: never with a status that means that it failed.

The requests are good ones with values, bytes, encodings and headers exchanged, by a seed. What small bodies may cost,
test_attacks.py says.
"""

import json
import os
import random
import uuid
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, create_gateway
from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.bodies import compressed
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint
from langgraph.checkpoint.dynamodb.gateway.serving import RIGHTS
from tests.conftest import MakeSaver
from tests.gateway.conftest import always, client_of
from tests.gateway.recorded import record
from tests.gateway.requests import NOTHING, ODD, example, places_of_values, replaced
from tests.support.examples import percent
from tests.support.seeds import first_seed

pytestmark = pytest.mark.engines("dynamodb-local")

# How many mutated requests are sent; `make fuzz-gateway` sends a hundred times as many as CI.
CASES = int(os.environ.get("LANGGRAPH_DYNAMODB_GATEWAY_CASES", percent(1000)))
EVERYBODY = Principal("fuzz", rights=RIGHTS)
# How many requests of one endpoint are mutated.
RECORDED_MAX = 10
# No mutated request asks for anything that is large; an answer that quotes its request would be.
ANSWER_BYTES_MAX = 1 << 20
# What does not end by then is answered by 504, which is a failure here.
LIMITS = Limits(body_bytes_max=8 << 20, decompressed_bytes_max=16 << 20, request_seconds_max=20)

JSON = "application/json"
_ODD = [*ODD, float("inf"), float("nan"), b"", b"\x00", b"\xff" * 8, bytes(100), bytes(5000), {"N": "x"}]
_ODD += [2**64, 10**30, -(10**30)]
_HEADERS = ["x-request-id", "accept-encoding", "content-encoding", "content-type", "authorization"]
_WORDS = ["gzip", "zstd", "identity", "*/*", "*", JSON, "", ",,;q=", "\xff"]


def make_post(rng: random.Random, recorded: Mapping[str, Sequence[Any]]) -> tuple[Endpoint[Any], bytes, Any]:
    """Make the body and headers of a request that is a little, or very, wrong; sometimes it is good.

    Args:
        rng: The source of all choices.
        recorded: Good requests by endpoint. Others are made from the endpoints' models.
    """
    endpoint = rng.choice(ENDPOINTS)
    # Few threads, so that requests meet what others have stored.
    document = example(endpoint, f"fuzz/{rng.randrange(3)}")
    if rng.random() < 0.7:
        document = rng.choice(recorded.get(endpoint.name, [document]))
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at = rng.choice(list(places_of_values(document)))
        document = replaced(document, at, NOTHING if at and rng.random() < 0.2 else rng.choice(_ODD))
    body = _encoded(document, rng)
    if rng.random() < 0.3:
        body = _damaged(body, rng)
    headers = {"content-type": JSON, "x-request-id": uuid.UUID(int=rng.getrandbits(128)).hex}
    if rng.random() < 0.2:
        headers["content-encoding"], body = _compressed(body, rng)
    if rng.random() < 0.1:
        headers[rng.choice(_HEADERS)] = rng.choice(_WORDS)
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return endpoint, body, sent


def _encoded(document: Any, rng: random.Random) -> bytes:
    return json.dumps(
        document, default=lambda value: b64encode(value).decode(), ensure_ascii=rng.random() < 0.5
    ).encode()


def _damaged(body: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 8))):
        start = rng.randrange(len(damaged) + 1)
        end = min(len(damaged), start + rng.choice((0, 1, 1, 4, 50)))
        damaged[start:end] = rng.randbytes(rng.choice((0, 1, 1, 4))) * rng.choice((1, 1, 1, 500))
    return bytes(damaged)


def _compressed(body: bytes, rng: random.Random) -> tuple[str, bytes]:
    name = rng.choice(("gzip", "zstd"))
    content = compressed(body, name)
    return name, _damaged(content, rng) if rng.random() < 0.5 else content


@pytest.fixture
def gateway(make_saver: MakeSaver) -> Starlette:
    """Give a gateway on a table of its own."""
    return create_gateway(make_saver(), authenticate=always(EVERYBODY), limits=LIMITS)


@pytest.fixture
async def agent(gateway: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of it."""
    async with client_of(gateway) as client:
        yield client


@pytest.fixture
async def recorded(gateway: Starlette, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Sequence[Any]]:
    """Give the smaller ones of the requests that our own clients make, by endpoint."""
    return {
        name: sorted(documents, key=lambda each: len(json.dumps(each)))[:RECORDED_MAX]
        for name, documents in (await record(gateway, monkeypatch)).documents.items()
    }


async def test_mutated_requests_are_their_senders_fault(
    agent: httpx.AsyncClient, recorded: Mapping[str, Sequence[Any]], tell: Callable[[str], None]
) -> None:
    seed = first_seed()
    tell(f"{CASES:,} mutated requests from seed {seed}")
    rng, counts = random.Random(seed), Counter[int]()
    for number in range(CASES):
        endpoint, body, headers = make_post(rng, recorded)
        answer = await agent.post(endpoint.path, content=body, headers=headers)
        what = f"seed {seed}, case {number}: {endpoint.name} {body!r} {headers}"
        said = f"{what} was answered {answer.status_code} {answer.text[:500]}"
        assert answer.status_code < 500, said
        assert len(answer.content) < ANSWER_BYTES_MAX, said
        counts[answer.status_code] += 1
    # They are not all so wrong that nothing but the parsers is tried.
    assert (counts[200] > 5, counts[400] > 50) == (True, True), counts
