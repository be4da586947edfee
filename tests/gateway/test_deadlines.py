"""What its client has given up is not begun any more."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future

import pytest
from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from langgraph.checkpoint.dynamodb.gateway import Limits
from langgraph.checkpoint.dynamodb.gateway.asking import DEADLINE_HEADER, seconds_left
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.http import exchange
from tests.gateway.conftest import MakeClient, Script


@pytest.mark.parametrize(("given", "left"), [(None, math.inf), ("5", 0.0), ("5.5", 0.5), ("inf", math.inf)])
def test_a_request_in_time_is_served(given: str | None, left: float) -> None:
    assert seconds_left(Headers({} if given is None else {DEADLINE_HEADER: given}), 5.0) == left


@pytest.mark.parametrize(("given", "status"), [("4.9", 503), ("soon", 400), ("nan", 400)])
def test_one_that_is_late_or_says_nothing_is_refused(given: str, status: int) -> None:
    with pytest.raises(ProblemError) as refused:
        seconds_left(Headers({DEADLINE_HEADER: given}), 5.0)
    assert refused.value.status == status


async def test_a_deletion_that_comes_late_deletes_nothing(make_client: MakeClient, script: Script) -> None:
    async with make_client() as client:
        late = {DEADLINE_HEADER: str(time.time() - 0.001)}
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=late)
        assert (answer.status_code, script.asked) == (503, [])
        in_time = {DEADLINE_HEADER: str(time.time() + 60)}
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=in_time)
        assert (answer.status_code, len(script.asked)) == (200, 1)


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


def test_both_sides_call_the_header_the_same() -> None:
    assert exchange.DEADLINE == DEADLINE_HEADER
