"""One saver for many tenants: each request is signed by its tenant, and none without one."""

import asyncio
import contextlib
import datetime
import gc
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from langgraph.graph import START, MessagesState, StateGraph
from moto import mock_aws

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    CheckpointerInputError,
    DynamoDBSaver,
    ThreadLockLostError,
)
from langgraph.checkpoint.dynamodb.tenants import AssumeTenantRole, TenantCredentials
from tests.support.checkpoints import noise, store, thread_config
from tests.support.forks import exit_statuses, fork, forking
from tests.support.operations import Side, both_sides
from tools.engine import Engine

TENANTS = [f"tenant{number}" for number in range(30)]
# DynamoDB Local takes keys of letters and digits only.
_KEY = re.compile(r"Credential=(\w+)/")


class Broker:
    """A source of credentials whose keys are the tenants' names."""

    def __init__(self) -> None:
        """Start without having been asked."""
        self.asked: Counter[str] = Counter()
        self.now = time.time()
        self.error: Exception | None = None
        self.lasts = 3600.0
        self._lock = threading.Lock()

    def __call__(self, tenant: str) -> Mapping[str, Any]:
        """Return a tenant's credentials, as STS does."""
        with self._lock:
            self.asked[tenant] += 1
        if self.error is not None:
            raise self.error
        return {
            "AccessKeyId": tenant,
            "SecretAccessKey": "secret",
            "SessionToken": f"{tenant}-{self.asked[tenant]}",
            "Expiration": datetime.datetime.fromtimestamp(self.now + self.lasts, datetime.timezone.utc),
            "AccountId": "123456789012",
        }


class Signed:
    """Who signed which partitions, as the requests that are sent say."""

    def __init__(self) -> None:
        """Start without a request."""
        self.requests: list[tuple[str, str]] = []

    def watch(self, events: Any) -> None:
        """Listen to the hooks of a session."""
        events.register("before-send.dynamodb", self._before_send)

    def _before_send(self, request: Any, **_: Any) -> None:
        header = request.headers.get("Authorization", b"")
        found = _KEY.search(header.decode() if isinstance(header, bytes) else header)
        body = request.body.decode() if isinstance(request.body, bytes) else str(request.body)
        self.requests.append((found[1] if found else "nobody", body))

    def wrong(self) -> list[tuple[str, str]]:
        """Return requests whose signer is not the tenant of every thread that they name."""
        return [
            (signer, body)
            for signer, body in self.requests
            if set(re.findall(r"(tenant\d+)/", body)) - {signer} or signer == "nobody"
        ]


@pytest.fixture
def broker() -> Broker:
    """Give a source of credentials."""
    return Broker()


@pytest.fixture
def credentials(broker: Broker) -> TenantCredentials:
    """Give credentials of the broker's."""
    return TenantCredentials(broker, clock=lambda: broker.now)


@pytest.fixture
def signed() -> Signed:
    """Give what sees every signed request."""
    return Signed()


@pytest.fixture
async def saver(
    engine: Engine, table_name: str, credentials: TenantCredentials, signed: Signed
) -> AsyncIterator[DynamoDBSaver]:
    """Give one saver for all tenants."""
    session = credentials.session()
    signed.watch(session.events)
    saver = DynamoDBSaver(
        table_name, endpoint_url=engine.endpoint_url, region_name=engine.region_name, session=session
    )
    native = await asyncio.to_thread(saver.transport.async_client)
    signed.watch(native.meta.events)
    yield saver
    await saver.aclose()


def _agent(saver: DynamoDBSaver) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [("ai", noise(20_000).hex())]})
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


_QUESTION: Any = {"messages": [("user", "hello")]}


def _config(tenant: str) -> Any:
    return thread_config(f"{tenant}/1")


# Who signs


@pytest.mark.engines("dynamodb-local")
@both_sides
async def test_each_request_of_many_tenants_at_once_is_signed_by_its_own(
    saver: DynamoDBSaver, credentials: TenantCredentials, signed: Signed, broker: Broker, side: Side
) -> None:
    agent = _agent(saver)

    async def turn(tenant: str) -> None:
        with credentials.tenant(tenant):
            if side == "async":
                await agent.ainvoke(_QUESTION, _config(tenant))
            else:
                await asyncio.to_thread(agent.invoke, _QUESTION, _config(tenant))

    await asyncio.gather(*map(turn, TENANTS))
    assert not signed.wrong()
    assert {signer for signer, _ in signed.requests} == {*TENANTS}
    assert len(signed.requests) > 10 * len(TENANTS)
    assert broker.asked == dict.fromkeys(TENANTS, 1)


async def test_without_a_tenant_nothing_is_sent(saver: DynamoDBSaver, signed: Signed, broker: Broker) -> None:
    with pytest.raises(CheckpointerConfigurationError, match="no tenant is set"):
        await saver.aget_tuple(_config("tenant1"))
    with pytest.raises(CheckpointerConfigurationError, match="no tenant is set"):
        await asyncio.to_thread(saver.get_tuple, _config("tenant1"))
    assert not signed.requests
    assert not broker.asked


def test_a_tenant_ends_with_its_block(
    saver: DynamoDBSaver, credentials: TenantCredentials, signed: Signed
) -> None:
    with credentials.tenant("tenant1"):
        store(saver, _config("tenant1"), "1", {"a": 1})
        with credentials.tenant("tenant2"):
            assert saver.get_tuple(_config("tenant2")) is None
        assert saver.get_tuple(_config("tenant1")) is not None
    with pytest.raises(CheckpointerConfigurationError):
        saver.get_tuple(_config("tenant1"))
    assert not signed.wrong()


def test_a_lock_is_renewed_by_the_tenant_that_holds_it(
    saver: DynamoDBSaver, credentials: TenantCredentials, signed: Signed, caplog: pytest.LogCaptureFixture
) -> None:
    with credentials.tenant("tenant1"), saver.thread_lock("tenant1/1", ttl=1):
        before = len(signed.requests)
        until = time.monotonic() + 10
        while len(signed.requests) < before + 2 and time.monotonic() < until:
            time.sleep(0.02)
    assert len(signed.requests) >= before + 2
    assert not signed.wrong()
    assert not caplog.records


@pytest.mark.parametrize("name", ["", "a/b", "acme/", "a b", "*", "a" * 129, None, 1])
def test_what_is_no_tenant_s_name_is_refused(credentials: TenantCredentials, name: Any) -> None:
    with pytest.raises(CheckpointerInputError, match="is not a tenant's name"), credentials.tenant(name):
        pass


# When they are fetched


def _token(credentials: TenantCredentials, tenant: str = "tenant1") -> str | None:
    with credentials.tenant(tenant):
        token: str | None = credentials.current().token
        return token


def test_they_are_fetched_again_before_they_expire(credentials: TenantCredentials, broker: Broker) -> None:
    assert _token(credentials) == "tenant1-1"
    broker.now += broker.lasts - 301
    assert _token(credentials) == "tenant1-1"
    broker.now += 2
    assert _token(credentials) == "tenant1-2"


def test_old_ones_do_while_none_can_be_fetched_until_they_expire(
    credentials: TenantCredentials, broker: Broker
) -> None:
    assert _token(credentials) == "tenant1-1"
    broker.error = ConnectionError("no broker")
    broker.now += broker.lasts - 299
    # The broker is not asked again for some seconds.
    assert {_token(credentials) for _ in range(20)} == {"tenant1-1"}
    assert broker.asked["tenant1"] == 2
    broker.now += 298
    assert _token(credentials) == "tenant1-1"
    assert broker.asked["tenant1"] == 3
    broker.now += 2
    with pytest.raises(ConnectionError):
        _token(credentials)
    broker.error = None
    assert _token(credentials) == "tenant1-5"


# What a slow or failing broker costs


class HeldBroker(Broker):
    """A broker that answers some tenants only when a test lets it."""

    def __init__(self, *held: str) -> None:
        """Hold back the answers for these tenants."""
        super().__init__()
        self.held = {*held}
        self.is_asked = threading.Event()
        self.goes_on = threading.Event()
        self.threads: Counter[str] = Counter()

    def __call__(self, tenant: str) -> Mapping[str, Any]:
        """Return a tenant's credentials when it may."""
        if tenant in self.held:
            self.threads[threading.current_thread().name] += 1
            self.is_asked.set()
            assert self.goes_on.wait(60)
        return super().__call__(tenant)


def test_while_one_caller_fetches_anew_the_others_use_the_old_ones() -> None:
    broker = HeldBroker()
    credentials = TenantCredentials(broker, clock=lambda: broker.now)
    assert _token(credentials) == "tenant1-1"
    broker.now += broker.lasts - 299
    broker.held = {"tenant1"}
    with ThreadPoolExecutor(1) as pool:
        refreshing = pool.submit(_token, credentials)
        assert broker.is_asked.wait(60)
        # The broker answers none of these before they have what they ask for.
        assert [_token(credentials) for _ in range(20)] == ["tenant1-1"] * 20
        broker.goes_on.set()
        assert refreshing.result(60) == "tenant1-2"
    assert _token(credentials) == "tenant1-2"


async def test_all_who_wait_share_one_fetch_and_its_error() -> None:
    broker = HeldBroker("tenant1")
    broker.error = ConnectionError("no broker")
    credentials = TenantCredentials(broker, clock=lambda: broker.now)
    with credentials.tenant("tenant1"):
        waiting = [asyncio.create_task(credentials.acurrent()) for _ in range(8)]
    await asyncio.sleep(0)
    broker.goes_on.set()
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(each) for each in errors] == ["no broker"] * 8
    assert broker.asked["tenant1"] == 1


async def test_a_slow_tenant_takes_one_thread_and_delays_no_other() -> None:
    broker = HeldBroker("slow")
    credentials = TenantCredentials(broker, clock=lambda: broker.now)
    # As few threads as a container may have: none is left for others if a waiter took it.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    with credentials.tenant("slow"):
        slow = [asyncio.create_task(credentials.acurrent()) for _ in range(12)]
    await asyncio.sleep(0)
    with credentials.tenant("fast"):
        assert (await asyncio.wait_for(credentials.acurrent(), 60)).access_key == "fast"
    # The default executor has its thread, too.
    assert await asyncio.wait_for(asyncio.to_thread(broker.is_asked.wait, 60), 60)
    assert sum(broker.threads.values()) == 1
    # One that gives up leaves the others' fetch alone.
    slow[0].cancel()
    await asyncio.sleep(0)
    broker.goes_on.set()
    assert {each.token for each in await asyncio.gather(*slow[1:])} == {"slow-1"}
    assert slow[0].cancelled()
    assert broker.asked["slow"] == 1


async def test_many_tenants_at_once_take_a_bounded_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.tenants._THREADS_MAX", 3)
    broker = HeldBroker(*TENANTS)
    credentials = TenantCredentials(broker, clock=lambda: broker.now)
    asking = []
    for tenant in TENANTS:
        with credentials.tenant(tenant):
            asking.append(asyncio.create_task(credentials.acurrent()))
    await asyncio.sleep(0)
    await asyncio.to_thread(broker.is_asked.wait, 60)
    broker.goes_on.set()
    assert [each.access_key for each in await asyncio.gather(*asking)] == TENANTS
    assert broker.asked == dict.fromkeys(TENANTS, 1)
    assert len(broker.threads) <= 3


def test_a_broker_that_hangs_keeps_no_process_from_ending() -> None:
    program = """
import threading
from langgraph.checkpoint.dynamodb.tenants import TenantCredentials

asked = threading.Event()

def fetch(tenant):
    asked.set()
    threading.Event().wait()

def ask():
    with credentials.tenant("acme"):
        credentials.current()

credentials = TenantCredentials(fetch)
threading.Thread(target=ask, daemon=True).start()
assert asked.wait(60)
print("ends")
"""
    ended = subprocess.run(  # noqa: S603 - our own program.
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "ends\n"), ended.stderr


# What a broker may answer


async def _coroutine(_: str) -> Mapping[str, Any]:
    return {}


_PRIVATE = "that-nobody-may-see"
_COMPLETE: dict[str, Any] = {
    "AccessKeyId": _PRIVATE,
    "SecretAccessKey": _PRIVATE,
    "SessionToken": _PRIVATE,
    "Expiration": datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc),
}


@pytest.mark.parametrize(
    ("fetch", "says"),
    [
        (lambda _: None, "returned a value of type NoneType"),
        (
            lambda _: {"Credentials": _COMPLETE},
            "without AccessKeyId, SecretAccessKey, SessionToken, Expiration",
        ),
        (lambda _: _COMPLETE | {"Expiration": "2100-01-01T00:00:00Z"}, "whose Expiration is of type str"),
        (lambda _: _COMPLETE | {"SecretAccessKey": None}, "whose SecretAccessKey is of type NoneType"),
        (_coroutine, "returned a coroutine"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_named_without_a_value(fetch: Any, says: str) -> None:
    credentials = TenantCredentials(fetch)
    with credentials.tenant("tenant1"):
        for side in (credentials.acurrent, lambda: asyncio.to_thread(credentials.current)):
            with pytest.raises(CheckpointerConfigurationError) as caught:
                await side()
            assert says in str(caught.value)
            assert "AccessKeyId, SecretAccessKey and SessionToken as texts, and Expiration as a" in str(
                caught.value
            )
            assert _PRIVATE not in str(caught.value)
    gc.collect()


def test_those_used_last_are_kept(broker: Broker) -> None:
    credentials = TenantCredentials(broker, tenants_max=2)
    for tenant in ("a", "b", "a", "c", "a", "b"):
        _token(credentials, tenant)
    assert broker.asked == {"a": 1, "b": 2, "c": 1}


def test_a_property_that_is_asked_for_later_is_the_tenant_s(credentials: TenantCredentials) -> None:
    found: Any = credentials.session().get_credentials()
    of_account = found.get_deferred_property("account_id")
    with credentials.tenant("tenant1"):
        assert of_account() == "123456789012"
    with pytest.raises(CheckpointerConfigurationError):
        of_account()


# Forks


@forking
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_child_signs_for_its_tenant_though_its_parent_is_fetching(
    make_saver: Callable[..., DynamoDBSaver],
) -> None:
    broker = HeldBroker("tenant2")
    credentials = TenantCredentials(broker, clock=lambda: broker.now)
    saver = make_saver(session=credentials.session())

    def use() -> None:
        assert saver.get_tuple(_config("tenant1")) is not None
        with credentials.tenant("tenant2"):
            assert credentials.current().access_key == "tenant2"
            with contextlib.suppress(ThreadLockLostError):
                assert saver.get_tuple(_config("tenant2")) is None

    with credentials.tenant("tenant1"), ThreadPoolExecutor(2) as others:
        store(saver, _config("tenant1"), "1", {"a": 1})
        fetching = others.submit(_token, credentials, "tenant2")
        assert broker.is_asked.wait(60)
        # A fork finds the lock held.
        is_held = threading.Event()
        others.submit(_hold, credentials._lock, is_held, broker.goes_on)  # noqa: SLF001
        assert is_held.wait(60)
        broker.held.clear()
        child = fork(use)
        broker.goes_on.set()
        assert fetching.result(60) == "tenant2-1"
        assert exit_statuses([child]) == {0}


def _hold(lock: threading.Lock, is_held: threading.Event, until: threading.Event) -> None:
    with lock:
        is_held.set()
        until.wait(60)


ROLE = "arn:aws:iam::123456789012:role/tenants"


@pytest.mark.parametrize("tenant", ["acme", "a", "A.b-c_d", "x" * 128])
def test_the_role_is_assumed_with_the_tenant_as_its_tag(tenant: str) -> None:
    requests: list[dict[str, Any]] = []
    with mock_aws():
        client = boto3.client("sts", region_name="us-east-1")
        client.meta.events.register(
            "before-parameter-build.sts", lambda params, **_: requests.append({**params})
        )
        credentials = TenantCredentials(AssumeTenantRole(ROLE, client=client, duration_seconds=900))
        with credentials.tenant(tenant):
            current = credentials.current()
    (asked,) = requests
    assert asked["RoleArn"] == ROLE
    assert asked["Tags"] == [{"Key": "tenant", "Value": tenant}]
    assert asked["DurationSeconds"] == 900
    assert re.fullmatch(r"[\w+=,.@-]{2,64}", asked["RoleSessionName"])
    assert str(current.access_key).startswith("ASIA")
    assert current.token
    assert current.account_id == "123456789012"


def test_a_client_is_made_once_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        assume = AssumeTenantRole(ROLE)
        for tenant in ("a", "b"):
            answer = assume(tenant)
            assert answer["Expiration"] > datetime.datetime.now(datetime.timezone.utc)
