"""Batches: what DynamoDB leaves unprocessed is sent again until nothing is left."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._format import items
from tests.support.harness import Harness

ITEMS = [{**items.key("t#", f"S#{number:016x}"), "data": {"B": b"data"}} for number in range(60)]


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
