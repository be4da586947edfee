"""A tenant's requests, whatever is in them, become requests to DynamoDB for that tenant's partitions and no other.

This is the other half of test_tenants.py: that one tries what is refused, and this one what is let through. The
requests are those of our own client, so that what they store is stored, with one value after the other exchanged.
"""

from collections import Counter
from typing import Any

import pytest
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.schema import OWNER, OWNER_INDEX, PARTITION_KEY, SORT_KEY
from langgraph.checkpoint.dynamodb.gateway import Principal, create_gateway
from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS
from langgraph.checkpoint.dynamodb.gateway.serving import RIGHTS
from tests.gateway.conftest import always, client_of
from tests.gateway.recorded import record
from tests.gateway.requests import found, keys_in, places_of_values, replaced
from tests.support.checkpoints import checkpoint_of, store, thread_config
from tests.support.traffic import Request, Traffic

pytestmark = pytest.mark.engines("dynamodb-local")

OTHERS = "other/1#"
HOSTILE: list[Any] = [
    OTHERS,
    f"acme/1#{OTHERS}",
    {PARTITION_KEY: {"S": OTHERS}, SORT_KEY: {"S": "T"}},
    {"S": OTHERS},
    ["other", "notes"],
    "other/notes/%M#",
]
PRIVATE = "what-nobody-else-may-see"

NOT_TRIED = {
    "delete-for-runs": "it asks an index that has all tenants' keys, as the list by run of the last test"
}


def partitions(request: Request) -> set[str]:
    """The partition keys that a request to DynamoDB names; nothing else in it reaches an item."""
    assert request.operation != "Scan"
    if request.operation == "Query" and "IndexName" in request.params:
        # Where it begins is a position in what the key names, and reaches nothing itself.
        assert request.params["IndexName"] == OWNER_INDEX
        assert request.params["ExpressionAttributeNames"]["#hash"] == OWNER
        return {request.params["ExpressionAttributeValues"][":hash"]["S"]}
    if request.operation == "Query":
        assert request.params["KeyConditionExpression"].startswith("#pk = :pk")
        assert request.params["ExpressionAttributeNames"]["#pk"] == PARTITION_KEY
        return {request.params["ExpressionAttributeValues"][":pk"]["S"]}
    return set(keys_in(request.params))


@pytest.fixture
def gateway(saver: DynamoDBSaver) -> Starlette:
    """Give the gateway as a tenant has it, on a saver whose requests to DynamoDB are recorded."""
    # Its look for other savers names a thread in their ways.
    saver.storage.cache.facts.is_shared = False
    return create_gateway(saver, authenticate=always(Principal("acme", "acme", RIGHTS)))


def hostile(good: Any) -> list[Any]:
    """A request with one value after the other exchanged, and with more than it may have."""
    requests = [good]
    for place in places_of_values(good):
        requests += [replaced(good, place, each) for each in HOSTILE if place]
        if isinstance(found(good, place), dict):
            requests += [
                replaced(good, (*place, name), HOSTILE[-1]) for name in (PARTITION_KEY, "table_name")
            ]
    return requests


async def test_a_request_reaches_its_tenants_partitions_only(
    saver: DynamoDBSaver, gateway: Starlette, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = await record(gateway, monkeypatch)
    assert {each.name for each in ENDPOINTS} - recorded.documents.keys() == NOT_TRIED.keys()
    others = create_gateway(saver, authenticate=always(Principal("other", "other")))
    put = {"op": "put", "namespace": ["other", "notes"], "key": "k", "value": f'{{"a": "{PRIVATE}"}}'}
    assert (await client_of(others).post("/store/batch", json={"ops": [put]})).status_code == 200
    await saver.aput(thread_config("other/1"), checkpoint_of("1", {"log": PRIVATE}), {}, {"log": 1})
    # The conversation has ended with the deletion of its threads.
    source = recorded.documents["copy-thread"][-1]["source_thread_id"]
    await saver.aput(thread_config(source), checkpoint_of("1", {"log": "own"}), {}, {"log": 1})
    client = client_of(gateway)
    answered: Counter[str] = Counter()
    for endpoint in ENDPOINTS:
        # A batch has any kind of operation.
        newest = recorded.documents.get(endpoint.name, [])[-20 if endpoint.name == "store/batch" else -2 :]
        for each in (one for good in newest for one in hostile(good)):
            traffic.clear()
            answer = await client.post(endpoint.path, json=each)
            assert answer.status_code < 500, (each, answer.content)
            assert PRIVATE.encode() not in answer.content
            answered[endpoint.name] += answer.status_code == 200
            for request in traffic.requests:
                named = partitions(request)
                assert named, request
                assert all(key.startswith("acme/") for key in named), (each, request)
    # A sweep names nothing but what it reaches. Of each other endpoint more was let through than the request as it was.
    assert answered.pop("store/sweep-ttl") == 1
    assert all(count > 1 for count in answered.values()), answered


@pytest.mark.parametrize("tenant", ["acme", "other"])
async def test_by_run_a_tenant_hears_of_its_own_damage_only(
    tenant: str, saver: DynamoDBSaver, gateway: Starlette, traffic: Traffic, own_client: Any, table_name: str
) -> None:
    for thread in ("acme/1", "acme/2", "other/1", "other/2"):
        store(saver, thread_config(thread), "1", {}, run_id="r")
    for number in (1, 2):
        own_client.update_item(
            TableName=table_name,
            Key={PARTITION_KEY: {"S": f"{tenant}/{number}#"}, SORT_KEY: {"S": "C#1#"}},
            UpdateExpression="SET v = :newer",
            ExpressionAttributeValues={":newer": {"N": "99"}},
        )
    traffic.clear()
    answer = await client_of(gateway).post("/checkpoints/list", json={"filter": {"run_id": "r"}})
    assert (answer.status_code, "2 failed" in answer.text) == (
        (200, False) if tenant == "other" else (409, True)
    )
    assert answer.text.count('"thread_id":"acme/') == (2 if tenant == "other" else 0)
    assert "other/" not in answer.text
    # The index is asked for the run, and then the table for what the index lists of the tenant.
    assert all(partitions(each) <= {"acme/1#", "acme/2#"} for each in traffic.requests[1:])
