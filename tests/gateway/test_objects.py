"""What is stored may be few bytes and many objects: a response is made with few of them in memory at a time."""

import json
import tracemalloc
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, create_gateway
from tests.gateway.conftest import always, client_of

pytestmark = pytest.mark.engines("dynamodb-local")

# Two hundred thousand bytes of JSON, which are compressed to a few hundred, and take three million as objects.
OBJECTS: list[Any] = [{}] * 49_000
OBJECTS_BYTES = 3_000_000
COUNT = 6


async def _posted(saver: DynamoDBSaver, path: str, document: Any, status: int = 200, **limits: int) -> Any:
    gateway = create_gateway(saver, authenticate=always(Principal("acme", "acme")), limits=Limits(**limits))
    response = await client_of(gateway).post(path, json=document)
    assert response.status_code == status, response.text
    return response.json()


@pytest.mark.parametrize("filter_", [None, '{"a": 1}'], ids=["all", "filtered"])
async def test_a_search_makes_the_objects_of_one_memory_at_a_time(
    saver: DynamoDBSaver, filter_: str | None
) -> None:
    value = json.dumps({"a": OBJECTS})
    for number in range(COUNT):
        put = {"op": "put", "namespace": ["acme"], "key": str(number), "value": value}
        await _posted(saver, "/store/batch", {"ops": [put]})
    search = {"op": "search", "namespace_prefix": ["acme"], "filter": filter_}
    tracemalloc.start()
    try:
        await _posted(saver, "/store/batch", {"ops": [search]})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < COUNT * OBJECTS_BYTES / 2


async def test_a_search_counts_what_many_small_memories_take(saver: DynamoDBSaver) -> None:
    puts = [{"op": "put", "namespace": ["acme"], "key": str(number), "value": "{}"} for number in range(150)]
    await _posted(saver, "/store/batch", {"ops": puts})
    search = {"ops": [{"op": "search", "namespace_prefix": ["acme"]}]}
    # Of 150 bytes each.
    refused = await _posted(saver, "/store/batch", search, 422, decompressed_bytes_max=100_000)
    assert "this reads over 400,000 bytes at a time" in refused["detail"]
    # One after the other are not too many.
    several = {"ops": search["ops"] * 9}
    assert (await _posted(saver, "/store/batch", several, decompressed_bytes_max=200_000))["left"] == []


async def test_a_page_of_a_list_ends_before_its_objects_are_many(saver: DynamoDBSaver) -> None:
    put: Any = {"thread_id": "acme/1", "metadata": {}, "new_versions": {}, "values": {}}
    for number in range(3):
        checkpoint = {"id": str(number), "channel_versions": {}, "of a later release": OBJECTS}
        await _posted(saver, "/checkpoints/put", {**put, "checkpoint": checkpoint})
    listed = {"thread_id": "acme/1"}
    page = await _posted(saver, "/checkpoints/list", listed, body_bytes_max=2_000_000)
    assert [each["checkpoint_id"] for each in page["checkpoints"]] == ["2"]
    rest = await _posted(saver, "/checkpoints/list", {**listed, "after": page["after"]})
    assert [each["checkpoint_id"] for each in rest["checkpoints"]] == ["1", "0"]
