"""What a thread takes up and costs, computed from its measured inventories."""

from __future__ import annotations

import boto3
import pytest

from benchmarks.meter import Meter
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._operations.inventory import Inventory
from langgraph.checkpoint.dynamodb._operations.overview import measure_thread
from langgraph.checkpoint.dynamodb._operations.usage import Pruned, pruned, steps_of
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


def _inventory(harness: Harness) -> Inventory:
    [inventory] = harness.run(measure_thread(harness.process().storage, THREAD))
    return inventory


def test_a_step_costs_what_no_earlier_one_has() -> None:
    first, second = steps_of(_inventory(_thread()))
    assert first.new.bytes > second.new.bytes > 50_000
    assert first.write_units > second.write_units
    assert second.stored.items == 2


def test_a_prune_frees_what_only_the_gone_checkpoints_have() -> None:
    harness = _thread()
    before = _inventory(harness)
    found = pruned([before], 1, lambda _: True)
    assert found.checkpoints == 1
    harness.run(harness.process().prune())
    assert found.freed.items == len(before.sizes) - len(_inventory(harness).sizes)
    assert Pruned.sum_of([found, found]).checkpoints == 2


@pytest.mark.engines("dynamodb-local")
def test_steps_cost_what_the_engine_counted(engine: Engine, table_name: str) -> None:
    meter = Meter()
    session = meter.watch(boto3.session.Session())
    with DynamoDBSaver(table_name, session=session, endpoint_url=engine.endpoint_url) as saver:
        for turn in range(4):
            graphs.agent(saver).invoke({"messages": [("user", f"turn {turn}")]}, thread_config())
        [inventory] = saver.runner.run(measure_thread(saver.storage, "thread-1"))
        counted = sum(each.write_units for each in steps_of(inventory))
    # The thread's own item, and what a process does once.
    assert counted <= meter.total.write_units <= counted + 3
