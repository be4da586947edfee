"""Whatever is sent, the service answers, and never with a status that means that it failed."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

import httpx
import ormsgpack
import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core import NotSet

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, create_gateway
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.media import JSON, MEDIA, Media
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from tests.gateway.conftest import always
from tests.gateway.mutations import make_post
from tests.support.seeds import fresh_seed

pytestmark = pytest.mark.engines("dynamodb-local")

CASES_VARIABLE = "LANGGRAPH_DYNAMODB_GATEWAY_CASES"
EVERYBODY = Principal("fuzz", rights=RIGHTS)
# What does not end by then is answered by 504, which is a failure here.
LIMITS = Limits(request_seconds_max=20, requests_per_second=1e6, burst_requests=10**6)


@pytest.fixture
def gateway(make_saver: Callable[..., DynamoDBSaver]) -> FastAPI:
    """Give a gateway on a table of its own."""
    return create_gateway(make_saver(), authenticate=always(EVERYBODY), limits=LIMITS)


@pytest.fixture
async def agent(gateway: FastAPI, client_of: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of it."""
    async with client_of(gateway) as client:
        yield client


async def _fuzz(client: httpx.AsyncClient, seed: int, cases: int) -> Counter[int]:
    """Send mutated requests; give how many had which status."""
    rng = random.Random(seed)
    counts: Counter[int] = Counter()
    for number in range(cases):
        post = make_post(rng)
        answer = await client.post(
            f"/checkpoints/{post.endpoint.name}", content=post.body, headers=post.headers
        )
        said = f"seed {seed}, case {number}: {post} was answered {answer.status_code} {answer.text[:500]}"
        assert answer.status_code < 500, said
        # An error in mid-stream is a problem with the status that it would have had.
        assert b'"status":5' not in answer.content, said
        assert b"\xa6status\xcd\x01\xf4" not in answer.content, said
        counts[answer.status_code] += 1
    return counts


async def test_mutated_requests_are_their_senders_fault(agent: httpx.AsyncClient) -> None:
    counts = await _fuzz(agent, seed=1, cases=200)
    # They are not all so wrong that nothing but the parsers is tried.
    assert counts[200] > 10
    assert counts[400] > 50


@pytest.mark.search
async def test_very_many_mutated_requests_are_their_senders_fault(
    agent: httpx.AsyncClient, tell: Callable[[str], None]
) -> None:
    seed, cases = fresh_seed(), int(os.environ.get(CASES_VARIABLE, "10000"))
    tell(f"{cases:,} mutated requests from seed {seed}")
    tell(f"statuses: {await _fuzz(agent, seed, cases)}")


# What the description says, and what it does not allow


def _send_by_description(
    gateway: FastAPI, mode: GenerationMode, examples: int, names: Collection[str]
) -> list[int]:
    """Send so many requests to each of some endpoints as its description allows, or does not; give the statuses."""
    statuses: list[int] = []
    with start_blocking_portal() as portal:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(gateway), base_url="http://localhost")
        quick = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        described = schemathesis.openapi.from_asgi("/openapi.json", gateway)
        for name in names:

            @quick
            @given(described[f"/checkpoints/{name}"]["POST"].as_strategy(mode))
            def send(case: Any) -> None:
                answer = portal.call(_sent, client, case)
                assert answer.status_code < 500, (case.formatted_path, case.body, answer.text)
                statuses.append(answer.status_code)

            send()
        portal.call(client.aclose)
    return statuses


async def _sent(client: httpx.AsyncClient, case: Any) -> httpx.Response:
    headers = {name: value for name, value in dict(case.headers or {}).items() if name.isascii()}
    media = next(each for each in MEDIA if each.name == case.media_type)
    body = b"" if isinstance(case.body, NotSet) else _encoded(case.body, media)
    return await client.request(
        case.method, case.formatted_path, content=body, headers={"content-type": media.name, **headers}
    )


def _encoded(body: Any, media: Media) -> bytes:
    if isinstance(body, bytes):
        return body
    if media is JSON:
        return json.dumps(body).encode("utf-8", "replace")
    try:
        return ormsgpack.packb(body)
    except TypeError:
        # A number of more than 64 bits, or half a surrogate pair: this encoding has neither.
        return b""


_MODES = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda each: each.name
)


@_MODES
def test_what_the_description_says_is_served(gateway: FastAPI, mode: GenerationMode) -> None:
    # Making requests of the larger models takes seconds.
    statuses = _send_by_description(gateway, mode, 10, ("delete-thread",))
    assert (200 if mode is GenerationMode.POSITIVE else 400) in statuses


@pytest.mark.search
@_MODES
def test_very_much_of_what_the_description_says_is_served(
    gateway: FastAPI, mode: GenerationMode, tell: Callable[[str], None]
) -> None:
    statuses = _send_by_description(gateway, mode, 300, [each.name for each in ENDPOINTS])
    tell(f"{mode.name}: {Counter(statuses)}")
