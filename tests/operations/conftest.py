"""The world of most tests here: a table in memory, and one process with a saver in it."""

from __future__ import annotations

import pytest

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
def expiring(harness: Harness) -> Process:
    """Give the first process of the table, whose threads have a ttl."""
    return harness.process(TTL_SECONDS)
