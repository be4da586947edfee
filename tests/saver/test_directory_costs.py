"""The directory of threads costs no more than its documents say, as DynamoDB Local counts."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks.contestants import OURS, new_bench
from benchmarks.conversation import conversation
from tools.engine import Engine

pytestmark = [pytest.mark.search, pytest.mark.engines("dynamodb-local")]


def _agent_units(engine: Engine, **options: Any) -> float:
    """Return the write units of an agent that has a turn a minute."""
    seconds = [1_700_000_000.0]
    with new_bench(OURS, engine) as bench:
        saver = bench.open(**options)
        vars(saver)["_storage"] = replace(saver.storage, clock=lambda: seconds[0])
        for _ in conversation(saver, "thread", 30):
            seconds[0] += 60
        return bench.meter.total.write_units


def test_an_agent_costs_little_more(engine: Engine) -> None:
    assert _agent_units(engine, owner_from="thread_id") <= 1.05 * _agent_units(engine)


def test_a_page_costs_little(engine: Engine) -> None:
    with new_bench(OURS, engine) as bench:
        saver = bench.open()
        for number in range(25):
            for _ in conversation(saver, f"thread {number}", 2):
                pass
            saver.set_thread(f"thread {number}", owner="ada", title=f"Conversation number {number}")
        for list_page, read_units in (
            (partial(saver.threads, owner="ada"), 5),
            (saver.threads, 5),
            (partial(saver.threads, owner="ada", with_status=True), 30),
        ):
            bench.meter.lap()
            assert len(list_page().threads) == 20
            assert bench.meter.lap().read_units <= read_units
