"""What the in-memory DynamoDB does that no engine on one machine can be made to show: age, lag, loss and time.

What it shares with DynamoDB Local is checked against DynamoDB Local, in `test_dynamodb_model_agreement`.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.dynamodb_model import DynamoDBModel

TABLE = "table"
PARTITION: dict[str, Any] = {
    "KeyConditionExpression": "#pk = :p",
    "ExpressionAttributeNames": {"#pk": "PK"},
    "ExpressionAttributeValues": {":p": {"S": "p"}},
}


@pytest.fixture
def clock() -> SimpleNamespace:
    """Give a clock that a test moves, at an hour that is not zero, so that a forgotten clock shows."""
    return SimpleNamespace(seconds=1000.0)


@pytest.fixture
def model(clock: SimpleNamespace) -> DynamoDBModel:
    return DynamoDBModel(table_schema(TABLE), lambda: float(clock.seconds))


def key(range_key: str) -> dict[str, Any]:
    return {"PK": {"S": "p"}, "SK": {"S": range_key}}


def put(model: DynamoDBModel, range_key: str, **attributes: dict[str, Any]) -> None:
    model.handle("put_item", {"TableName": TABLE, "Item": key(range_key) | attributes})


def get(model: DynamoDBModel, range_key: str, *, consistent: bool) -> dict[str, Any] | None:
    params = {"TableName": TABLE, "Key": key(range_key), "ConsistentRead": consistent}
    item: dict[str, Any] | None = model.handle("get_item", params).get("Item")
    return item


def range_keys(model: DynamoDBModel, began_at: int | None = None, **params: Any) -> list[str]:
    page = model.handle("query", {"TableName": TABLE, **PARTITION, **params}, began_at)
    return [item["SK"]["S"] for item in page["Items"]]


def test_an_eventual_read_misses_as_many_writes_as_it_is_told(model: DynamoDBModel) -> None:
    put(model, "a", v={"N": "1"})
    put(model, "a", v={"N": "2"})
    misses = iter((0, 1, 2, 3))
    model.faults.missed_writes = lambda _key, _written: next(misses)
    seen = [get(model, "a", consistent=False) for _ in range(4)]
    assert seen == [key("a") | {"v": {"N": "2"}}, key("a") | {"v": {"N": "1"}}, None, None]
    assert get(model, "a", consistent=True) == key("a") | {"v": {"N": "2"}}


def test_an_eventual_query_sees_what_was_deleted_and_misses_what_was_written(model: DynamoDBModel) -> None:
    put(model, "deleted")
    model.handle("delete_item", {"TableName": TABLE, "Key": key("deleted")})
    put(model, "written")
    model.faults.missed_writes = lambda _key, _written: 1
    assert range_keys(model) == ["deleted"]
    assert range_keys(model, ConsistentRead=True) == ["written"]


def test_the_index_lags_behind_the_table(model: DynamoDBModel) -> None:
    params = {
        "TableName": TABLE,
        "IndexName": "run_id-index",
        "KeyConditionExpression": "#run = :run",
        "ExpressionAttributeNames": {"#run": "run_id"},
        "ExpressionAttributeValues": {":run": {"S": "run"}},
    }
    put(model, "a", run_id={"S": "run"}, v={"N": "1"})
    model.faults.index_lag = lambda _key, _written: 1
    assert model.handle("query", params)["Items"] == []
    model.faults.index_lag = lambda _key, _written: 0
    assert model.handle("query", params)["Items"] == [key("a") | {"run_id": {"S": "run"}}]


def test_a_strong_page_is_not_a_snapshot_but_reads_its_items_in_order(model: DynamoDBModel) -> None:
    """A page that read the place of `a` before `a` was written may still return `b`, which was written later."""
    began_at = model.sequence
    put(model, "a")
    put(model, "b")
    moments = iter([began_at, model.sequence])
    model.faults.reading_moment = lambda _earliest, _latest: next(moments)
    assert range_keys(model, began_at, ConsistentRead=True) == ["b"]


def test_a_batch_leaves_unprocessed_what_it_is_told(model: DynamoDBModel) -> None:
    requests = [{"PutRequest": {"Item": key(name)}} for name in "abc"]
    model.faults.unprocessed = lambda _method, _count: [0, 2]
    answer = model.handle("batch_write_item", {"RequestItems": {TABLE: requests}})
    assert answer["UnprocessedItems"] == {TABLE: [requests[0], requests[2]]}
    assert range_keys(model) == ["b"]

    model.faults.unprocessed = lambda _method, _count: [1]
    request = {"Keys": [key("a"), key("b")], "ConsistentRead": True}
    answer = model.handle("batch_get_item", {"RequestItems": {TABLE: request}})
    assert answer["Responses"] == {TABLE: []}
    assert answer["UnprocessedKeys"] == {TABLE: {"Keys": [key("b")], "ConsistentRead": True}}


def test_expired_items_stay_until_they_are_collected(model: DynamoDBModel, clock: SimpleNamespace) -> None:
    put(model, "early", expires_at={"N": "1001"})
    put(model, "late", expires_at={"N": "1002"})
    put(model, "never")
    clock.seconds = 1003.0
    assert range_keys(model) == ["early", "late", "never"]
    assert model.expired() == [key("early"), key("late")]
    model.expire([key("late")])
    assert range_keys(model) == ["early", "never"]
    model.expire()
    assert range_keys(model) == ["never"]


def test_a_page_ends_with_the_item_that_fills_a_megabyte(model: DynamoDBModel) -> None:
    for name in "abcdef":
        put(model, name, v={"B": b"x" * 300 * 1024})
    params = {"TableName": TABLE, **PARTITION}
    first = model.handle("query", params)
    assert (first["Count"], first["LastEvaluatedKey"]) == (4, key("d"))
    rest = model.handle("query", params | {"ExclusiveStartKey": first["LastEvaluatedKey"]})
    assert rest["Count"] == 2
    assert "LastEvaluatedKey" not in rest
