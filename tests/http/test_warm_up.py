"""`warm_up` through the gateway: one request that says what the gateway is."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from tests.http.conftest import QUICK
from tests.support.http_stand_in import DROPPED, StandIn
from tests.support.operations import Side, ask


@pytest.mark.parametrize("kind", [HttpCheckpointSaver, HttpStore, HttpCache])
def test_warming_up_asks_the_gateway_once_what_it_is(gateway: StandIn, kind: Any, side: Side) -> None:
    gateway.always = DROPPED
    with kind(gateway.address, **QUICK) as made:
        ask(side, made, "warm_up")
    assert [each.path for each in gateway.asked] == ["/about"]
