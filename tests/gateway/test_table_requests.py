"""Requests to the table for memories and cached nodes: of their partitions only, and of one principal's labels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import ormsgpack
import pytest
from starlette.requests import HTTPConnection

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import PARTITION_KEY
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, create_gateway
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.media import MSGPACK
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpStore
from tests.gateway.recorded import Recorded, connected, remember
from tests.gateway.requests import found, places_of_values, replaced
from tests.support.checkpoints import all_items, noise, store, thread_config
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")

ANSWERS = {each.name: each.answer for each in ENDPOINTS}
PRINCIPALS = {
    "acme": Principal("acme", "acme"),
    "other": Principal("other", "other"),
    "ada": Principal("ada", "acme", owner="ada"),
    "bob": Principal("bob", owner="bob"),
    "reader": Principal("reader", "acme", frozenset({"read"})),
    "all": Principal("all"),
}


async def by_token(request: HTTPConnection) -> Principal | None:
    """Authenticate by a token that is the principal's name."""
    return PRINCIPALS.get(request.headers.get("authorization", "").removeprefix("Bearer "))


@pytest.fixture
def recorded(saver: DynamoDBSaver) -> Recorded:
    """Give the way to a gateway on a saver whose requests to DynamoDB are recorded."""
    saver.storage.cache.facts.is_shared = False
    limits = Limits(requests_per_second=1e6, burst_requests=10**6)
    return Recorded(create_gateway(saver, authenticate=by_token, limits=limits))


@pytest.fixture
async def connect(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """Give a function that makes a principal's store or cache."""
    made: list[Any] = []

    def make(kind: Any, name: str, **options: Any) -> Any:
        client = kind("http://localhost", auth=name, **options)
        made.append(connected(client, recorded, monkeypatch))
        return client

    yield make
    for each in made:
        await each.aclose()


async def send(recorded: Recorded, who: str, name: str, document: Any) -> httpx.Response:
    """Send a request as somebody."""
    headers = {"authorization": f"Bearer {who}", "content-type": MSGPACK.name}
    transport = httpx.ASGITransport(app=recorded.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.post(f"/checkpoints/{name}", content=ormsgpack.packb(document), headers=headers)


async def use(connect: Callable[..., Any], name: str, *labels: str) -> None:
    """Let every kind of request be made, with segments, under some labels."""
    await remember(connect(HttpStore, name), connect(HttpCache, name, prefix=labels), *labels)


@pytest.mark.parametrize(
    ("name", "labels"), [("acme", ("acme",)), ("ada", ("acme", "ada")), ("all", ("any",))]
)
async def test_everybody_has_their_own(
    connect: Callable[..., Any], name: str, labels: tuple[str, ...], recorded: Recorded
) -> None:
    await use(connect, name, *labels)
    methods = {"query", "put-item", "update-item", "batch-write-item", "batch-get-item", "get-item"}
    assert recorded.documents.keys() >= methods


@pytest.mark.search
async def test_whatever_is_exchanged_a_request_reaches_its_labels_only(
    connect: Callable[..., Any], recorded: Recorded, traffic: Traffic
) -> None:
    await use(connect, "other", "other")
    await use(connect, "acme", "acme")
    statuses = set()
    for name, documents in dict(recorded.documents).items():
        for good in (documents[-1], documents[len(documents) // 2]):
            for place in places_of_values(good):
                for value in ("other/notes/%M#", "acme/1#", "run_id", "owner", {"S": "other/%N#"}):
                    if not place or isinstance(found(good, place), dict) is not isinstance(value, dict):
                        continue
                    traffic.clear()
                    answer = await send(recorded, "acme", name, replaced(good, place, value))
                    assert answer.status_code < 500, (name, place, value, answer.text)
                    statuses.add(answer.status_code)
                    for request in traffic.requests:
                        assert all(
                            each.startswith("acme/") and each[-3:-1] in ("%M", "%N", "%K")
                            for each in _named(request.params)
                        ), request
                    if answer.status_code == 200:
                        answered = _keys(ormsgpack.unpackb(answer.content))
                        assert all(each.startswith("acme/") for each in answered)
    assert statuses == {200, 400, 403}


def _named(params: Any) -> list[str]:
    """The partition keys that a request to DynamoDB names."""
    if params.get("IndexName"):
        return []
    if "KeyConditionExpression" in params:
        assert params["ExpressionAttributeNames"]["#pk"] == PARTITION_KEY
        return [params["ExpressionAttributeValues"][":pk"]["S"]]
    return _keys(params)


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[PARTITION_KEY]["S"]] if PARTITION_KEY in value else []
        return own + [each for name in value if name != PARTITION_KEY for each in _keys(value[name])]
    return [each for inner in value for each in _keys(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("acme", ("other", "x")),
        ("acme", ("acme2",)),
        ("ada", ("acme", "bob")),
        ("ada", ("acme",)),
    ],
)
async def test_others_are_refused(
    connect: Callable[..., Any], name: str, namespace: tuple[str, ...], own_client: Any, table_name: str
) -> None:
    memories = connect(HttpStore, name)
    for call in (
        memories.aput((*namespace, "x"), "k", {}),
        memories.aget((*namespace, "x"), "k"),
        memories.asearch(namespace),
        memories.adelete((*namespace, "x"), "k"),
    ):
        with pytest.raises(CheckpointerConfigurationError, match="their namespaces begin with"):
            await call
    assert all_items(own_client, table_name) == []


async def test_an_owner_of_no_tenant_has_none(connect: Callable[..., Any]) -> None:
    # The name might be that of a tenant.
    bob = connect(HttpStore, "bob")
    for call in (bob.aput(("bob", "x"), "k", {}), bob.asearch(("bob",)), bob.alist_namespaces()):
        with pytest.raises(CheckpointerConfigurationError, match="give these credentials a tenant"):
            await call


async def test_a_list_of_all_has_ones_own(connect: Callable[..., Any]) -> None:
    for name in ("acme", "other"):
        await connect(HttpStore, name).aput((name, "notes"), "k", {})
    assert await connect(HttpStore, "acme").alist_namespaces() == [("acme", "notes")]
    assert await connect(HttpStore, "ada").alist_namespaces() == []
    assert len(await connect(HttpStore, "all").alist_namespaces()) == 2


async def test_who_may_read_only_stores_nothing(connect: Callable[..., Any]) -> None:
    reader = connect(HttpStore, "reader")
    assert await reader.asearch(("acme",)) == []
    with pytest.raises(CheckpointerConfigurationError, match="right to write"):
        await reader.aput(("acme", "x"), "k", {})


KEY = {"PK": {"S": "acme/x/%M#"}, "SK": {"S": "M#k"}}
ITEM = {**KEY, "v": {"N": "1"}}
CHANGE: dict[str, Any] = {
    "Key": KEY,
    "ConditionExpression": "attribute_not_exists(#v)",
    "UpdateExpression": "SET #v = :v",
    "ExpressionAttributeNames": {"#v": "v"},
    "ExpressionAttributeValues": {":v": {"N": "1"}},
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
LIST: dict[str, Any] = {
    "KeyConditionExpression": "#pk = :pk",
    "ExpressionAttributeNames": {"#pk": "run_id"},
    "ExpressionAttributeValues": {":pk": {"S": "%N#0"}},
    "IndexName": "run_id-index",
}
PAGE: dict[str, Any] = {
    "KeyConditionExpression": "#pk = :pk AND begins_with(#sk, :a)",
    "ExpressionAttributeNames": {"#pk": "PK", "#sk": "SK"},
    "ExpressionAttributeValues": {":pk": KEY["PK"], ":a": {"S": "M#"}},
}


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("get-item", {"Key": {**KEY, "PK": {"S": "acme/1#"}}}),
        ("get-item", {"Key": {**KEY, "PK": {"S": "acme/1#%M#"}}}),
        ("batch-get-item", {"Keys": [KEY, KEY]}),
        ("batch-get-item", {"Keys": []}),
        ("put-item", {"Item": {**ITEM, "run_id": {"S": "a run of somebody else"}}}),
        ("put-item", {"Item": {**ITEM, "run_id": {"N": "1"}}}),
        ("put-item", {"Item": {**ITEM, "owner": {"S": "other/ada"}}}),
        ("put-item", {"Item": {**ITEM, "x": {}}}),
        ("put-item", {"Item": {**ITEM, "x": {"N": "no number"}}}),
        ("put-item", {"Item": {"PK": KEY["PK"]}}),
        ("batch-write-item", {"requests": [{"PutRequest": {"Item": {**ITEM, "active_day": {"S": "x"}}}}]}),
        ("batch-write-item", {"requests": [{}]}),
        ("batch-write-item", {"requests": [{"DeleteRequest": {"Key": {**KEY, "PK": {"S": "acme/1#"}}}}]}),
        ("update-item", {**CHANGE, "UpdateExpression": "SET run_id = :v"}),
        ("update-item", {**CHANGE, "ExpressionAttributeNames": {"#v": "owner"}}),
        ("update-item", {**CHANGE, "UpdateExpression": "SET #v = :missing"}),
        (
            "delete-item",
            {
                **{name: CHANGE[name] for name in CHANGE if name != "UpdateExpression"},
                "ConditionExpression": "size(#v) = :v",
            },
        ),
        ("query", {**PAGE, "ExpressionAttributeValues": {":a": {"S": "M#"}}}),
        ("query", {**PAGE, "ExpressionAttributeValues": {":pk": KEY["PK"]}}),
        ("query", {**PAGE, "ExpressionAttributeNames": {"#pk": "PK", "#sk": "v"}}),
        ("query", {**PAGE, "ExpressionAttributeNames": {"#pk": "run_id", "#sk": "SK"}}),
        ("query", {**PAGE, "ExclusiveStartKey": {"PK": {"S": "acme/y/%M#"}, "SK": {"S": "x"}}}),
        ("query", {**PAGE, "ProjectionExpression": "#none"}),
        ("query", {**LIST, "ExpressionAttributeValues": {":pk": {"S": "a run of somebody else"}}}),
        ("query", {**LIST, "ExpressionAttributeNames": {"#pk": "PK"}}),
        ("query", {**LIST, "ExclusiveStartKey": KEY}),
        ("query", {**LIST, "ConsistentRead": True}),
    ],
)
async def test_what_is_no_request_for_memories_is_refused(
    recorded: Recorded, name: str, document: Any
) -> None:
    answer = await send(recorded, "all", name, document)
    assert answer.status_code == 400, answer.text


async def test_an_answer_has_as_much_as_fits(
    make_saver: Callable[..., DynamoDBSaver], connect: Callable[..., Any]
) -> None:
    await connect(HttpStore, "acme").aput(("acme", "x"), "k", {"x": noise(300_000).hex()})
    small = Recorded(
        create_gateway(make_saver(), authenticate=by_token, limits=Limits(body_bytes_max=200_000))
    )
    items = [
        {"PutRequest": {"Item": {**KEY, "SK": {"S": f"M#{n}"}, "x": {"B": noise(60_000)}}}} for n in range(3)
    ]
    for each in items:
        assert (await send(small, "acme", "batch-write-item", {"requests": [each]})).status_code == 200
    left = [each["PutRequest"]["Item"] for each in items]
    wanted = [{"PK": each["PK"], "SK": each["SK"]} for each in left]
    answers = []
    while wanted:
        answer = await send(small, "acme", "batch-get-item", {"Keys": wanted})
        document = ormsgpack.unpackb(answer.content)
        ANSWERS["batch-get-item"].model_validate(document)
        answers.append(len(document["items"]))
        wanted = document["left"]
    assert answers == [1, 1, 1]


# Without its key nothing says where an item is, so such items stay together.
@pytest.mark.parametrize(("attributes", "pages"), [(None, [1, 1, 1]), ("SK, x", [1, 1, 1]), ("x", [3])])
@pytest.mark.parametrize("is_forward", [True, False])
async def test_a_page_of_a_query_has_as_much_as_fits(
    make_saver: Callable[..., DynamoDBSaver], attributes: str | None, pages: list[int], *, is_forward: bool
) -> None:
    small = Recorded(
        create_gateway(make_saver(), authenticate=by_token, limits=Limits(body_bytes_max=200_000))
    )
    items = [{**KEY, "SK": {"S": f"M#{n}"}, "x": {"B": noise(60_000, n)}} for n in range(3)]
    for each in items:
        assert (await send(small, "acme", "put-item", {"Item": each})).status_code == 200
    query = {
        "KeyConditionExpression": "#pk = :pk",
        "ExpressionAttributeNames": {"#pk": "PK"},
        "ExpressionAttributeValues": {":pk": KEY["PK"]},
        "ProjectionExpression": attributes,
        "ScanIndexForward": is_forward,
    }
    found, last = list[list[Any]](), None
    while not found or last is not None:
        answer = await send(small, "acme", "query", {**query, "ExclusiveStartKey": last})
        document = ormsgpack.unpackb(answer.content)
        ANSWERS["query"].model_validate(document)
        found.append([each["x"] for each in document["response"]["Items"]])
        last = document["response"].get("LastEvaluatedKey")
    assert [len(each) for each in found] == pages
    expected = [each["x"] for each in (items if is_forward else reversed(items))]
    assert [each for page in found for each in page] == expected


async def test_an_index_is_read_to_its_end(recorded: Recorded, connect: Callable[..., Any]) -> None:
    memories = connect(HttpStore, "acme")
    for number in range(30):
        await memories.aput(("acme", str(number)), "k", {})
    answer = await send(recorded, "acme", "query", {**LIST, "Limit": 1})
    document = ormsgpack.unpackb(answer.content)
    ANSWERS["query"].model_validate(document)
    assert len(document["response"]["Items"]) > 1
    assert document["response"].get("LastEvaluatedKey") is None


async def test_what_does_not_say_whose_it_is_is_not_listed(
    recorded: Recorded, connect: Callable[..., Any]
) -> None:
    memories = connect(HttpStore, "acme")
    # Some of them are in this part of the index.
    for number in range(30):
        await memories.aput(("acme", str(number)), "k", {})
    answer = await send(recorded, "acme", "query", {**LIST, "ProjectionExpression": "SK"})
    assert answer.status_code == 200, answer.text
    assert ormsgpack.unpackb(answer.content)["response"]["Items"] == []


async def test_a_run_s_checkpoints_are_not_among_them(
    recorded: Recorded, make_saver: Callable[..., DynamoDBSaver]
) -> None:
    store(make_saver(), thread_config("acme/1"), "1", {"x": 1}, run_id="%N#0")
    answer = await send(recorded, "all", "query", LIST)
    assert ormsgpack.unpackb(answer.content)["response"]["Items"] == []
