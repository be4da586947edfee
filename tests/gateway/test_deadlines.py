"""What its client has given up is not begun any more."""

from __future__ import annotations

import time

import pytest
from starlette.datastructures import Headers

from langgraph.checkpoint.dynamodb.gateway.deadlines import HEADER, check
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.http import deadline
from tests.gateway.conftest import MakeClient, Script


@pytest.mark.parametrize(("given", "now"), [(None, 5.0), ("5", 5.0), ("5.25", 5.2), ("inf", 5.0)])
def test_a_request_in_time_is_served(given: str | None, now: float) -> None:
    check(Headers({} if given is None else {HEADER: given}), now)


@pytest.mark.parametrize(("given", "status"), [("4.9", 503), ("soon", 400), ("nan", 400)])
def test_one_that_is_late_or_says_nothing_is_refused(given: str, status: int) -> None:
    with pytest.raises(ProblemError) as refused:
        check(Headers({HEADER: given}), 5.0)
    assert refused.value.status == status


async def test_a_deletion_that_comes_late_deletes_nothing(make_client: MakeClient, script: Script) -> None:
    async with make_client(insecure=True) as client:
        late = {HEADER: str(time.time() - 0.001)}
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=late)
        assert (answer.status_code, script.asked) == (503, [])
        in_time = {HEADER: str(time.time() + 60)}
        answer = await client.post("/checkpoints/delete-thread", json={"thread_id": "t"}, headers=in_time)
        assert (answer.status_code, len(script.asked)) == (200, 1)


def test_both_sides_call_the_header_the_same() -> None:
    assert deadline.HEADER == HEADER
