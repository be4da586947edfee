"""What its client has given up is not begun any more."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future

import pytest

from langgraph.checkpoint.dynamodb._format.wire import DEADLINE_HEADER
from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from langgraph.checkpoint.dynamodb.gateway import Limits
from tests.gateway.conftest import MakeClient, Script


@pytest.mark.parametrize(
    ("seconds", "status"), [(60, 200), (math.inf, 200), (-0.001, 503), (math.nan, 400), (None, 400)]
)
async def test_a_deletion_that_comes_late_deletes_nothing(
    seconds: float | None, status: int, make_client: MakeClient, script: Script
) -> None:
    headers = {DEADLINE_HEADER: "soon" if seconds is None else str(time.time() + seconds)}
    answer = await make_client().post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=headers)
    assert (answer.status_code, len(script.asked)) == (status, status == 200)


@pytest.mark.parametrize("of", ["the client", "the service"])
async def test_what_has_begun_ends_when_its_time_is_over(
    of: str, make_client: MakeClient, script: Script
) -> None:
    """A deletion that waits for another one's claim would begin when its client has asked again and stored since."""
    script.wait = Wait(Future(), 100.0)
    limits, headers = Limits(), {DEADLINE_HEADER: str(time.time() + 0.2)}
    if of == "the service":
        limits, headers = Limits(request_seconds_max=0.05), {}
    async with make_client(limits=limits) as client:
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=headers)
    assert answer.status_code == 504
    assert (len(script.asked), script.running) == (1, 0)
