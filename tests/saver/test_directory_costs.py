"""The directory of threads costs no more than its documents say, as DynamoDB Local counts."""

from __future__ import annotations

import pytest

from benchmarks.directory import READ_UNITS_MAX, SHARE_MAX, STATUS_UNITS_MAX, measure_directory
from tools.engine import Engine


@pytest.mark.engines("dynamodb-local")
@pytest.mark.parametrize(
    "turns", [pytest.param(8, marks=pytest.mark.share), pytest.param(60, marks=pytest.mark.search)]
)
def test_an_agent_and_a_page_cost_little_more(engine: Engine, turns: int) -> None:
    cost = measure_directory(engine, turns)
    assert cost.share <= SHARE_MAX
    assert cost.page.requests == cost.page_of_all.requests == 1
    assert cost.page.read_units <= READ_UNITS_MAX
    assert cost.page_of_all.read_units <= READ_UNITS_MAX
    assert cost.page_with_status.read_units <= STATUS_UNITS_MAX
