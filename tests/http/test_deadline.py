"""A client tells until when it waits, by the service's clock."""

from __future__ import annotations

from email.utils import formatdate
from types import SimpleNamespace

import httpx
import pytest

from langgraph.checkpoint.dynamodb._format.wire import DEADLINE_HEADER
from langgraph.checkpoint.dynamodb._runtime import attempts
from langgraph.checkpoint.dynamodb.http.exchange import Exchange, ServiceClock
from langgraph.checkpoint.dynamodb.http.node_cache import CACHE_TIMEOUT_SECONDS
from tests.http.conftest import call


def _date(seconds: float) -> dict[str, str]:
    return {"Date": formatdate(seconds, usegmt=True)}


def test_a_deadline_is_by_the_clock_of_the_service() -> None:
    now = 1000.0
    clock = ServiceClock(30.0, lambda: now)
    assert clock.headers() == {}
    clock.learn(_date(5000.0))
    now = 1010.0
    # Ten seconds later there, and for as long as is waited, less what is not sure of the service's clocks.
    assert float(clock.headers()[DEADLINE_HEADER]) == 5010.0 + 29.75


def test_of_many_responses_the_closest_counts() -> None:
    now = 0.0
    clock = ServiceClock(30.0, lambda: now)
    # The service's clock is at 100.7. Responses take from 0.1 to 2 seconds.
    for at, seconds in ((0.0, 2.0), (5.2, 0.1), (9.0, 1.5)):
        now = at + seconds
        clock.learn(_date(float(int(100.7 + at + seconds))))
    now = 20.0
    assert 120.0 < float(clock.headers()[DEADLINE_HEADER]) - 29.75 <= 120.7
    # The service's clock was set back by a minute.
    clock.learn(_date(60.0))
    assert float(clock.headers()[DEADLINE_HEADER]) == 60.0 + 29.75


@pytest.mark.parametrize("timeout", [0.5, CACHE_TIMEOUT_SECONDS, 30.0])
def test_a_request_that_is_not_late_is_in_time(timeout: float) -> None:
    clock = ServiceClock(timeout, lambda: 0.0)
    clock.learn(_date(0.0))
    # The header has whole seconds: the service's clock may be at any time of this one.
    assert 0.999 < float(clock.headers()[DEADLINE_HEADER]) <= max(1.0, timeout)


def test_what_is_no_date_changes_nothing() -> None:
    clock = ServiceClock(30.0, lambda: 0.0)
    for each in ({}, {"Date": "soon"}, {"Date": ""}):
        clock.learn(each)
        assert clock.headers() == {}


def test_who_has_waited_for_a_turn_tries_for_as_long_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: clock.now))
    exchange = Exchange("http://gateway.example", call(), 60.0, ServiceClock(30.0))
    clock.now = 1000.0
    exchange.request()
    assert exchange.seconds_to_next(httpx.ReadError("")) < 60.0
