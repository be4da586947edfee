"""Requests to a table as documents: what is sent, what is divided, and what an answer means."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import langgraph.checkpoint.dynamodb.http as package
from langgraph.checkpoint.dynamodb._runtime.failures import error_code
from langgraph.checkpoint.dynamodb._runtime.requests import CONDITION_FAILED
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from langgraph.checkpoint.dynamodb.http.table import ConditionFailedError, TableTransport
from tests.http.conftest import QUICK
from tests.support.http_stand_in import StandIn, document
from tests.support.operations import Side, both_sides

KEY = {"PK": {"S": "acme/x/%M#"}, "SK": {"S": "M#k"}}


def ask(side: Side, gateway: StandIn, method: str, **params: Any) -> Any:
    """Make a request to the table."""
    transport, call = (
        TableTransport(gateway.address, client_options=QUICK["client_options"]),
        Call(method, params),
    )
    try:
        return transport.send(call) if side == "sync" else asyncio.run(_aask(transport, call))
    finally:
        transport.close()


async def _aask(transport: TableTransport, call: Call) -> Any:
    try:
        return await transport.asend(call)
    finally:
        await transport.aclose()


@both_sides
def test_a_request_has_no_table_s_name(gateway: StandIn, side: Side) -> None:
    gateway.script = [document({"response": {"Item": KEY, "Attributes": None}, "conflict": None})]
    assert ask(side, gateway, "get_item", TableName="x", Key=KEY) == {"Item": KEY}
    assert [(each.path, each.document) for each in gateway.asked] == [("/checkpoints/get-item", {"Key": KEY})]


@both_sides
@pytest.mark.parametrize("kind", [HttpCheckpointSaver, HttpStore, HttpCache])
def test_warming_up_asks_the_gateway_what_it_is(gateway: StandIn, kind: Any, side: Side) -> None:
    made = kind(gateway.address, client_options=QUICK["client_options"])
    if side == "sync":
        with made:
            made.warm_up()
    else:
        asyncio.run(_warm(made))
    assert [each.path for each in gateway.asked] == ["/about"]


async def _warm(made: Any) -> None:
    async with made:
        await made.awarm_up()


@both_sides
@pytest.mark.parametrize("item", [{}, KEY])
def test_a_condition_that_fails_is_dynamodb_s_error(gateway: StandIn, side: Side, item: Any) -> None:
    gateway.script = [document({"response": {}, "conflict": item})]
    with pytest.raises(ConditionFailedError) as caught:
        ask(side, gateway, "update_item", TableName="x", Key=KEY)
    assert error_code(caught.value) == CONDITION_FAILED
    assert caught.value.response["Item"] == item


@both_sides
def test_a_batch_of_reads_says_what_is_left(gateway: StandIn, side: Side) -> None:
    wanted = {"x": {"Keys": [KEY], "ConsistentRead": True}}
    gateway.script = [document({"items": [KEY], "left": []}), document({"items": [], "left": [KEY]})]
    answers = [ask(side, gateway, "batch_get_item", RequestItems=wanted) for _ in range(2)]
    assert answers == [
        {"Responses": {"x": [KEY]}, "UnprocessedKeys": {}},
        {"Responses": {"x": []}, "UnprocessedKeys": {"x": {"Keys": [KEY]}}},
    ]
    assert gateway.asked[0].document == wanted["x"]


@both_sides
@pytest.mark.parametrize("is_throttled", [False, True])
def test_what_did_not_fit_is_asked_for_at_once(gateway: StandIn, side: Side, *, is_throttled: bool) -> None:
    keys = [{**KEY, "SK": {"S": f"M#{number}"}} for number in range(3)]
    last = ([], keys[2:]) if is_throttled else (keys[2:], [])
    gateway.script = [
        document({"items": items, "left": left, "units": {"read": 1.0, "write": None}})
        for items, left in ((keys[:1], keys[1:]), (keys[1:2], keys[2:]), last)
    ]
    wanted = {"x": {"Keys": keys, "ConsistentRead": False}}
    answer = ask(side, gateway, "batch_get_item", RequestItems=wanted)
    assert answer == {
        "Responses": {"x": keys[: 2 if is_throttled else 3]},
        "UnprocessedKeys": {"x": {"Keys": keys[2:]}} if is_throttled else {},
        "ConsumedCapacity": {"CapacityUnits": 3.0},
    }
    asked = [each.document for each in gateway.asked]
    assert asked == [{**wanted["x"], "Keys": keys[number:]} for number in range(3)]


@both_sides
def test_what_of_a_batch_of_writes_is_left_is_unprocessed(gateway: StandIn, side: Side) -> None:
    writes: list[dict[str, Any]] = [{"PutRequest": {"Item": {**KEY, "data": {"B": b"data"}}}}] * 2
    writes += [{"DeleteRequest": {"Key": KEY}}]
    gateway.script = [document({"left": writes[:1]}), document({"left": []})]
    answer = ask(side, gateway, "batch_write_item", RequestItems={"x": writes})
    assert answer == {"UnprocessedItems": {"x": writes[:1]}}
    assert ask(side, gateway, "batch_write_item", RequestItems={"x": writes}) == {"UnprocessedItems": {}}
    assert [each.document["requests"] for each in gateway.asked] == [writes, writes]


def test_the_package_has_the_names_that_it_exports() -> None:
    assert [getattr(package, name).__name__ for name in package.__all__] == package.__all__
    with pytest.raises(AttributeError, match="HttpQueue"):
        getattr(package, "HttpQueue")  # noqa: B009 - it has no such name.
