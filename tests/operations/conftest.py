"""The world of most tests here: a table in memory, and one process with a saver in it."""

import pytest

from tests.support.checkpoints import noise
from tests.support.harness import TTL_SECONDS, Harness, Process


@pytest.fixture
def harness() -> Harness:
    """Give an empty table."""
    return Harness()


@pytest.fixture
def process(harness: Harness) -> Process:
    """Give the first process of the table, which keeps everything for ever."""
    return harness.process()


@pytest.fixture
def aged(harness: Harness, expiring: Process) -> Process:
    """Give that process, with a third checkpoint whose segments expire before long."""
    values = {"big": noise(100_000)}
    harness.run(expiring.put("1", values))
    for checkpoint_id, parent_id in (("2", "1"), ("3", "2")):
        harness.now += 0.45 * TTL_SECONDS
        harness.run(expiring.put(checkpoint_id, values, parent_id, ()))
    harness.now += 0.9 * TTL_SECONDS
    return expiring


@pytest.fixture
def expiring(harness: Harness) -> Process:
    """Give the first process of the table, whose threads have a ttl."""
    return harness.process(TTL_SECONDS)
