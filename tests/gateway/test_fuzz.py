"""Whatever is sent, the service answers: never with a status that means that it failed, and at little cost."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import httpx
import ormsgpack
import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, create_gateway
from langgraph.checkpoint.dynamodb.gateway.bodies import Decoder
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.media import JSON, MEDIA, Media
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.wire import Message
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from tests.gateway.conftest import MakeClient, always
from tests.gateway.mutations import BULKS, Bulk, Post, make_bulky_post, make_post
from tests.gateway.recorded import Recorded, connected, converse, remember
from tests.gateway.requests import example
from tests.support.seeds import fresh_seed

pytestmark = pytest.mark.engines("dynamodb-local")

# How many mutated requests the searches send. `make fuzz-gateway` sends twenty times as many.
CASES = int(os.environ.get("LANGGRAPH_DYNAMODB_GATEWAY_CASES", "5000"))
EVERYBODY = Principal("fuzz", rights=RIGHTS)
URL = "http://localhost"
# How many requests of one endpoint are mutated.
RECORDED_MAX = 10
# What does not end by then is answered by 504, which is a failure here.
# For a body of the largest size ten times what it takes, and a fifth of what one took whose quotation marks Python
# counted; for others in proportion to their size, beside what every request takes.
CPU_SECONDS_MAX = 1.0
CPU_SECONDS_OF_ANY = 1.0
# No mutated request asks for anything that is large; an answer that quotes its request would be.
ANSWER_BYTES_MAX = 1 << 20
# Bodies are as large as that takes little time; what they cost is in proportion to it.
LIMITS = Limits(body_bytes_max=8 << 20, decompressed_bytes_max=16 << 20, request_seconds_max=20)


@pytest.fixture
def gateway(make_saver: Callable[..., DynamoDBSaver]) -> Starlette:
    """Give a gateway on a table of its own."""
    return create_gateway(make_saver(), authenticate=always(EVERYBODY), limits=LIMITS, plain_json=True)


@pytest.fixture
async def agent(gateway: Starlette, client_of: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of it."""
    async with client_of(gateway) as client:
        yield client


@pytest.fixture
async def recorded(gateway: Starlette, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Sequence[Any]]:
    """Give the smaller ones of the requests that our own clients make, by endpoint."""
    transport = Recorded(gateway)
    clients: list[Any] = []

    def connect(client: Any) -> Any:
        clients.append(connected(client, transport, monkeypatch))
        return client

    await converse(lambda: connect(HttpCheckpointSaver(URL, allow_http=True)))
    await remember(connect(HttpStore(URL)), connect(HttpCache(URL, prefix=("fuzz",))), "fuzz")
    for each in clients:
        await each.aclose()
    return {
        name: sorted(documents, key=lambda each: len(ormsgpack.packb(each)))[:RECORDED_MAX]
        for name, documents in transport.documents.items()
    }


async def _fuzz(
    client: httpx.AsyncClient,
    seed: int,
    cases: int,
    make: Callable[[random.Random], Post],
    statuses: Collection[int] = range(500),
) -> Counter[int]:
    """Send mutated requests; give how many had which status."""
    rng = random.Random(seed)
    counts: Counter[int] = Counter()
    for number in range(cases):
        post = make(rng)
        answer, seconds = await _measured(client, post)
        said = f"seed {seed}, case {number}: {post} was answered {answer.status_code} {answer.text[:500]}"
        assert answer.status_code in statuses, said
        share = post.decompressed_bytes / LIMITS.decompressed_bytes_max
        seconds_max = CPU_SECONDS_OF_ANY + CPU_SECONDS_MAX * share
        for _ in range(2):
            if seconds > seconds_max:
                # The machine may have been busy.
                seconds = min(seconds, (await _measured(client, post))[1])
        assert seconds <= seconds_max, f"{said} after {seconds:.2f} s of CPU"
        assert len(answer.content) < ANSWER_BYTES_MAX, said
        # An error in mid-stream is a problem with the status that it would have had.
        assert b'"status":5' not in answer.content, said
        assert b"\xa6status\xcd\x01\xf4" not in answer.content, said
        counts[answer.status_code] += 1
    return counts


async def _measured(client: httpx.AsyncClient, post: Post) -> tuple[httpx.Response, float]:
    """Send a request; give its answer and the seconds of CPU that it took, its client included."""
    began = time.process_time()
    answer = await client.post(f"/checkpoints/{post.endpoint.name}", content=post.body, headers=post.headers)
    return answer, time.process_time() - began


async def _fuzz_bulky(client: httpx.AsyncClient, seed: int, cases: int) -> dict[Bulk, Counter[int]]:
    """Send so many requests of each kind that is large once it is decompressed; give how many had which status."""
    return {
        kind: await _fuzz(
            client,
            seed,
            cases,
            partial(make_bulky_post, kind=kind, bytes_max=LIMITS.decompressed_bytes_max),
            statuses,
        )
        for kind, statuses in BULKS.items()
    }


async def test_there_are_good_requests_to_mutate_of_each_endpoint(
    agent: httpx.AsyncClient, recorded: Mapping[str, Sequence[Any]]
) -> None:
    # Our clients raise if they are refused. What they do not use has to take what its model says.
    for endpoint in ENDPOINTS:
        if endpoint.name not in recorded:
            answer = await agent.post(f"/checkpoints/{endpoint.name}", json=example(endpoint.model))
            assert answer.status_code == 200, f"let recorded.py make a good {endpoint.name}: {answer.text}"


async def test_mutated_requests_are_their_senders_fault(
    agent: httpx.AsyncClient, recorded: Mapping[str, Sequence[Any]]
) -> None:
    counts = await _fuzz(agent, fresh_seed(), 200, partial(make_post, recorded=recorded))
    # They are not all so wrong that nothing but the parsers is tried.
    assert counts[200] > 5
    assert counts[400] > 50


@pytest.mark.search
async def test_very_many_mutated_requests_are_their_senders_fault(
    agent: httpx.AsyncClient, recorded: Mapping[str, Sequence[Any]], tell: Callable[[str], None]
) -> None:
    seed, cases = fresh_seed(), CASES
    tell(f"{cases:,} mutated requests from seed {seed}")
    tell(f"statuses: {await _fuzz(agent, seed, cases, partial(make_post, recorded=recorded))}")


async def test_small_requests_that_decompress_to_large_ones_cost_little(make_client: MakeClient) -> None:
    # The operations do nothing here: what they cost is a matter of what a request asks for, not of its bytes.
    async with make_client(authenticate=always(EVERYBODY), limits=LIMITS) as client:
        await _fuzz_bulky(client, fresh_seed(), cases=6)


@pytest.mark.search
async def test_very_many_small_requests_that_decompress_to_large_ones_cost_little(
    make_client: MakeClient, tell: Callable[[str], None]
) -> None:
    seed, cases = fresh_seed(), CASES // 200
    tell(f"{cases:,} bulky requests of each kind from seed {seed}")
    async with make_client(authenticate=always(EVERYBODY), limits=LIMITS) as client:
        tell(f"statuses: {await _fuzz_bulky(client, seed, cases)}")


# What the description says, and what it does not allow

_MODELS = {each.name: each.model for each in ENDPOINTS}


def _few(examples: int) -> settings:
    """So many examples, which nothing is kept of."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture
def undecoded(monkeypatch: pytest.MonkeyPatch) -> list[ProblemError]:
    """Give the list of the problems of bodies that the gateway could not decode, as it comes about."""
    problems: list[ProblemError] = []
    decode = Decoder.message

    async def message(*arguments: Any) -> Message:
        try:
            return await decode(*arguments)
        except ProblemError as problem:
            problems.append(problem)
            raise

    monkeypatch.setattr(Decoder, "message", message)
    return problems


def _send_by_description(
    gateway: Starlette,
    mode: GenerationMode,
    examples: int,
    names: Collection[str],
    undecoded: Collection[ProblemError],
) -> list[int]:
    """Send so many requests to each of some endpoints as its description allows, or does not; give the statuses."""
    statuses: list[int] = []
    with start_blocking_portal() as portal:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(gateway), base_url="http://localhost")
        described = schemathesis.openapi.from_asgi("/openapi.json", gateway)
        for name in names:
            strategy = described[f"/checkpoints/{name}"]["POST"].as_strategy(mode)

            @_few(examples)
            @given(st.just(_MODELS[name]), strategy)
            def send(model: type[Message], case: Any) -> None:
                media = next(each for each in MEDIA if each.name == case.media_type)
                answer = portal.call(_sent, client, case, media, _encoded(case.body, media))
                if mode is GenerationMode.POSITIVE:
                    # Its shape is right; what is in it may still be refused, as what no client sealed.
                    model.model_validate(case.body)
                    assert not undecoded, (case.formatted_path, case.body, answer.text)
                assert answer.status_code < 500, (case.formatted_path, case.body, answer.text)
                statuses.append(answer.status_code)

            send()
        portal.call(client.aclose)
    return statuses


async def _sent(client: httpx.AsyncClient, case: Any, media: Media, body: bytes) -> httpx.Response:
    headers = [(b"content-type", media.name.encode())]
    headers += [
        (name.encode(), str(value).encode("utf-8", "replace"))
        for name, value in dict(case.headers or {}).items()
        if name.isascii()
    ]
    return await client.request(case.method, case.formatted_path, content=body, headers=headers)


def _encoded(body: Any, media: Media) -> bytes:
    if isinstance(body, NotSet):
        return b""
    if isinstance(body, bytes):
        return body
    if media is JSON:
        return json.dumps(body).encode("utf-8", "replace")
    try:
        return ormsgpack.packb(body)
    except TypeError:
        # A number of more than 64 bits, or half a surrogate pair: this encoding has neither.
        reject()


_MODES = pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda each: each.name
)


@_MODES
def test_what_the_description_says_is_served(
    gateway: Starlette, mode: GenerationMode, undecoded: list[ProblemError]
) -> None:
    # Making requests of the larger models takes seconds.
    statuses = _send_by_description(gateway, mode, 10, ("delete-thread",), undecoded)
    assert (200 if mode is GenerationMode.POSITIVE else 400) in statuses


@pytest.mark.search
@_MODES
def test_very_much_of_what_the_description_says_is_served(
    gateway: Starlette, mode: GenerationMode, undecoded: list[ProblemError], tell: Callable[[str], None]
) -> None:
    statuses = _send_by_description(gateway, mode, CASES // 200, [each.name for each in ENDPOINTS], undecoded)
    tell(f"{mode.name}: {Counter(statuses)}")
