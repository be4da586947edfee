"""What its client has given up is not begun any more."""

from __future__ import annotations

import asyncio
import math
import time
from concurrent.futures import Future

import pytest
from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb._runtime.steps import Op, Wait
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


async def test_what_has_begun_ends_when_its_client_gives_it_up(
    make_client: MakeClient, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion that waits for another one's claim would begin when its client has asked again and stored since."""
    ended = asyncio.Event()

    def wait(_storage: object, request: object) -> Op[dict[str, object]]:
        try:
            yield (Wait(Future(), 100.0),)
        finally:
            ended.set()
        return {"never": request}

    monkeypatch.setattr(script, "_run", wait)
    async with make_client() as client:
        soon = {DEADLINE_HEADER: str(time.time() + 0.2)}
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=soon)
    assert answer.status_code == 504
    assert ended.is_set()


def test_both_sides_call_the_header_the_same() -> None:
    assert exchange.DEADLINE == DEADLINE_HEADER
