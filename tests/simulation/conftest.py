"""Sizes for simulated states, and how long to look."""

from __future__ import annotations

import os

import pytest

from tests.simulation.world import use_small_limits
from tests.support.examples import percent

SCHEDULES_VARIABLE = "LANGGRAPH_DYNAMODB_SCHEDULES"


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred bytes be a large state."""
    use_small_limits(monkeypatch)


@pytest.fixture
def schedules() -> int:
    """Give the number of random schedules to try."""
    return int(os.environ.get(SCHEDULES_VARIABLE, percent(60)))
