"""The directory of threads costs no more than its documents say, as DynamoDB Local counts."""

from __future__ import annotations

import pytest

from benchmarks.directory import READ_UNITS_MAX, SHARE_MAX, STATUS_UNITS_MAX, measure_directory
from tools.engine import Engine


@pytest.mark.search
@pytest.mark.engines("dynamodb-local")
def test_an_agent_and_a_page_cost_little_more(engine: Engine) -> None:
    """Of fewer turns than the benchmark's, whose share of the directory is smaller."""
    cost = measure_directory(engine, turns=30)
    assert cost.share <= SHARE_MAX
    assert cost.page.requests == cost.page_of_all.requests == 1
    assert cost.page.read_units <= READ_UNITS_MAX
    assert cost.page_of_all.read_units <= READ_UNITS_MAX
    assert cost.page_with_status.read_units <= STATUS_UNITS_MAX
