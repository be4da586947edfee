"""One saver for many tenants: each request is signed by its tenant, and none without one."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import re
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    CheckpointerInputError,
    DynamoDBSaver,
    ThreadLockLostError,
)
from langgraph.checkpoint.dynamodb.tenants import TenantCredentials
from tests.support.checkpoints import noise, store, thread_config
from tests.support.forks import exit_statuses, fork, needs_fork
from tests.support.operations import Side, ask, both_sides
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
        register = events.register
        register("before-send.dynamodb", self._before_send)

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
    session, async_session = credentials.session(), credentials.async_session()
    signed.watch(session.events)
    signed.watch(async_session.get_component("event_emitter"))
    saver = DynamoDBSaver(
        table_name,
        endpoint_url=engine.endpoint_url,
        region_name=engine.region_name,
        session=session,
        async_session=async_session,
    )
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
async def test_each_request_of_many_tenants_at_once_is_signed_by_its_own(
    saver: DynamoDBSaver, credentials: TenantCredentials, signed: Signed, broker: Broker
) -> None:
    agent = _agent(saver)

    async def turn(tenant: str) -> None:
        with credentials.tenant(tenant):
            await agent.ainvoke(_QUESTION, _config(tenant))

    await asyncio.gather(*map(turn, TENANTS))
    assert not signed.wrong()
    assert {signer for signer, _ in signed.requests} == {*TENANTS}
    assert len(signed.requests) > 10 * len(TENANTS)
    assert broker.asked == dict.fromkeys(TENANTS, 1)


@pytest.mark.engines("dynamodb-local")
def test_so_it_is_in_os_threads(
    saver: DynamoDBSaver, credentials: TenantCredentials, signed: Signed, broker: Broker
) -> None:
    agent = _agent(saver)

    def turn(tenant: str) -> None:
        with credentials.tenant(tenant):
            agent.invoke(_QUESTION, _config(tenant))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(turn, TENANTS))
    assert not signed.wrong()
    assert {signer for signer, _ in signed.requests} == {*TENANTS}
    assert broker.asked == dict.fromkeys(TENANTS, 1)


@both_sides
def test_without_a_tenant_nothing_is_sent(
    make_unclosed: Callable[..., DynamoDBSaver],
    credentials: TenantCredentials,
    signed: Signed,
    broker: Broker,
    side: Side,
) -> None:
    session, async_session = credentials.session(), credentials.async_session()
    signed.watch(session.events)
    signed.watch(async_session.get_component("event_emitter"))
    saver = make_unclosed(session=session, async_session=async_session)
    with pytest.raises(CheckpointerConfigurationError, match="no tenant is set"):
        ask(side, saver, "get_tuple", _config("tenant1"))
    saver.close()
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
    broker.now += broker.lasts - 1
    assert _token(credentials) == "tenant1-1"
    broker.now += 2
    with pytest.raises(ConnectionError):
        _token(credentials)
    broker.error = None
    assert _token(credentials) == "tenant1-4"


async def test_the_event_loop_goes_on_while_they_are_fetched(
    credentials: TenantCredentials, broker: Broker
) -> None:
    goes_on = threading.Event()
    fetch = credentials._fetch  # noqa: SLF001 - it is held back.

    def slow(tenant: str) -> Mapping[str, Any]:
        assert goes_on.wait(10)
        return fetch(tenant)

    credentials = TenantCredentials(slow)
    with credentials.tenant("tenant1"):
        asking = asyncio.gather(*(credentials.acurrent() for _ in range(5)))
        await asyncio.sleep(0)
        goes_on.set()
        tokens = {each.token for each in await asking}
    assert tokens == {"tenant1-1"}
    assert broker.asked["tenant1"] == 1


def test_those_used_last_are_kept(broker: Broker) -> None:
    credentials = TenantCredentials(broker, tenants_max=2)
    for tenant in ("a", "b", "a", "c", "a", "b"):
        _token(credentials, tenant)
    assert broker.asked == {"a": 1, "b": 2, "c": 1}


def test_a_property_that_is_asked_for_later_is_the_tenant_s(credentials: TenantCredentials) -> None:
    blocking: Any = credentials.session().get_credentials()
    asynchronous: Any = asyncio.run(credentials.async_session().get_credentials())
    of_account = blocking.get_deferred_property("account_id")
    aof_account = asynchronous.get_deferred_property("account_id")
    with credentials.tenant("tenant1"):
        assert of_account() == asyncio.run(aof_account()) == "123456789012"
    with pytest.raises(CheckpointerConfigurationError):
        of_account()


# Forks


@pytest.mark.filterwarnings("ignore::ResourceWarning")
class TestForks:
    """A child signs for the tenant of its context, whatever its parent was doing."""

    pytestmark = needs_fork

    def test_a_child_signs_for_its_tenant_though_its_parent_is_fetching(
        self, credentials: TenantCredentials, broker: Broker, saver: DynamoDBSaver
    ) -> None:
        with credentials.tenant("tenant1"):
            store(saver, _config("tenant1"), "1", {"a": 1})
            started, goes_on = threading.Event(), threading.Event()

            def held() -> Iterator[None]:
                for lock in (*credentials._fetching, credentials._lock):  # noqa: SLF001 - a fork finds them held.
                    lock.acquire()
                started.set()
                goes_on.wait(60)
                for lock in (*credentials._fetching, credentials._lock):  # noqa: SLF001
                    lock.release()
                yield

            holder = threading.Thread(target=lambda: list(held()))
            holder.start()
            started.wait(10)
            child = fork(lambda: self._use(credentials, saver))
            goes_on.set()
            holder.join()
            assert exit_statuses([child]) == {0}

    @staticmethod
    def _use(credentials: TenantCredentials, saver: DynamoDBSaver) -> None:
        assert saver.get_tuple(_config("tenant1")) is not None
        with credentials.tenant("tenant2"):
            assert credentials.current().access_key == "tenant2"
            with contextlib.suppress(ThreadLockLostError):
                assert saver.get_tuple(_config("tenant2")) is None
