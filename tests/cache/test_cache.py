"""LangGraph's node cache: hits, ttls, clearing; and whatever fails is a miss with a line in the log."""

import os
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypedDict

import pytest
from botocore.config import Config
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb._format.limits import CACHE_RETRY_SECONDS, TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._runtime.clients import Clients
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from tests.conftest import Closed
from tests.support.observed import Collected
from tests.support.traffic import Traffic


def encrypting(key: bytes = b"0123456789abcdef", owner_key: bytes = b"the key of owners") -> dict[str, Any]:
    """Return the options of a cache that encrypts."""
    return {"serde": EncryptedSerializer.from_pycryptodome_aes(key=key), "owner_key": owner_key}


MakeCache: TypeAlias = Callable[..., DynamoDBCache[Any]]

A, B = (("a", "b"), "k"), (("a",), "k")


@pytest.fixture
def make_cache(reach: dict[str, Any], table_name: str, closed: Closed) -> MakeCache:
    """Give a factory of caches on the table; it takes the cache's keywords, and they are closed after the test."""
    return lambda **options: closed(
        DynamoDBCache(**{"table_name": table_name, **({} if "client" in options else reach), **options})
    )


def test_a_ttl_is_in_seconds(make_cache: MakeCache, client: Any, table_name: str) -> None:
    cache = make_cache()
    cache.set({A: (1, 3600), B: (2, None)})
    (expiry,) = [
        int(item["expires_at"]["N"])
        for item in client.scan(TableName=table_name)["Items"]
        if "expires_at" in item
    ]
    assert expiry >= time.time() + 1800
    object.__setattr__(cache.storage, "clock", lambda: time.time() + 1800)
    assert cache.get([A, B]) == {A: 1, B: 2}
    object.__setattr__(cache.storage, "clock", lambda: time.time() + 3600)
    assert cache.get([A, B]) == {B: 2}


@pytest.mark.parametrize(
    "ttl", [-1, True, "60", float("nan"), float("inf"), 1e308, 10**400, TTL_SECONDS_MAX + 1], ids=str
)
def test_a_ttl_out_of_range_is_named_and_fails_no_run(
    make_cache: MakeCache, caplog: pytest.LogCaptureFixture, ttl: Any
) -> None:
    cache = make_cache()
    cache.set({A: (1, ttl), B: (2, TTL_SECONDS_MAX)})
    assert cache.get([A, B]) == {B: 2}
    assert "CheckpointerInputError: ttl is" in caplog.text
    assert "give a number of seconds from 0 to 31,622,400,000" in caplog.text


def test_clear(make_cache: MakeCache, own_client: Any, traffic: Traffic) -> None:
    cache = make_cache(client=own_client)
    values: dict[Any, Any] = {((f"n{each % 3}",), str(each)): (each, None) for each in range(90)}
    cache.set(values)
    cache.set({(("n1", "below"), "k"): (0, None)})
    cache.clear([("n1",)])
    assert set(cache.get(list(values)).values()) == {each for each in range(90) if each % 3 != 1}
    assert cache.get([(("n1", "below"), "k")])
    make_cache().clear()
    assert cache.get(list(values)) == {}
    assert cache.get([(("n1", "below"), "k")]) == {}
    cache.set({A: (1, None)})
    assert cache.get([A]) == {A: 1}
    assert "Scan" not in traffic.operations


def test_a_prefix_keeps_caches_apart(make_cache: MakeCache, client: Any, table_name: str) -> None:
    one, other = make_cache(prefix=("acme",)), make_cache(prefix=("acme-2",))
    one.set({A: (1, None)})
    other.set({A: (2, None)})
    one.clear()
    assert (one.get([A]), other.get([A])) == ({}, {A: 2})
    assert {item["PK"]["S"].partition("/")[0] for item in client.scan(TableName=table_name)["Items"]} == {
        "acme",
        "acme-2",
    }


def test_what_cannot_be_cached_is_a_miss_with_a_line(
    make_cache: MakeCache, client: Any, table_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = make_cache()
    cache.set(
        {
            A: (os.urandom(500_000), None),
            B: (1, None),
            (("x" * 3000,), "k"): (1, None),
            (("a",), "f"): (open, None),
        }
    )
    assert cache.get([A, B, (("x" * 3000,), "k")]) == {B: 1}
    assert "over the limit" in caplog.text
    assert caplog.text.count("could not store") == 3
    assert caplog.text.count("could not read") == 1
    caplog.clear()
    (item,) = [
        each for each in client.scan(TableName=table_name)["Items"] if each["SK"]["S"].startswith("K#")
    ]
    client.put_item(TableName=table_name, Item={**item, "data": {"B": item["data"]["B"][:-1]}})
    assert cache.get([B]) == {}
    assert "CheckpointCorruptionError" in caplog.text
    client.put_item(TableName=table_name, Item={**item, "data": {"S": "no bytes"}})
    assert cache.get([B]) == {}


def test_a_value_whose_attributes_cannot_be_read_fails_no_run(
    make_cache: MakeCache, caplog: pytest.LogCaptureFixture
) -> None:
    class Proxy:
        """Has what it stands for only within a request, as the proxies of web frameworks."""

        def __getattribute__(self, name: str) -> Any:
            msg = "working outside of a request"
            raise RuntimeError(msg)

    cache = make_cache()
    cache.set({A: (Proxy(), None), B: (1, None)})
    assert cache.get([A, B]) == {B: 1}
    assert "RuntimeError: working outside of a request" in caplog.text


async def test_a_table_that_cannot_be_reached_fails_no_run(
    make_cache: MakeCache, caplog: pytest.LogCaptureFixture
) -> None:
    cache = make_cache(table_name="missing")
    cache.set({A: (1, None)})
    await cache.aset({A: (1, None)})
    assert cache.get([A]) == await cache.aget([A]) == {}
    assert caplog.text.count("does not exist") == 4
    with pytest.raises(CheckpointerConfigurationError):
        cache.clear()
    refused = make_cache(endpoint_url="http://127.0.0.1:9", retry_seconds=0)
    refused.set({A: (1, None)})
    assert refused.get([A]) == {}


def test_encrypted_values_show_nothing(
    make_cache: MakeCache, client: Any, table_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a value, nor an input: LangGraph's keys are hashes of these, which anybody can make too."""
    key_of_input = (
        (("a", "b"), "82b9c16b2a5e5ff3c0a9ae8a3a1ed8f7"),
        (("a",), "82b9c16b2a5e5ff3c0a9ae8a3a1ed8f7"),
    )
    cache = make_cache(**encrypting())
    cache.set(dict.fromkeys(key_of_input, ("swordfish", None)))
    assert set(cache.get(key_of_input).values()) == {"swordfish"}
    stored = client.scan(TableName=table_name)["Items"]
    assert "swordfish" not in str(stored)
    assert "82b9c16b" not in str(stored)
    assert len({each["SK"]["S"] for each in stored if "data" in each}) == 2
    # Neither without a key, nor with another one, is anything found; and what is not for its place is not read.
    others = [make_cache(), make_cache(**encrypting(owner_key=b"another for owners"))]
    assert [each.get(key_of_input) for each in others] == [{}, {}]
    assert caplog.text == ""
    assert make_cache(**encrypting(key=b"f" * 16)).get(key_of_input[:1]) == {}
    assert caplog.text.count("UnreadableError") == 1


def test_an_expired_value_does_not_come_back(make_cache: MakeCache, client: Any, table_name: str) -> None:
    """Whoever writes the table can remove every attribute that says when it expires."""
    cache = make_cache(**encrypting())
    cache.set({A: (1, 0)})
    (item,) = (each for each in client.scan(TableName=table_name)["Items"] if "data" in each)
    bare = {name: value for name, value in item.items() if name in ("PK", "SK", "data")}
    assert bare != item
    client.put_item(TableName=table_name, Item=bare)
    assert cache.get([A]) == {}


class State(TypedDict):
    """What the graph has."""

    seen: Annotated[list[int], lambda left, right: left + right]


async def test_a_node_runs_once_for_the_same_input(make_cache: MakeCache) -> None:
    runs: list[int] = []

    def slow(state: State) -> dict[str, list[int]]:
        runs.append(len(state["seen"]))
        return {"seen": [7]}

    builder = StateGraph(State)
    builder.add_node("slow", slow, cache_policy=CachePolicy(ttl=60))
    builder.add_edge(START, "slow")
    builder.add_edge("slow", END)
    async with make_cache() as cache:
        if isinstance(cache, DynamoDBCache):
            await cache.asetup()
            cache.setup()
        graph = builder.compile(cache=cache)
        assert graph.invoke({"seen": [1]}) == {"seen": [1, 7]}
        assert graph.invoke({"seen": [1]}) == await graph.ainvoke({"seen": [1]}) == {"seen": [1, 7]}
        assert runs == [1]
        await graph.ainvoke({"seen": [1, 2]})
        assert runs == [1, 2]
        await cache.aclear()
        await graph.ainvoke({"seen": [1]})
        assert runs == [1, 2, 1]


def test_a_cache_that_encrypts_needs_a_key_for_its_digests() -> None:
    with pytest.raises(CheckpointerConfigurationError, match="the cache encrypts, and has no owner_key"):
        DynamoDBCache("table", **encrypting() | {"owner_key": None})


# A dead endpoint holds up a node for no longer than the cache retries


def _time_outs(client_config: Config | None = None) -> tuple[float, float]:
    cache: DynamoDBCache[int] = DynamoDBCache(
        "the-table", region_name="us-east-1", client_config=client_config
    )
    assert isinstance(cache.transport, Clients)
    with cache:
        config = cache.transport.client().meta.config
        return config.connect_timeout, config.read_timeout


def test_an_attempt_takes_no_longer_than_the_retries() -> None:
    """An endpoint that accepts connections and answers nothing would hold up each node for the saver's time-outs."""
    assert max(_time_outs()) <= CACHE_RETRY_SECONDS


def test_a_configuration_that_is_given_is_used() -> None:
    assert _time_outs(Config(connect_timeout=7, read_timeout=8)) == (7, 8)


# Events


@pytest.mark.parametrize("tenant", ["acme", None])
def test_each_call_has_an_event_with_the_tenant_of_the_prefix(
    make_cache: MakeCache, tenant: str | None
) -> None:
    events = Collected()
    cache = make_cache(on_event=events, prefix=() if tenant is None else (tenant,))
    cache.set({A: (1, None)})
    cache.get([A])
    cache.clear()
    told = [(each.operation, each.outcome, each.tenant) for each in events.events]
    assert told == [(f"cache.{name}", "ok", tenant) for name in ("set", "get", "clear")]


def test_what_is_logged_is_the_error_of_an_event(make_cache: MakeCache) -> None:
    events = Collected()
    cache = make_cache(on_event=events, table_name="no-such-table")
    assert cache.get([A]) == {}
    cache.set({A: (os.urandom(500_000), None)})
    assert [(each.operation, each.outcome, each.error) for each in events.events] == [
        ("cache.get", "error", "CheckpointerConfigurationError"),
        ("cache.set", "error", "ValueError"),
    ]
