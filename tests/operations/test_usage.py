"""What a thread takes up and costs, computed from its measured inventories."""

from __future__ import annotations

import boto3
import pytest

from benchmarks.meter import Meter
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._operations.overview import measure_thread
from langgraph.checkpoint.dynamodb._operations.usage import Account, Pruned, account_of, pruned
from tests.support import graphs
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import THREAD, Harness
from tools.engine import Engine


def _thread() -> Harness:
    """A thread whose two checkpoints share one value and have one each."""
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"shared": noise(60_000), "own": noise(60_000, 1)}))
    harness.run(process.put("2", {"shared": noise(60_000), "own": noise(60_000, 2)}, "1", ["own"]))
    harness.run(process.put_writes("2", [("own", 1)]))
    return harness


def _account(harness: Harness) -> Account:
    return account_of(harness.run(measure_thread(harness.process().storage, THREAD)))


def test_all_items_count_and_segments_that_are_named_but_missing() -> None:
    harness = _thread()
    account = _account(harness)
    assert account.total.items == len(harness.model.items())
    assert account.segments.items == len(harness.items("S#"))
    assert account.total.bytes > account.segments.bytes > 150_000
    assert account.missing == 0
    [segment, *_] = harness.items("S#").values()
    harness.remove(segment)
    assert _account(harness).missing == 1


def test_a_step_costs_what_no_earlier_one_has() -> None:
    first, second = _account(_thread()).steps
    assert first.new.bytes > second.new.bytes > 50_000
    assert first.write_units > second.write_units
    assert second.stored.items == 2


def test_a_prune_frees_what_only_the_gone_checkpoints_have() -> None:
    harness = _thread()
    before = _account(harness)
    found = pruned(harness.run(measure_thread(harness.process().storage, THREAD)), 1, lambda _: True)
    assert found.checkpoints == 1
    harness.run(harness.process().prune())
    after = _account(harness)
    assert found.freed.items == before.total.items - after.total.items
    assert Pruned.sum_of([found, found]).checkpoints == 2


@pytest.mark.engines("dynamodb-local")
def test_steps_cost_what_the_engine_counted(engine: Engine, table_name: str) -> None:
    meter = Meter()
    session = meter.watch(boto3.session.Session())
    with DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url) as saver:
        for turn in range(4):
            graphs.agent(saver).invoke({"messages": [("user", f"turn {turn}")]}, thread_config())
        steps = account_of(saver.runner.run(measure_thread(saver.storage, "thread-1"))).steps
        counted = sum(each.write_units for each in steps)
    # The thread's own item, and what a process does once.
    assert counted <= meter.total.write_units <= counted + 3
