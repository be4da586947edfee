"""Memories and cached nodes: of one principal's labels only, within limits, and bad requests are named."""

import asyncio
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, create_gateway, memory_calls, node_calls
from langgraph.checkpoint.dynamodb.gateway.call import endpoints_of
from langgraph.checkpoint.dynamodb.gateway.memory_calls import Recent
from tests.gateway.conftest import by_token, send_as
from tests.support.checkpoints import all_items, noise
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")

PRINCIPALS = {
    "acme": Principal("acme", "acme"),
    "other": Principal("other", "other"),
    "ada": Principal("ada", "acme", owner="ada"),
    # A wildcard of list_namespaces, which is an owner like any other.
    "star": Principal("star", "acme", owner="*"),
    "dotted": Principal("dotted", "acme.com", owner="ada.l@example.com"),
    "langgraph": Principal("langgraph", "langgraph", owner="50%25"),
    "bob": Principal("bob", owner="bob"),
    "reader": Principal("reader", "acme", frozenset({"read"})),
    "writer": Principal("writer", "acme", frozenset({"write"})),
    "all": Principal("all"),
    "admin": Principal("admin", rights=frozenset({"read", "write", "administer"})),
}
ENDPOINTS = {each.name: each for each in endpoints_of(memory_calls, node_calls)}
VECTOR = struct.pack("<3f", 1, 0, 0)

Send = Callable[..., Any]


@pytest.fixture
def make_send(saver: DynamoDBSaver) -> Callable[..., Send]:
    """Give a factory of functions that send a request to a gateway as somebody; it takes limits."""

    def make(**limits: Any) -> Send:
        app = create_gateway(saver, authenticate=by_token(PRINCIPALS), limits=Limits(**limits))

        async def send(who: str, name: str, document: Any) -> httpx.Response:
            answer = await send_as(app, who, f"/{name}", document)
            if answer.status_code == 200:
                ENDPOINTS[name].response.validate_json(answer.content)
            return answer

        return send

    return make


@pytest.fixture
def send(make_send: Callable[..., Send]) -> Send:
    """Give a function that sends a request to a gateway as somebody."""
    return make_send()


def documents(*labels: str) -> Mapping[str, Any]:
    """Return a request of each endpoint under some labels."""
    at = {"namespace": [*labels, "notes"], "key": "k"}
    times = {"created_at": "2026-01-01T00:00:00+00:00", "updated_at": "2026-01-01T00:00:00+00:00"}
    put = {**at, "value": '{"n": 1}', "vectors": [VECTOR], "ttl_seconds": 60}
    return {
        "store/batch": {
            "ops": [
                {"op": "put", **put},
                {"op": "get", **at},
                {
                    "op": "search", "namespace_prefix": [*labels], "filter": '{"n": 1}', "vector": VECTOR,
                    "after": {**at, **times}, "order": "key",
                },
                {"op": "list_namespaces", "match_conditions": [{"match_type": "prefix", "path": [*labels]}]},
                {"op": "put", **put, "revision": None, "token": "0123456789abcdef"},
                {"op": "put", **put, "times": {**times, "expires_at": None}},
            ]
        },
        "store/sweep-ttl": {"namespace_prefix": [*labels], "after": None},
        "store/delete-namespace": {"namespace_prefix": [*labels], "after": {**at, "key": "a"}},
        "cache/set": {"entries": [{**at, "type": "msgpack", "data": b"\x01", "ttl_seconds": 60}]},
        "cache/get": {"keys": [at]},
        # One that is not given is that of all.
        "cache/clear": {"prefix": [*labels]} if labels else {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("who", "labels"),
    [("dotted", ("acme%2Ecom", "ada%2El@example%2Ecom")), ("langgraph", ("%6Canggraph", "50%2525"))],
)
async def test_whoever_has_threads_has_memories(
    who: str, labels: tuple[str, ...], send: Send, own_client: Any, table_name: str
) -> None:
    principal = PRINCIPALS[who]
    assert principal.memory_labels == labels
    assert documents().keys() == ENDPOINTS.keys()
    refused = await send(who, "store/batch", {"ops": [put_of("acme", "ada")]})
    assert (refused.status_code, str(labels) in refused.json()["detail"]) == (403, True)
    for name, document in documents(*labels).items():
        if name == "store/batch":
            document["ops"][2] |= {"order": "updated_at", "after": None}
        if name.startswith("store/"):
            assert (await send(who, name, document)).status_code == 200
    assert (await send(who, "store/batch", {"ops": [put_of(*labels)]})).status_code == 200
    listed = (await send(who, "store/batch", {"ops": [{"op": "list_namespaces"}]})).json()["results"]
    assert listed[0]["namespaces"] == [[*labels, "notes"]]
    # One policy covers a tenant's threads and memories.
    if who == "dotted":
        assert {item["PK"]["S"].partition("/")[0] for item in all_items(own_client, table_name)} == {
            "acme.com"
        }
    for name, document in documents(*principal.labels).items():
        if name.startswith("cache/"):
            assert (await send(who, name, document)).status_code == 200


@pytest.mark.parametrize("others", [("other",), ("acme2",), ("acme", "bob"), ("acme",), ()], ids=str)
async def test_what_is_others_is_refused(
    others: tuple[str, ...], send: Send, own_client: Any, table_name: str, traffic: Traffic
) -> None:
    traffic.clear()
    for name, document in documents(*others).items():
        if name == "store/batch":
            for op in (*document["ops"][:2], *document["ops"][4:]):
                answer = await send("ada", name, {"ops": [op]})
                assert answer.status_code == 403
        else:
            answer = await send("ada", name, document)
            assert answer.status_code == 403, name
            assert "their namespaces begin with ('acme', 'ada')" in answer.json()["detail"]
    assert traffic.requests == []
    assert all_items(own_client, table_name) == []


async def test_reads_under_a_shorter_prefix_find_ones_own(send: Send) -> None:
    for who, labels in (
        ("acme", ("acme", "bob")),
        ("ada", ("acme", "ada")),
        ("star", ("acme", "*")),
        ("other", ("other",)),
    ):
        assert (await send(who, "store/batch", {"ops": [put_of(*labels)]})).status_code == 200

    async def found_by(who: str, *prefix: str) -> Any:
        ops = [
            {"op": "search", "namespace_prefix": [*prefix]},
            {"op": "list_namespaces"},
            {"op": "list_namespaces", "match_conditions": [{"match_type": "prefix", "path": [*prefix]}]},
        ]
        results = (await send(who, "store/batch", {"ops": ops})).json()["results"]
        searched = sorted(each["namespace"] for each in results[0])
        if prefix:
            assert results[2]["namespaces"] == searched
        return searched, results[1]["namespaces"]

    ada, star, bob, other = (
        ["acme", "ada", "notes"], ["acme", "*", "notes"], ["acme", "bob", "notes"], ["other", "notes"],
    )  # fmt: skip
    assert await found_by("ada") == ([ada], [ada])
    assert await found_by("ada", "acme") == ([ada], [ada])
    assert await found_by("ada", "other") == ([], [ada])
    assert await found_by("star", "acme") == ([star], [star])
    assert await found_by("acme") == ([star, ada, bob], [star, ada, bob])
    assert await found_by("acme", "other") == ([], [star, ada, bob])
    assert await found_by("all") == ([star, ada, bob, other], [star, ada, bob, other])


def put_of(*labels: str, **more: Any) -> dict[str, Any]:
    """Return a put under some labels."""
    return {"op": "put", "namespace": [*labels, "notes"], "key": "k", "value": "{}"} | more


async def test_an_owner_of_no_tenant_has_none(send: Send) -> None:
    # The name might be that of a tenant.
    for name, document in documents("bob").items():
        answer = await send("bob", name, document)
        assert answer.status_code == 403
        assert "give these credentials a tenant" in answer.json()["detail"]


async def test_a_batch_needs_the_rights_of_its_operations(send: Send) -> None:
    put, get = documents("acme")["store/batch"]["ops"][:2]
    for who, ops, status in (
        ("reader", [get], 200), ("reader", [put], 403), ("reader", [get, put], 403), ("reader", [], 200),
        ("writer", [put], 200), ("writer", [get], 403), ("writer", [get, put], 403), ("acme", [get, put], 200),
    ):  # fmt: skip
        assert (await send(who, "store/batch", {"ops": ops})).status_code == status


# What is no request


@pytest.mark.parametrize(("op", "says"), [
    (put_of("acme", value="{"), "value of memory 'k' is not JSON"),
    (put_of("acme", value='{"a": -1e999}'), "the number -1e999 is too large"),
    (put_of("acme", value="[1]"), "value of memory 'k' is a list; give a dict"),
    (put_of("acme", value='{"a": ' + "[" * 300 + "]" * 300 + "}"), "nested deeper than 255"),
    (put_of("acme", value='{"a": ' + "[" * 100 + "1" + "]" * 101 + "}"), "closes more"),
    (put_of("acme", value='{"a": ["\\ud800"]}'), "lone surrogate"),
    (put_of("acme", vectors=[b""]), "a vector has 0 bytes"),
    (put_of("acme", vectors=[b"123"]), "a vector has 3 bytes"),
    (put_of("acme", vectors=[struct.pack("<f", float("nan"))]), "finite numbers"),
    (put_of("acme", ttl_seconds=0), "ttl_seconds"),
    (put_of("acme", "a.b"), "Namespace labels cannot contain periods"),
    (put_of("acme", key="k" * 2000), "makes a key of"),
    (put_of("acme", value=None, token="0" * 16), "the revision of the memory"),
    (put_of("acme", revision="r"), "give a token with the revision"),
    (put_of("acme", value=None, times={"created_at": "", "updated_at": "", "expires_at": None}), "or none"),
    (put_of("acme", times={"created_at": "now", "updated_at": "", "expires_at": None}), "created_at"),
    ({"op": "get", "namespace": ["acme", ""], "key": "k"}, "Namespace labels cannot be empty"),
    ({"op": "search", "namespace_prefix": ["acme"], "filter": "["}, "filter is not JSON"),
    ({"op": "search", "namespace_prefix": ["acme"], "filter": "[]"}, "filter is a list"),
    ({"op": "search", "namespace_prefix": ["acme"], "filter": '{"n": 1e999}'}, "filter is not JSON"),
    ({"op": "search", "namespace_prefix": ["acme"], "filter": '{"n": {"$in": [1]}}'}, "no operator '$in'"),
    ({"op": "search", "namespace_prefix": ["acme"], "after": {
        "namespace": ["acme"], "key": "k", "created_at": "now", "updated_at": "now"}}, "after has a time that is none"),
    ({"op": "search", "namespace_prefix": ["acme"], "order": "size"}, "order"),
    ({"op": "list_namespaces", "match_conditions": [{"match_type": "prefix", "path": ["a.b"]}]}, "cannot contain"),
    ({"op": "drop"}, "ops.1"),
], ids=lambda each: str(each)[:60])  # fmt: skip
async def test_bad_operations_are_named_and_nothing_is_stored(
    op: Any, says: str, send: Send, own_client: Any, table_name: str
) -> None:
    answer = await send("acme", "store/batch", {"ops": [put_of("acme"), op]})
    assert answer.status_code in (400, 422), answer.text
    assert says in answer.json()["detail"]
    assert all_items(own_client, table_name) == []


async def test_a_gateway_without_numpy_says_what_to_install(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.store.dynamodb.vectors", None)
    answer = await send("acme", "store/batch", {"ops": [put_of("acme", vectors=[VECTOR])]})
    assert answer.status_code == 400
    assert "install the extra `vectors`" in answer.json()["detail"]
    assert (await send("acme", "store/batch", {"ops": [put_of("acme")]})).status_code == 200


# What the service holds


async def test_what_a_search_reads_counts_as_memory_of_its_principal(make_send: Callable[..., Send]) -> None:
    limits = {"decompressed_bytes_max": 50_000, "body_bytes_max": 100_000, "search_bytes_max": 10**9}
    # On a busy machine the last ones wait for longer than the default allows.
    send = make_send(**limits, request_seconds_max=600)
    texts = [noise(500, number).hex()[:700] for number in range(10)]
    for number, text in enumerate(texts):
        put = put_of("acme", key=f"{number}", value=f'{{"text": "{text}"}}')
        assert (await send("acme", "store/batch", {"ops": [put]})).status_code == 200
    ops = [{"op": "search", "namespace_prefix": ["acme"], "limit": 1}] * 8
    # More than all of them together may hold, since each search reads all: they wait for each other.
    answers = await asyncio.gather(*(send("acme", "store/batch", {"ops": ops}) for _ in range(40)))
    assert {each.status_code for each in answers} == {200}
    puts = [put_of("acme", key=f"more {number}") for number in range(50)]
    assert (await send("acme", "store/batch", {"ops": puts})).status_code == 200
    refused = await send("acme", "store/batch", {"ops": ops[:1]})
    assert (refused.status_code, "over 200,000 bytes at a time" in refused.json()["detail"]) == (422, True)


def test_what_was_listed_is_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_calls, "_LISTED_MAX", 3)
    recent = Recent()
    for number in range(5):
        recent[f"{number}"] = 1.0
    assert list(recent) == ["2", "3", "4"]
