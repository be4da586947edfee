"""`warm_up` through the gateway: one request that says what the gateway is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver, HttpStore
from tests.http.conftest import QUICK
from tests.support.http_stand_in import StandIn


@pytest.mark.parametrize("side", ["sync", "async"])
@pytest.mark.parametrize("kind", [HttpCheckpointSaver, HttpStore, HttpCache])
def test_warming_up_asks_the_gateway_what_it_is(gateway: StandIn, kind: Any, side: str) -> None:
    made = kind(gateway.address, client_options=QUICK["client_options"])
    if side == "sync":
        with made:
            made.warm_up()
    else:
        asyncio.run(_warm(made))
    assert [each.path for each in gateway.asked] == ["/about"]


async def _warm(made: Any) -> None:
    async with made:
        await made.awarm_up()
