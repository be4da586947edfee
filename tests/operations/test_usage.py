"""What a prune would free, computed from measured inventories."""

from __future__ import annotations

from langgraph.checkpoint.dynamodb._operations.overview import measure_thread
from langgraph.checkpoint.dynamodb._operations.usage import pruned
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, Harness


def test_a_prune_frees_what_only_the_gone_checkpoints_have() -> None:
    """Two checkpoints share one value and have one each."""
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"shared": noise(60_000), "own": noise(60_000, 1)}))
    harness.run(process.put("2", {"shared": noise(60_000), "own": noise(60_000, 2)}, "1", ["own"]))
    before = len(harness.model.items())
    found = pruned(harness.run(measure_thread(harness.process().storage, THREAD)), 1, lambda _: True)
    assert found.checkpoints == 1
    assert found.bytes > 50_000
    harness.run(harness.process().prune())
    assert found.items == before - len(harness.model.items())
