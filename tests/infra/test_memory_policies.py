"""The policies for memories and for the node cache: who may do what, and that no tenant reaches another's."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import aioboto3
import boto3
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerError
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.store.dynamodb import DynamoDBStore
from tests.infra.authorization import Gate
from tests.infra.conftest import contents
from tests.infra.test_policies import gate_of
from tests.infra.test_tenants import BESIDE, PIECES
from tests.infra.test_tenants import gate_of as tenants_gate
from tests.support.checkpoints import noise
from tests.support.examples import percent
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

ADA, OTHER = ("acme", "ada"), ("acme", "bo")
LARGE = {"text": noise(200_000).hex()}
ENTRY = (("node",), "key")
DENIED = "AccessDeniedException"
Cache: TypeAlias = DynamoDBCache[Any]
StoreOf: TypeAlias = Callable[..., DynamoDBStore]
CacheOf: TypeAlias = Callable[..., Cache]


@pytest.fixture
async def opened(engine: Engine, table_name: str) -> AsyncIterator[Callable[..., Any]]:
    """Give a factory of stores and caches whose every request a gate judges, sync and async."""
    made: list[DynamoDBStore | Cache] = []

    def make(kind: Callable[..., Any], gate: Gate | None, **options: Any) -> Any:
        sessions = {"session": boto3.Session(), "async_session": aioboto3.Session()}
        for session in sessions.values():
            if gate is not None:
                gate.guard(session)
        reach = {"endpoint_url": engine.endpoint_url, "region_name": engine.region_name}
        made.append(kind(table_name, **reach, **sessions, **options))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()


@pytest.fixture
def store_of(opened: Callable[..., Any]) -> StoreOf:
    """Give a factory of stores behind a gate; `None` for one that may do everything."""
    return lambda gate=None, **options: opened(DynamoDBStore, gate, **options)


@pytest.fixture
def cache_of(opened: Callable[..., Any]) -> CacheOf:
    """Give a factory of caches behind a gate."""
    return lambda gate=None, **options: opened(DynamoDBCache, gate, **options)


def two_hours_later(store: DynamoDBStore) -> DynamoDBStore:
    """Let a store take what there is for old: what is new is deleted in another way."""
    object.__setattr__(store.storage, "clock", lambda: time.time() + 7200)
    return store


def is_refused(operation: Callable[[], object]) -> None:
    with pytest.raises(CheckpointerConfigurationError) as refused:
        operation()
    assert error_code(refused.value.__cause__) == DENIED


def test_an_operator_erases_what_is_old(store_of: StoreOf, table_name: str) -> None:
    """`test_requests` has what is new, and that it may do nothing else."""
    for user in (ADA, OTHER):
        store_of().put(user, "large", LARGE)
    gate = gate_of("Operator", table_name)
    assert two_hours_later(store_of(gate)).delete_namespace(()) == 2
    assert not gate.refused


def test_a_reader_does_not_renew_ttls(store_of: StoreOf, table_name: str) -> None:
    store_of().put(ADA, "food", {}, ttl=1000)
    gate = gate_of("Reader", table_name)
    is_refused(lambda: two_hours_later(store_of(gate)).get(ADA, "food"))
    store = two_hours_later(store_of(gate, ttl={"refresh_on_read": False}))
    assert store.get(ADA, "food", refresh_ttl=False) is not None
    assert store.search(ADA)


# Tenants


NAMESPACES = st.lists(PIECES, min_size=1, max_size=3).map(tuple)
ATTACKS: list[Callable[[DynamoDBStore, tuple[str, ...]], object]] = [
    lambda store, namespace: store.get(namespace, "secret"),
    lambda store, namespace: store.put(namespace, "secret", {"forged": True}),
    lambda store, namespace: store.put(namespace, "secret", LARGE),
    lambda store, namespace: store.delete(namespace, "secret"),
    lambda store, namespace: store.search(namespace),
    lambda store, namespace: store.list_namespaces(prefix=namespace),
    lambda store, namespace: store.delete_namespace(namespace),
    lambda store, namespace: list(store.export_items(namespace)),
]


@pytest.fixture
def secret(store_of: StoreOf, cache_of: CacheOf) -> None:
    """Let another tenant remember something."""
    owner = store_of()
    owner.put(("tenant-b", "bob"), "secret", LARGE)
    owner.put(("tenant-b",), "secret", {})
    cache_of(prefix=("tenant-b",)).set({ENTRY: ("secret", None)})


def of_others(client: DynamoDBClient, table_name: str) -> list[dict[str, Any]]:
    return [item for item in contents(client, table_name) if not item["PK"]["S"].startswith("tenant-a/")]


# The gate decides before anything is sent, so one engine does.
@pytest.mark.usefixtures("secret")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=percent(60))
@given(namespace=NAMESPACES, attack=st.sampled_from(ATTACKS), beside=st.sampled_from(list(BESIDE)))
@example(namespace=("tenant-b", "bob"), attack=ATTACKS[0], beside="alone")
@example(namespace=("tenant-b", "bob"), attack=ATTACKS[1], beside="agent")
@example(namespace=("tenant-b",), attack=ATTACKS[4], beside="operator")
@example(namespace=("tenant-b",), attack=ATTACKS[6], beside="all")
@example(namespace=("tenant-a/../tenant-b", "bob"), attack=ATTACKS[0], beside="all")
@example(namespace=("tenant-a/", "bob"), attack=ATTACKS[1], beside="all")
def test_no_crafted_namespace_reaches_another_tenants_memories(
    store_of: StoreOf,
    client: DynamoDBClient,
    table_name: str,
    namespace: tuple[str, ...],
    attack: Callable[[DynamoDBStore, tuple[str, ...]], object],
    beside: str,
) -> None:
    before = of_others(client, table_name)
    gate = tenants_gate("tenant-a", table_name, *BESIDE[beside])
    outcome: Exception | None = None
    try:
        attack(store_of(gate), namespace)
    except (CheckpointerError, InvalidNamespaceError) as error:
        outcome = error
    if isinstance(outcome, CheckpointerConfigurationError):
        assert error_code(outcome.__cause__) == DENIED
        assert namespace[0] != "tenant-a"
    elif outcome is None:
        assert namespace[0] == "tenant-a"
    else:
        # LangGraph takes no such label, so nothing was sent.
        assert not gate.refused
    assert all(key.startswith("tenant-a/") for request in gate.allowed for key in request.leading_keys)
    assert all(request.leading_keys for request in gate.allowed)
    assert of_others(client, table_name) == before


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("prefix", [(), ("tenant-b",), ("tenant-a/../tenant-b",), ("tenant-a#",)])
@pytest.mark.parametrize(
    "beside",
    [pytest.param(each, marks=[pytest.mark.search] if place else []) for place, each in enumerate(BESIDE)],
)
def test_no_prefix_of_a_cache_reaches_another_tenants_entries(
    cache_of: CacheOf, client: DynamoDBClient, table_name: str, prefix: tuple[str, ...], beside: str
) -> None:
    before = of_others(client, table_name)
    gate = tenants_gate("tenant-a", table_name, *BESIDE[beside])
    cache = cache_of(gate, prefix=prefix)
    for entry in (ENTRY, (("tenant-b", *ENTRY[0]), ENTRY[1])):
        assert cache.get([entry]) == {}
        cache.set({entry: ("forged", None)})
        is_refused(partial(cache.clear, [entry[0]]))
    is_refused(cache.clear)
    assert not gate.allowed
    assert of_others(client, table_name) == before
