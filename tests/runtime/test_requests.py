"""Batches: what DynamoDB leaves unprocessed is sent again until nothing is left."""

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerUnavailableError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.harness import TABLE, Harness

KEYS = [items.key("t#", f"S#{number:016x}") for number in range(60)]
ITEMS = [{**each, "data": {"B": b"data"}} for each in KEYS]


def test_a_batch_goes_on_until_nothing_is_unprocessed() -> None:
    """DynamoDB may carry out a part of each batch, and may do so over and over."""
    harness = Harness()
    table = harness.process().storage.table
    harness.model.faults.unprocessed = lambda _method, count: range(count // 2)
    harness.run(table.batch_write(puts=ITEMS))
    assert harness.model.items() == ITEMS
    found = harness.run(
        table.batch_get([items.key("t#", items.sort_key(each)) for each in ITEMS], consistent=True)
    )
    assert sorted(map(items.sort_key, found)) == list(map(items.sort_key, ITEMS))
    harness.run(table.batch_write(deletes=ITEMS[1:]))
    assert harness.model.items() == ITEMS[:1]


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [([1] * 60, [25, 25, 10]), ([300_000] * 5, [2, 2, 1]), ([399_000, 1, 399_000, 1, 1], [2, 3])],
)
def test_a_batch_has_no_more_items_and_bytes_than_one_request_may(
    sizes: list[int], groups: list[int]
) -> None:
    """An event loop would stand still while it sends more than 1 MiB, and a load balancer loses it."""
    puts = [{**key, "data": {"B": bytes(size)}} for key, size in zip(KEYS, sizes, strict=False)]
    operation = Table("x").batch_write(puts)
    sent = [call.params["RequestItems"]["x"] for call in next(operation) if isinstance(call, Call)]
    assert [len(each) for each in sent] == groups
    assert [request["PutRequest"]["Item"] for each in sent for request in each] == puts


@pytest.mark.parametrize("retry_seconds", [0.0, 5.0])
def test_a_batch_that_stays_unprocessed_is_sent_for_all_of_the_time(retry_seconds: float) -> None:
    harness = Harness()
    harness.model.faults.unprocessed = lambda _method, count: range(count)
    began = harness.now
    with pytest.raises(CheckpointerUnavailableError, match=r"60 of 60 items .* still unprocessed"):
        harness.run(Table(TABLE, retry_seconds).batch_write(puts=ITEMS))
    assert harness.now - began == pytest.approx(retry_seconds)


def test_a_batch_of_which_nothing_at_all_was_read_is_sent_again() -> None:
    """The answer then names no table among its responses."""
    key = {"PK": {"S": "p"}, "SK": {"S": "s"}}
    operation = Table("the-table").batch_get([key], consistent=True)
    (call,) = next(operation)
    assert isinstance(call, Call)
    again = operation.send([{"Responses": {}, "UnprocessedKeys": call.params["RequestItems"]}])
    assert [each.params for each in again if isinstance(each, Call)] == [call.params]
