"""Sizes for simulated states, and how long to look."""

import os

import pytest

from tests.simulation.world import use_small_limits
from tests.support.examples import percent
from tests.support.seeds import RUNS_VARIABLE


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few hundred bytes be a large state."""
    use_small_limits(monkeypatch)


@pytest.fixture
def schedules() -> int:
    """Give the number of random schedules to try."""
    return int(os.environ.get(RUNS_VARIABLE, percent(60)))
