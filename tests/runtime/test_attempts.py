"""Requests that fail: which are sent again and for how long, what is said meanwhile, and which remedy is named."""

import asyncio
import contextlib
import errno
import logging
import re
import socket
import sys
import time
from itertools import count
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError, HTTPClientError

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfigurationError,
    CheckpointerUnavailableError,
    DynamoDBSaver,
)
from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._runtime import attempts
from langgraph.checkpoint.dynamodb._runtime.attempts import Attempts
from langgraph.checkpoint.dynamodb._runtime.clients import default_config
from langgraph.checkpoint.dynamodb._runtime.failures import is_transient
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.checkpoints import thread_config
from tests.support.operations import Side, ask, both_sides
from tests.support.scripted import DROPPED, REQUEST_ID, Scripted

TRANSIENT = {
    "failed": (500, "InternalServerError"),
    "unavailable": (503, "ServiceUnavailable"),
    "throttled": (400, "ProvisionedThroughputExceededException"),
    "throttled by rate": (400, "ThrottlingException"),
    "over the account's quota": (400, "RequestLimitExceeded"),
    "dropped": DROPPED,
}


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a clock by which every attempt takes seconds decide how long to go on."""
    clock = SimpleNamespace(monotonic=count(step=limits.RETRY_SECONDS_QUIET + 1).__next__)
    monkeypatch.setattr(attempts, "time", clock)
    monkeypatch.setattr(attempts, "_silent_until", 0.0)


@pytest.fixture
def words(hurried: None, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Give the log of a process that has said nothing yet."""
    del hurried
    caplog.set_level(logging.WARNING, logger=attempts.__name__)
    return caplog


def _saver(address: str, **options: Any) -> DynamoDBSaver:
    return DynamoDBSaver("the-table", **{"endpoint_url": address, "region_name": "us-east-1"} | options)


def _read(side: Side, saver: DynamoDBSaver) -> None:
    with saver:
        assert ask(side, saver, "get_tuple", thread_config()) is None


# What is sent again


@both_sides
@pytest.mark.parametrize("failure", TRANSIENT)
def test_what_fails_for_the_moment_is_sent_again(endpoint: Scripted, failure: str, side: Side) -> None:
    endpoint.script = [TRANSIENT[failure]] * 3
    _read(side, _saver(endpoint.address))
    # What a thread that has nothing makes the saver ask besides came after it.
    assert endpoint.script == []
    assert len(endpoint.requests) >= 4


def test_async_requests_in_threads_are_sent_again(
    endpoint: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiobotocore", None)
    endpoint.script = list(TRANSIENT.values())
    _read("async", _saver(endpoint.address))
    assert endpoint.script == []


@pytest.mark.usefixtures("hurried")
@both_sides
@pytest.mark.parametrize("failure", TRANSIENT)
def test_what_goes_on_failing_is_told_with_the_remedy_the_attempts_and_the_time(
    endpoint: Scripted, failure: str, side: Side
) -> None:
    endpoint.always = TRANSIENT[failure]
    with pytest.raises(
        CheckpointerUnavailableError, match=r"for table the-table|throttles table the-table"
    ) as raised:
        _read(side, _saver(endpoint.address))
    assert isinstance(raised.value.__cause__, (ClientError, HTTPClientError))
    attempts_made = len(endpoint.requests)
    assert attempts_made >= 2
    assert re.search(rf"\. Gave up after {attempts_made} attempts in \d+\.\d s$", str(raised.value))
    # botocore was told not to retry, which is nobody's concern.
    assert "max retries" not in str(raised.value)
    error, (_, code) = raised.value, TRANSIENT[failure]
    assert (error.code, error.attempts) == (code or None, attempts_made)
    assert error.request_id == (REQUEST_ID if code else None)


@both_sides
def test_an_error_of_the_set_up_has_the_code_and_the_request(endpoint: Scripted, side: Side) -> None:
    endpoint.always = (400, "AccessDeniedException")
    with pytest.raises(CheckpointerConfigurationError) as raised:
        _read(side, _saver(endpoint.address))
    assert (raised.value.code, raised.value.request_id) == ("AccessDeniedException", REQUEST_ID)
    assert CheckpointerConfigurationError("another").code is None


def test_attempts_go_on_for_all_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = 0.0, list[float]()
    monkeypatch.setattr(limits, "BACKOFF_SECONDS_MAX", 5.0)
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: now))
    each = Attempts(5.0, lambda _: True, str)
    while (wait := each.seconds_to_next(ValueError())) is not None:
        waits.append(wait)
        now += wait
    assert now == pytest.approx(5.0)
    assert each.spent == f"{len(waits) + 1} attempts in 5.0 s"
    # A server that asks for more time than there is left is not asked again.
    assert Attempts(5.0, lambda _: True, str).seconds_to_next(ValueError(), 6.0) is None


def test_a_request_may_be_sent_once(endpoint: Scripted) -> None:
    endpoint.always = TRANSIENT["throttled"]
    call = Call("delete_item", {"TableName": "the-table", "Key": {}}, is_sent_once=True)
    with _saver(endpoint.address) as saver:
        with pytest.raises(CheckpointerUnavailableError, match=r"Gave up after 1 attempt in"):
            saver.transport.send(call)
        assert endpoint.requests == ["DeleteItem"]
        with pytest.raises(CheckpointerUnavailableError, match=r"Gave up after 1 attempt in"):
            asyncio.run(saver.transport.asend(call))
    assert endpoint.requests == ["DeleteItem"] * 2


@both_sides
@pytest.mark.parametrize(("retry_seconds", "is_sent_again"), [(0, False), (1, True)])
def test_for_how_long_is_an_option(
    endpoint: Scripted, side: Side, retry_seconds: float, *, is_sent_again: bool
) -> None:
    with _saver(endpoint.address, retry_seconds=retry_seconds) as saver:
        # Making a client takes time too.
        assert ask(side, saver, "get_tuple", thread_config()) is None
        endpoint.always = TRANSIENT["throttled"]
        endpoint.requests.clear()
        began = time.monotonic()
        with pytest.raises(CheckpointerUnavailableError):
            ask(side, saver, "get_tuple", thread_config())
        assert time.monotonic() - began < limits.RETRY_SECONDS / 2
    assert (len(endpoint.requests) > 1) == is_sent_again


@both_sides
@pytest.mark.parametrize("failure", TRANSIENT)
def test_a_configuration_or_a_client_that_was_given_may_retry_within_each_attempt(
    endpoint: Scripted, failure: str, side: Side
) -> None:
    endpoint.always = TRANSIENT[failure]
    twice = Config(retries={"mode": "standard", "total_max_attempts": 2})
    client = boto3.client("dynamodb", endpoint_url=endpoint.address, region_name="us-east-1", config=twice)
    with contextlib.closing(client):
        for saver in (
            _saver(endpoint.address, client_config=twice, retry_seconds=0),
            DynamoDBSaver("the-table", client=client, retry_seconds=0),
        ):
            with pytest.raises(CheckpointerUnavailableError, match="Gave up after 1 attempt in"):
                _read(side, saver)
    assert endpoint.requests == ["Query"] * 4


# An endpoint that is down, or was mistyped


@both_sides
def test_where_nothing_answers_the_log_says_so_with_what_to_do_before_it_is_raised(
    endpoint: Scripted, words: pytest.LogCaptureFixture, side: Side
) -> None:
    endpoint.always = DROPPED
    with pytest.raises(CheckpointerUnavailableError, match=endpoint.address):
        _read(side, _saver(endpoint.address))
    message, *again = [each.getMessage() for each in words.records]
    # By its clock, and not once for each attempt.
    assert len(again) <= limits.RETRY_SECONDS / limits.RETRY_WORDS_SECONDS
    assert message.startswith("no answer from DynamoDB for table the-table")
    assert endpoint.address in message
    assert "check endpoint_url, region_name" in message


@both_sides
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_of_this_machine_where_nothing_listens_is_told_at_once(
    words: pytest.LogCaptureFixture, host: str, side: Side
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://{host}:{unused.getsockname()[1]}"
        said = f"^nothing listens at {address}/? for table the-table in us-east-1; start .*endpoint_url"
        with pytest.raises(CheckpointerConfigurationError, match=said):
            _read(side, _saver(address))
    # Without an async client, another logger says so.
    assert [each for each in words.records if each.name == attempts.__name__] == []


@pytest.mark.parametrize(
    ("address", "number", "is_transient_"),
    [
        ("http://localhost:8000", errno.ECONNREFUSED, False),
        ("http://[::1]:8000", errno.ECONNREFUSED, False),
        ("http://127.0.0.1:8000", errno.EADDRNOTAVAIL, True),
        ("http://10.0.0.1:8000", errno.ECONNREFUSED, True),
        ("https://dynamodb.eu-west-1.amazonaws.com", errno.ECONNREFUSED, True),
    ],
)
def test_only_a_refusal_by_this_machine_is_final(address: str, number: int, *, is_transient_: bool) -> None:
    cause = OSError(number, "no")
    assert is_transient(EndpointConnectionError(endpoint_url=address, error=cause)) is is_transient_


EXCEEDED, THROTTLED = "ProvisionedThroughputExceededException", "ThrottlingException"
# The exception, one of the reasons that it has, and what mends it.
CAUSES = [
    (EXCEEDED, "TableWriteKeyRangeThroughputExceeded", "one partition key"),
    (THROTTLED, "TableReadMaxOnDemandThroughputExceeded", "MaxReadRequestUnits"),
    (EXCEEDED, "IndexWriteProvisionedThroughputExceeded", "provisioned"),
    ("RequestLimitExceeded", "TableReadAccountLimitExceeded", "quota"),
    (THROTTLED, "TableWriteSomethingNewExceeded", "maximum"),
]


@both_sides
@pytest.mark.parametrize(("code", "reason", "remedy"), CAUSES)
def test_throttling_is_said_with_the_cause_that_dynamodb_gives_and_what_mends_that(
    endpoint: Scripted, words: pytest.LogCaptureFixture, code: str, reason: str, remedy: str, side: Side
) -> None:
    endpoint.script = [(400, code)]
    # The model of one exception has another name for them.
    field = "throttlingReasons" if code == THROTTLED else "ThrottlingReasons"
    table = "arn:aws:dynamodb:us-east-1:123456789012:table/the-table"
    endpoint.details = {"message": "slow down", field: [{"reason": reason, "resource": table}]}
    _read(side, _saver(endpoint.address))
    # The first async call of a process without a native client says so, too.
    (message,) = [each.getMessage() for each in words.records if each.name.endswith(".attempts")]
    assert message.startswith(f"DynamoDB throttles table the-table in us-east-1: {reason} of {table} (")
    assert remedy in message
    assert "`langgraph-dynamodb docs runbook`" in message


def test_reasons_that_are_none_are_left_out(endpoint: Scripted, words: pytest.LogCaptureFixture) -> None:
    endpoint.script = [(400, "ThrottlingException")]
    endpoint.details = {"message": "slow down", "throttlingReasons": [{}]}
    _read("sync", _saver(endpoint.address))
    (message,) = [each.getMessage() for each in words.records]
    assert message.startswith("DynamoDB throttles table the-table in us-east-1 (")


def test_what_soon_passes_is_not_spoken_of(endpoint: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    endpoint.script = [TRANSIENT["dropped"]]
    _read("sync", _saver(endpoint.address))
    assert caplog.records == []


def test_the_first_word_comes_within_fifteen_seconds_also_from_an_endpoint_that_never_answers() -> None:
    config = default_config()
    assert config.retries["total_max_attempts"] == 1
    longest_attempt = max(config.connect_timeout, config.read_timeout)
    assert limits.RETRY_SECONDS_QUIET < longest_attempt < 15
    assert limits.RETRY_SECONDS_QUIET + limits.BACKOFF_SECONDS_MAX < 15


# What no repetition mends

TABLE = "table the-table in us-east-1"
KEY_AWAY = rf"the KMS key of {TABLE} cannot be used .*enable the key.*`langgraph-dynamodb docs runbook`"
NO_KEY = (
    "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: The ciphertext refers to a"
    " customer master key that does not exist, or you are not allowed to access."
)
KEY_GOES = "KMS validation error: com.amazonaws.services.kms.model.KMSInvalidStateException: ... is pending deletion."
# The exception, its message if that decides, and the remedy.
REMEDIES = [
    ("AccessDeniedException", "no", rf"access to {TABLE} was denied for dynamodb:Query .*AgentPolicyArn"),
    ("ExpiredTokenException", "no", rf"credentials for {TABLE} have expired .*aws sso login.*session="),
    ("UnrecognizedClientException", "no", rf"know the credentials for {TABLE} .*access key.*region_name"),
    ("InvalidSignatureException", "no", rf"refused the signature of a request to {TABLE} .*clock"),
    # No policy of the table is to blame.
    ("AccessDeniedException", NO_KEY, rf"(?s)^(?!.*AgentPolicyArn){KEY_AWAY}"),
    ("ValidationException", KEY_GOES, KEY_AWAY),
]


@both_sides
@pytest.mark.parametrize(("code", "message", "remedy"), REMEDIES)
def test_what_is_wrong_with_the_account_is_said_at_once_with_what_mends_it(
    endpoint: Scripted, code: str, message: str, remedy: str, side: Side
) -> None:
    endpoint.always, endpoint.details = (400, code), {"message": message}
    with pytest.raises(CheckpointerConfigurationError, match=remedy) as raised:
        _read(side, _saver(endpoint.address))
    assert isinstance(raised.value.__cause__, ClientError)
    assert len(endpoint.requests) == 1


@both_sides
@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        ({}, {"AWS_PROFILE": "nobody's"}, r"no such AWS profile .*nobody's.*AWS_PROFILE"),
        (
            {"region_name": None},
            {"AWS_DEFAULT_REGION": None},
            "no AWS region for table the-table; pass region_name",
        ),
        ({}, {"AWS_ACCESS_KEY_ID": None}, r"no usable AWS credentials for table the-table .*aws configure"),
    ],
)
def test_what_the_configuration_of_aws_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch,
    side: Side,
    options: dict[str, Any],
    environment: dict[str, str | None],
    said: str,
) -> None:
    for name, value in environment.items():
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(CheckpointerConfigurationError, match=said):
        _read(side, _saver("http://127.0.0.1:9", **options))
