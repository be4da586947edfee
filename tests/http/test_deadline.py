"""A client tells until when it waits, by the service's clock."""

from __future__ import annotations

from email.utils import formatdate
from types import SimpleNamespace

import httpx
import pytest

from langgraph.checkpoint.dynamodb._runtime import attempts
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http.cache import CACHE_TIMEOUT_SECONDS
from langgraph.checkpoint.dynamodb.http.exchange import DEADLINE, Exchange, ServiceClock


def test_a_deadline_is_by_the_clock_of_the_service() -> None:
    now = 1000.0
    clock = ServiceClock(30.0, lambda: now)
    assert clock.headers() == {}
    clock.learn({"Date": formatdate(5000.0, usegmt=True)})
    now = 1010.0
    # Ten seconds later there, and for as long as is waited, less what is not sure of both clocks.
    assert float(clock.headers()[DEADLINE]) == 5010.5 + 28.0


def test_a_short_time_is_not_over_before_it_begins() -> None:
    clock = ServiceClock(1.0, lambda: 0.0)
    clock.learn({"Date": formatdate(0.0, usegmt=True)})
    assert float(clock.headers()[DEADLINE]) == 1.0


def test_a_cached_node_has_a_deadline_within_the_time_that_its_client_waits() -> None:
    clock = ServiceClock(CACHE_TIMEOUT_SECONDS, lambda: 0.0)
    clock.learn({"Date": formatdate(0.0, usegmt=True)})
    # Of the service's clock, the header has whole seconds: it may be at any time of this one.
    for now in (0.0, 0.999):
        assert now < float(clock.headers()[DEADLINE]) < now + CACHE_TIMEOUT_SECONDS


def test_what_is_no_date_changes_nothing() -> None:
    clock = ServiceClock(30.0, lambda: 0.0)
    for each in ({}, {"Date": "soon"}, {"Date": ""}):
        clock.learn(each)
        assert clock.headers() == {}


def test_who_has_waited_for_a_turn_tries_for_as_long_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: clock.now))
    exchange = Exchange("http://gateway.example", Call("put", {}), 60.0, ServiceClock(30.0))
    clock.now = 1000.0
    exchange.request()
    assert exchange.seconds_to_next(httpx.ReadError("")) < 60.0
