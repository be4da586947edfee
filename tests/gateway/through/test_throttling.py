"""A table that throttles: through the gateway it gets as many requests as from a saver on the table, and no more.

The endpoint is the model of DynamoDB, and time is virtual.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from functools import partial
from typing import Any, TypeAlias, TypeVar

import httpx
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from langgraph.store.base import PutOp

from langgraph.checkpoint.dynamodb import CheckpointerError, CheckpointerUnavailableError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from langgraph.checkpoint.dynamodb._runtime import attempts, clients
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.gateway import Limits, anybody_on_this_machine, create_gateway
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver, HttpStore
from langgraph.checkpoint.dynamodb.http.exchange import RawResponse
from langgraph.checkpoint.dynamodb.http.transport import TIMEOUT_SECONDS
from langgraph.store.dynamodb import DynamoDBStore
from tests.support.checkpoints import checkpoint_of, thread_config
from tests.support.dynamodb_model import DynamoDBModel
from tests.support.observed import Collected
from tests.support.virtual_time import run_in_virtual_time

T = TypeVar("T")
Throttles: TypeAlias = Callable[[Call], bool]
Run: TypeAlias = Callable[[Callable[["Endpoint"], Coroutine[Any, Any, T]]], T]

TABLE = "threads"
URL = "http://localhost"
# What an operator of a Lambda function sets, and of ECS: infra/gateway.yaml, infra/ecs.yaml.
TEMPLATES = {"lambda": Limits(request_seconds_max=25), "ecs": Limits()}
TIMES_THE_DIRECT_MAX = 1.2


class Endpoint:
    """DynamoDB, which throttles what a test says, for as long as it says."""

    def __init__(self) -> None:
        """Start with an empty table."""
        self.model = DynamoDBModel(table_schema(TABLE), lambda: 1_700_000_000.0)
        self.requests: list[Call] = []
        self.error: Callable[[Call], Exception] = throttled
        self._throttles: Throttles = every
        self._until = 0.0

    def throttle(self, throttles: Throttles, seconds: float = 1000) -> None:
        """Throttle some requests for a time, and begin to count requests."""
        self._throttles, self._until = throttles, asyncio.get_running_loop().time() + seconds
        self.requests.clear()

    async def answer(self, call: Call) -> Any:
        """Answer a request, once."""
        now = asyncio.get_running_loop().time()
        self.requests.append(call)
        await asyncio.sleep(0.01)
        if now < self._until and self._throttles(call):
            raise self.error(call)
        params = {name: value for name, value in call.params.items() if name != "ReturnConsumedCapacity"}
        return self.model.handle(call.method, params)


def throttled(call: Call) -> ClientError:
    """Return DynamoDB's error for a hot partition."""
    reason = {
        "reason": "TableWriteKeyRangeThroughputExceeded",
        "resource": "arn:aws:dynamodb:eu-west-1:123456789012:table/t",
    }
    response: Any = {
        "Error": {"Code": "ThrottlingException", "Message": "Throughput exceeds the limit"},
        "ThrottlingReasons": [reason],
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(response, call.method)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run[Any]:
    """Give what runs a coroutine in virtual time with an endpoint, which answers all savers and stores meanwhile."""

    def run(main: Callable[[Endpoint], Coroutine[Any, Any, Any]]) -> Any:
        endpoint = Endpoint()
        monkeypatch.setattr(clients.Clients, "asend_once", lambda _clients, call: endpoint.answer(call))
        return run_in_virtual_time(main(endpoint), monkeypatch)

    return run


class Services:
    """A gateway in this process, and what its clients wait for."""

    def __init__(self, limits: Limits) -> None:
        """Start a service on a saver of its own."""
        app = create_gateway(
            DynamoDBSaver(TABLE, region_name="eu-west-1"), authenticate=anybody_on_this_machine, limits=limits
        )
        self._transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1))

    def connect(self, client: T) -> T:
        """Let a client reach the service."""
        transport: Any = getattr(client, "transport")  # noqa: B009 - the type of the client is open.
        transport.asend_once = self._send
        return client

    async def _send(self, request: Callable[[], dict[str, Any]]) -> RawResponse:
        async with httpx.AsyncClient(transport=self._transport, base_url=URL) as http:
            sent = http.build_request(**request())
            try:
                return await asyncio.wait_for(self._reply(http, sent), TIMEOUT_SECONDS)
            except asyncio.TimeoutError as error:
                raise httpx.ReadTimeout("", request=sent) from error

    async def _reply(self, http: httpx.AsyncClient, sent: httpx.Request) -> RawResponse:
        response = await http.send(sent, stream=True)
        body = b"".join([each async for each in response.aiter_raw()])
        # A server tells its time, by which the client tells its deadline.
        response.headers["Date"] = formatdate(time.time(), usegmt=True)
        return RawResponse(response.status_code, response.headers, body)


async def put(saver: Any, number: int, thread: str = "t") -> None:
    """Put a checkpoint."""
    state = {"n": number, "text": f"{number} " * 10}
    versions: Any = dict.fromkeys(state, number)
    await saver.aput(thread_config(thread), checkpoint_of(f"{number:03}", state), {}, versions)


def direct(**options: Any) -> DynamoDBSaver:
    """Make a saver on the table."""
    return DynamoDBSaver(TABLE, region_name="eu-west-1", **options)


def remote(**options: Any) -> HttpCheckpointSaver:
    """Make a saver that reaches the table through a gateway."""
    return HttpCheckpointSaver(URL, **options)


def is_write(call: Call) -> bool:
    """Tell whether a request stores something."""
    return "write" in call.method or call.method in ("put_item", "update_item", "delete_item")


def every(_call: Call) -> bool:
    """Tell that any request is throttled."""
    return True


def now_and_then() -> Throttles:
    """Return what throttles one request in four, at random: in turn, it could be the same one of each attempt."""
    rng = random.Random(7)
    return lambda _: rng.random() < 0.25


def writes_but_the_first() -> Throttles:
    """Return what throttles all writes but one, so that a request has stored something when it has to wait."""
    first: list[Call] = []

    def throttles(call: Call) -> bool:
        if is_write(call) and not first:
            first.append(call)
            return False
        return is_write(call)

    return throttles


async def error_of(saver: Any, puts: int = 1) -> Exception | None:
    """Put checkpoints; return the error that ends this."""
    try:
        for number in range(1, 1 + puts):
            await put(saver, number)
    except (CheckpointerError, ClientError) as error:
        return error
    return None


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    ("throttles", "seconds", "puts", "is_warm"),
    [
        pytest.param(lambda: every, 1000, 1, True, id="for long"),
        pytest.param(lambda: every, 20, 3, True, id="for a while"),
        pytest.param(lambda: is_write, 1000, 1, False, id="writes for long"),
        pytest.param(lambda: is_write, 40, 3, True, id="writes for a while"),
        pytest.param(now_and_then, 1000, 20, True, id="now and then"),
    ],
)
def test_a_table_that_throttles_gets_as_many_requests_as_from_a_saver_on_it(
    template: str, throttles: Callable[[], Throttles], seconds: float, puts: int, is_warm: bool, run: Run[Any]
) -> None:
    async def course(saver: Any, endpoint: Endpoint) -> tuple[int, bool]:
        if is_warm:
            await put(saver, 0)
        endpoint.throttle(throttles(), seconds)
        error = await error_of(saver, puts)
        return len(endpoint.requests), error is None

    near, goes_well = run(partial(course, direct()))
    far = run(partial(course, Services(TEMPLATES[template]).connect(remote())))
    assert far[0] <= TIMES_THE_DIRECT_MAX * near
    assert far[1] == goes_well == (seconds < 60 or puts == 20)


@pytest.mark.parametrize(
    "is_throttled",
    [pytest.param(is_write, marks=pytest.mark.search, id="writes"), pytest.param(every, id="all")],
)
def test_a_hot_thread_does_not_delay_another_one_of_its_principal(
    is_throttled: Throttles, run: Run[float]
) -> None:
    async def main(endpoint: Endpoint) -> float:
        loop, service = asyncio.get_running_loop(), Services(Limits(in_flight_max=4))
        hot, cold = service.connect(remote(retry_seconds=20)), service.connect(remote())
        await put(cold, 0, "cold")
        endpoint.throttle(lambda call: "hot" in str(call.params) and is_throttled(call))
        puts = [asyncio.create_task(put(hot, number, "hot")) for number in range(60)]
        await asyncio.sleep(3)
        began = loop.time()
        await put(cold, 1, "cold")
        passed = loop.time() - began
        assert not any(each.done() for each in puts)
        errors = await asyncio.gather(*puts, return_exceptions=True)
        assert all(isinstance(each, CheckpointerError) for each in errors)
        await put(cold, 2, "cold")
        return passed

    # What the requests to the table take, and no wait for a turn.
    assert run(main) < 0.2


@pytest.mark.parametrize("throttles", [lambda: is_write, writes_but_the_first])
def test_a_copy_outlasts_a_table_that_throttles_for_longer_than_a_request(
    throttles: Callable[[], Throttles],
    run: Run[int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def copied(saver: Any, endpoint: Endpoint) -> int:
        for number in range(3):
            await put(saver, number)
        # For longer than one request may take.
        endpoint.throttle(throttles(), 40)
        await saver.acopy_thread("t", "copy")
        return sum(not is_write(call) for call in endpoint.requests)

    near = run(partial(copied, direct()))
    caplog.clear()
    monkeypatch.setattr(attempts, "_silent_until", 0.0)
    # Each attempt of its client reads the thread again.
    assert run(partial(copied, Services(Limits(request_seconds_max=25)).connect(remote()))) >= near
    assert "Trying again" in caplog.text


@pytest.mark.parametrize("error", [throttled, lambda _: EndpointConnectionError(endpoint_url="http://table")])
def test_the_agent_is_told_that_the_table_throttles_or_does_not_answer(
    error: Callable[[Call], Exception],
    run: Run[Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(endpoint: Endpoint) -> Exception | None:
        saver = Services(Limits()).connect(remote(on_event=events))
        await put(saver, 0)
        endpoint.error = error
        endpoint.throttle(every)
        return await error_of(saver)

    monkeypatch.setattr(attempts, "_silent_until", 0.0)
    events, is_throttled = Collected(), error is throttled
    with caplog.at_level(logging.WARNING):
        failure = run(main)
    told = str(failure)
    assert isinstance(failure, CheckpointerUnavailableError)
    assert failure.code == ("ThrottlingException" if is_throttled else None)
    assert (failure.attempts or 0) > 10
    assert re.fullmatch(r"[0-9a-f]{32}", failure.request_id or "")
    says = "throttles the gateway's table: one partition key gets more requests than DynamoDB allows"
    says = f"DynamoDB {says}" if is_throttled else "the gateway's table does not answer"
    assert says in told
    # The account of the table is nobody's business.
    assert "123456789012" not in told
    warnings = [each.getMessage() for each in caplog.records if "Trying again" in each.getMessage()]
    assert any(says in each for each in warnings)
    event = events.last("put")
    assert (event.throttled > 10) == is_throttled
    assert event.waited_seconds > 30


def test_a_large_batch_goes_on_where_it_was(run: Run[int]) -> None:
    async def main(store: Any, endpoint: Endpoint) -> int:
        await store.aput(("acme", "u1"), "first", {})
        endpoint.throttle(now_and_then())
        await store.abatch([PutOp(("acme", "u1"), f"{number}", {"n": number}) for number in range(200)])
        return len(endpoint.requests)

    near = run(partial(main, DynamoDBStore(TABLE, region_name="eu-west-1")))
    far = run(partial(main, Services(Limits()).connect(HttpStore(URL))))
    assert far <= TIMES_THE_DIRECT_MAX * near


@pytest.mark.parametrize("throttled_key", ["M#notes/#1", "P#u1/"], ids=["a memory", "the register"])
def test_what_the_table_was_too_busy_for_is_sent_again_alone(throttled_key: str, run: Run[None]) -> None:
    """One put of a partition is enough to look whether it is still registered."""
    namespace = ("acme", "u1", "notes")

    async def main(endpoint: Endpoint) -> None:
        store = Services(Limits()).connect(HttpStore(URL))
        await store.aput(namespace, "first", {})
        endpoint.throttle(lambda call: call.params.get("Key", {}).get("SK") == {"S": throttled_key}, 70)
        await store.abatch([PutOp(namespace, f"{number}", {"n": number}) for number in range(3)])
        sent = [call.params["Key"]["SK"]["S"] for call in endpoint.requests]
        assert sent.count("M#notes/#0") == 1
        assert sent.count(throttled_key) > 1
        assert len(await store.asearch(namespace)) == 4

    run(main)
