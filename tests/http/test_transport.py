"""What is sent to the gateway, what is sent again, and what comes of answers that are none."""

import asyncio
import datetime
import email.utils
import json
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerError, errors
from langgraph.checkpoint.dynamodb._format.wire import DEADLINE_HEADER
from langgraph.checkpoint.dynamodb._runtime import attempts
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http import transport as module
from langgraph.checkpoint.dynamodb.http.exchange import Exchange, ServiceClock, compressed
from langgraph.checkpoint.dynamodb.http.node_cache import CACHE_TIMEOUT_SECONDS
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.http.conftest import QUICK, Send, call
from tests.support.http_stand_in import ABOUT, DROPPED, MEDIA_TYPE, UNREAD, Answer, StandIn, document, problem

Ask = Callable[..., Any]

DOCUMENT = {"text": "ä", "count": 1 << 40, "share": 0.5, "flag": True, "none": None, "list": [[1], {}]}
PRIVATE = "that-nobody-may-see"
BROTLI = {"Content-Type": MEDIA_TYPE, "Content-Encoding": "br"}
TRANSIENT = {
    "cut before the request is read": UNREAD,
    "cut after it took effect": DROPPED,
    "cut within the answer": document({"document": DOCUMENT}, cut_after=5),
    **{
        str(status): Answer(status, b"<html>", {"Content-Type": "text/html"})
        for status in (429, 500, 502, 503, 504)
    },
    "a problem that passes": problem(503, "ThreadBusyError", "Somebody has the thread."),
}


# What is sent


def test_a_document_goes_to_its_endpoint_and_another_comes_back(gateway: StandIn, ask: Ask) -> None:
    gateway.script = [document({"document": {"answer": [1, None]}, "of a later release": 1})]
    assert ask(gateway.address + "/", DOCUMENT) == {"answer": [1, None]}
    (asked,) = gateway.asked
    assert (asked.method, asked.path) == ("POST", "/checkpoints/put-writes")
    assert asked.document == {"document": DOCUMENT}
    assert asked.headers["Content-Type"] == MEDIA_TYPE
    assert "Authorization" not in asked.headers


def test_about_is_asked_for(gateway: StandIn, send: Send) -> None:
    transport = GatewayTransport(gateway.address + "/below", **QUICK)
    assert send(transport, Call("about", {})) == {"wire_version": 3}
    assert [(each.method, each.path, each.body) for each in gateway.asked] == [("GET", "/below/about", b"")]


def test_attempts_of_a_request_have_one_id_and_requests_have_different_ones(
    gateway: StandIn, ask: Ask
) -> None:
    gateway.script = [DROPPED]
    ask(gateway.address)
    ask(gateway.address)
    first, again, other = (each.headers["X-Request-Id"] for each in gateway.asked)
    assert first == again != other
    assert first.isalnum()


def test_what_cannot_be_sent_is_an_error_of_the_arguments(gateway: StandIn, ask: Ask) -> None:
    with pytest.raises(errors.CheckpointerInputError, match="surrogates not allowed; use valid Unicode"):
        ask(gateway.address, {"checkpoint_id": "\ud800"})
    assert gateway.asked == []


# What is sent again


@pytest.mark.parametrize("failure", TRANSIENT)
def test_what_fails_for_the_moment_is_sent_again(gateway: StandIn, ask: Ask, failure: str) -> None:
    gateway.script = [TRANSIENT[failure]] * 3
    assert ask(gateway.address, document=DOCUMENT) == DOCUMENT
    assert gateway.script == []
    assert [each.document for each in gateway.asked if each.document != {"document": DOCUMENT}] == []


@pytest.mark.usefixtures("hurried")
def test_a_compressed_answer_that_is_cut_is_asked_for_again(gateway: StandIn, ask: Ask) -> None:
    headers = {"Content-Type": MEDIA_TYPE, "Content-Encoding": "zstd"}
    cut = Answer(body=compressed(json.dumps({"document": {"x": "y" * 5000}}).encode())[:-5], headers=headers)
    gateway.script = [cut]
    assert ask(gateway.address, document=DOCUMENT) == DOCUMENT
    gateway.always = cut
    with pytest.raises(CheckpointerError, match="RemoteProtocolError: the compressed body is not complete"):
        ask(gateway.address)


def test_an_answer_that_does_not_come_in_time_is_asked_for_again(gateway: StandIn, ask: Ask) -> None:
    gateway.script = [document({}, delay_seconds=1.0)]
    assert ask(gateway.address, document=DOCUMENT, timeout=0.2) == DOCUMENT


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("failure", TRANSIENT)
def test_what_goes_on_failing_is_an_error(gateway: StandIn, ask: Ask, failure: str) -> None:
    gateway.always = TRANSIENT[failure]
    with pytest.raises(CheckpointerError) as caught:
        ask(gateway.address)
    if failure == "a problem that passes":
        assert (type(caught.value), str(caught.value)) == (errors.ThreadBusyError, "Somebody has the thread.")
    else:
        assert gateway.address in str(caught.value)
        assert "check url" in str(caught.value)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the seconds that were waited, which are not."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=waits.append))
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    return waits


def test_the_gateway_says_how_long_to_wait(gateway: StandIn, ask: Ask, waits: list[float]) -> None:
    date = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=50)
    no_zone = f"Mon, 01 Jan 2026 00:00:00 +{'9' * 20}"
    no_year = "Fri, 31 Dec 9999 23:59:59 -2300"
    for says in ("7", email.utils.format_datetime(date, usegmt=True), "nonsense", no_zone, no_year):
        gateway.script.append(Answer(429, headers={"Retry-After": says}))
        ask(gateway.address)
    seconds, until, *unknown = waits
    # Up to half as long more, at random, so that not all clients come back at once.
    assert 7 <= seconds <= 10.5
    assert 40 < until <= 75
    assert max(unknown) < 1


def test_what_would_have_to_wait_for_too_long_is_not_waited_for(
    gateway: StandIn, ask: Ask, waits: list[float]
) -> None:
    gateway.always = problem(429, "TooManyRequests", "Forty requests a second.", Retry_After="3600")
    with pytest.raises(CheckpointerError, match="answered 429 Forty requests a second"):
        ask(gateway.address)
    assert waits == []


@pytest.mark.usefixtures("hurried")
def test_what_is_tried_again_for_long_is_spoken_of(
    gateway: StandIn, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.script = [DROPPED] * 3
    with caplog.at_level(logging.WARNING, attempts.__name__):
        ask(gateway.address, document={"state": PRIVATE}, auth=PRIVATE)
    assert f"no response from the gateway at {gateway.address}" in caplog.text
    assert PRIVATE not in caplog.text


# What is an error at once


@pytest.mark.parametrize("kind", [name for name in vars(errors) if name.endswith("Error")])
def test_an_error_keeps_its_class_and_its_words(gateway: StandIn, ask: Ask, kind: str) -> None:
    gateway.always = problem(409, kind, "What is wrong.", X_Request_Id="request-7")
    with pytest.raises(CheckpointerError) as caught:
        ask(gateway.address)
    assert (type(caught.value).__name__, str(caught.value)) == (kind, "What is wrong.")
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [
            f"The gateway at {gateway.address} gave this response to request request-7."
        ]
    assert len(gateway.asked) == 1


HTML, PROBLEM = ({"Content-Type": each} for each in ("text/html", "application/problem+json"))
NOT_ITS_OWN = r"\(request id {id}\); the gateway itself does not answer like this: check url"
OTHER_ERRORS = [
    (problem(500, "about:blank", "Something."), r"answered 500 Something. \(request id {id}\)$"),
    (problem(500, "https://gateway.example/problems#annotations", None), "answered 500 A title"),
    (problem(500, "TYPE_CHECKING", None), "answered 500 A title"),
    (problem(500, "CheckpointerError", None), "answered 500 A title"),
    (problem(500, "about:blank", "Something.", X_Request_Id="its own"), "request id its own"),
    (Answer(501, b"", {}), f"answered 501 Not Implemented {NOT_ITS_OWN}"),
    (Answer(501, b"{", PROBLEM), f"answered 501 Not Implemented {NOT_ITS_OWN}"),
    (Answer(501, b"[]", PROBLEM), f"answered 501 Not Implemented {NOT_ITS_OWN}"),
    (Answer(599, PRIVATE.encode(), HTML), rf"answered 599 \(an unknown status\) {NOT_ITS_OWN}"),
]
OF_THE_CONFIGURATION = [
    (Answer(401, b"", {}), r"refused the credentials \(401 Unauthorized\); pass auth="),
    (
        problem(403, "CheckpointerError", "Only yours."),
        r"does not allow this \(403 Only yours.\); check auth=",
    ),
    (Answer(307, b"", {"Location": PRIVATE}), r"redirects \(307 Temporary Redirect\).*check url"),
    (Answer(200, b"<p>", HTML), "is not a gateway of this release: it sent text/html; check"),
    (Answer(200, b"", {}), "is not a gateway of this release: it sent no media type; check"),
    (Answer(413, PRIVATE.encode(), HTML), "refuses a body of this size .*client_max_body_size 64m"),
]


@pytest.mark.parametrize(
    ("answer", "says", "kind"),
    [(*each, CheckpointerError) for each in OTHER_ERRORS]
    + [(*each, CheckpointerConfigurationError) for each in OF_THE_CONFIGURATION],
)
def test_any_other_answer_is_an_error_that_says_what_to_check(
    gateway: StandIn, ask: Ask, answer: Answer, says: str, kind: type[CheckpointerError]
) -> None:
    gateway.always = answer
    with pytest.raises(CheckpointerError) as caught:
        ask(gateway.address)
    assert type(caught.value) is kind
    [asked] = gateway.asked
    assert re.search(says.format(id=asked.headers["X-Request-Id"]), str(caught.value))
    assert gateway.address in str(caught.value)
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    ("sent", "answer", "says"),
    [
        (call(), Answer(body=b"\xc1"), "cannot be read: it is not one of this release"),
        (call(), Answer(body=b'{"document": 7}'), "cannot be read: it is not one of this release"),
        (call(), Answer(headers=BROTLI), "cannot be read: it is not one of this release"),
        (Call("about", {}), replace(ABOUT, body=b"{"), "cannot be read: it is not one of this release"),
        (Call("about", {}), replace(ABOUT, body=b"[" * 100_000), "cannot be read: it is not one of this"),
    ],
)
def test_an_answer_that_cannot_be_decoded(
    gateway: StandIn, send: Send, sent: Call, answer: Answer, says: str
) -> None:
    gateway.always = answer
    with pytest.raises(CheckpointerError, match=says):
        send(GatewayTransport(gateway.address, **QUICK), sent)


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
