"""The journal and problems: ids of requests, what is counted and logged, and that no state is in any of it."""

import asyncio
import math
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from langgraph.checkpoint.dynamodb import errors
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._operations.thread_item import PinnedEpochError
from langgraph.checkpoint.dynamodb.errors import CheckpointerError
from langgraph.checkpoint.dynamodb.gateway import Limits, Principal, access_log
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError, problem_of
from langgraph.checkpoint.dynamodb.observe.cloudwatch import BoundedTenants
from tests.gateway.conftest import Lines, MakeClient, Script, found_bytes

STATE = "acme/what-nobody-may-see"
KINDS = [
    each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CheckpointerError)
]


def client_error(code: str) -> ClientError:
    """An error of DynamoDB, whose message quotes a state."""
    response: Any = {"Error": {"Code": code, "Message": STATE}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(response, "GetItem")


THROTTLED, REFUSED = client_error("ThrottlingException"), client_error("ValidationException")


async def ask(client: Any, **headers: str) -> Any:
    return await client.post("/checkpoints/get-tuple", json={"thread_id": STATE}, headers=headers)


# Problems


STATUSES = {
    errors.CheckpointerError: 503,
    errors.CheckpointerUnavailableError: 503,
    errors.CheckpointerConfigurationError: 500,
    errors.CheckpointerInputError: 400,
    errors.CheckpointSerializationError: 422,
    errors.SearchLimitError: 422,
    errors.CheckpointNotFoundError: 404,
    errors.CheckpointCorruptionError: 409,
    errors.CheckpointFormatError: 409,
    errors.ThreadBusyError: 409,
    errors.ThreadLockLostError: 409,
    errors.BrokenRuleError: 500,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
async def test_every_class_of_errors_keeps_its_name_and_its_message(
    kind: type[CheckpointerError], make_client: MakeClient, script: Script, lines: Lines
) -> None:
    script.error = kind("what is wrong, and its remedy")
    answer = await ask(make_client())
    problem = answer.json()
    assert problem["type"] == f"urn:langgraph-dynamodb:error:{kind.__name__}"
    assert problem["status"] == answer.status_code == STATUSES[kind]
    assert ("retry-after" in answer.headers) == (answer.status_code == 503)
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["title"]
    if kind in (errors.CheckpointerConfigurationError, errors.CheckpointerUnavailableError):
        # It names the roles of the account, or the table.
        assert "what is wrong" not in answer.text
        assert kind is errors.CheckpointerUnavailableError or (
            "its log says why" in problem["detail"]
            and any("what is wrong" in each.getMessage() for each in lines())
        )
    else:
        assert problem["detail"] == "what is wrong, and its remedy"


@pytest.mark.parametrize("seconds", [0, 0.1, 7.5])
def test_clients_that_were_refused_at_once_are_told_to_come_again_at_different_times(seconds: float) -> None:
    told = {ProblemError(503, "x", retry_seconds=seconds).headers["Retry-After"] for _ in range(100)}
    first = max(1, math.ceil(seconds))
    assert told == {str(first), str(first + 1), str(first + 2)}


def test_what_a_client_sent_may_be_no_text() -> None:
    said = problem_of(errors.CheckpointerInputError("\ud800")).document("1")["detail"]
    assert said == "?"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KeyError(STATE), 500),
        (REFUSED, 500),
        (ZeroDivisionError(), 500),
        (THROTTLED, 503),
        (EndpointConnectionError(endpoint_url=STATE), 503),
        (asyncio.TimeoutError(), 504),
    ],
)
async def test_what_nobody_has_foreseen_is_logged_without_its_message(
    error: Exception, status: int, make_client: MakeClient, script: Script, lines: Lines
) -> None:
    script.error = error
    answer = await ask(make_client(), **{"X-Request-Id": "mine"})
    assert (answer.status_code, "retry-after" in answer.headers) == (status, status == 503)
    assert STATE not in answer.text
    said = "\n".join(each.getMessage() for each in lines())
    assert STATE not in said
    assert "'request_id': 'mine'" in said
    if answer.status_code == 500:
        assert "detail" not in answer.json()
        assert f"request mine failed with {type(error).__name__}\n" in said
        assert "in run" in said


async def test_a_thread_that_is_deleted_at_every_attempt_is_busy(
    make_client: MakeClient, script: Script
) -> None:
    script.error = PinnedEpochError("deleted")
    answer = await ask(make_client())
    assert (answer.status_code, len(script.asked)) == (409, ATTEMPTS_MAX)


@pytest.mark.parametrize(("stall_seconds", "status"), [(20, 504), (0.0, 408)])
async def test_a_body_that_does_not_come_is_not_waited_for(
    stall_seconds: float, status: int, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.dynamodb.gateway.bodies._STALL_SECONDS", stall_seconds)

    async def pieces() -> Any:
        yield b"{"
        await asyncio.Event().wait()

    client = make_client(limits=Limits(request_seconds_max=0.05))
    answer = await client.post(
        "/checkpoints/get-tuple",
        content=pieces(),
        headers={"content-type": "application/json", "content-length": "9"},
    )
    assert answer.status_code == status
    # The connection of a sender that trickles on is closed.
    assert answer.headers.get("connection") == ("close" if status == 408 else None)


# Ids of requests


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [(each, True) for each in ("1", "a-b_c.D", "x" * 128)]
    + [(each, False) for each in ("", "x" * 129, "a b", 'a"b', "a\tb", "é", "a,b", "${jndi}")],
)
async def test_a_harmless_id_is_kept_and_any_other_is_replaced(
    given: str, is_kept: bool, make_client: MakeClient, lines: Lines
) -> None:
    headers = [(b"X-Request-Id", given.encode())]
    answer = await make_client().get("/health", headers=headers)
    answered = answer.headers["x-request-id"]
    assert answered == given if is_kept else re.fullmatch("[0-9a-f]{32}", answered)
    assert is_kept or not given or given not in str([each.getMessage() for each in lines()])


# What is counted, and logged


async def test_a_request_is_one_line_without_a_state(
    make_client: MakeClient, script: Script, lines: Lines
) -> None:
    script.answer = found_bytes(STATE.encode())
    answer = await ask(make_client(principal=Principal("agents", "acme")), **{"X-Request-Id": "mine"})
    (line,) = [each.msg for each in lines() if isinstance(each.msg, dict)]
    assert line.pop("seconds") >= 0
    assert line == {
        "request_id": "mine",
        "endpoint": "checkpoints/get-tuple",
        "status": 200,
        "error": None,
        "principal": "agents",
        "tenant": "acme",
        "received_bytes": len(answer.request.content),
        "sent_bytes": len(answer.content),
    }


async def test_paths_that_anybody_makes_up_are_in_no_line_and_no_metric(
    make_client: MakeClient, lines: Lines
) -> None:
    client = make_client()
    for method, path in (("GET", f"/{STATE}"), (STATE.upper(), "/health"), ("POST", "/checkpoints/put%20")):
        await client.request(method, path)
    counted = (await client.get("/metrics")).text
    assert STATE not in counted.lower()
    assert STATE not in str([each.msg for each in lines() if isinstance(each.msg, dict)]).lower()
    assert 'requests_total{endpoint="other",status="404"} 2' in counted


async def test_metrics_count_requests_errors_bytes_and_seconds(
    make_client: MakeClient, script: Script
) -> None:
    agents, operator = Principal("agents", "acme"), Principal("operator", rights=frozenset({"administer"}))
    principals = iter([agents, agents, operator])
    client = make_client(authenticate=lambda _: asyncio.sleep(0, next(principals)))
    await ask(client)
    script.error = errors.ThreadBusyError("busy")
    await ask(client)
    counted = (await client.get("/metrics")).text
    name, endpoint = "langgraph_dynamodb_gateway", 'endpoint="checkpoints/get-tuple"'
    for line in (
        f"# TYPE {name}_requests_total counter",
        f'{name}_requests_total{{{endpoint},status="200"}} 1.0',
        f'{name}_requests_total{{{endpoint},status="409"}} 1.0',
        f'{name}_errors_total{{{endpoint},error="ThreadBusyError"}} 1.0',
        f"{name}_in_flight{{{endpoint}}} 0.0",
        f'{name}_in_flight{{endpoint="metrics"}} 1.0',
        f"# TYPE {name}_request_seconds histogram",
        f'{name}_request_seconds_bucket{{{endpoint},le="+Inf"}} 2.0',
        f"{name}_request_seconds_count{{{endpoint}}} 2.0",
        f'{name}_tenant_requests_total{{status="409",tenant="acme"}} 1.0',
    ):
        assert f"{line}\n" in counted
    received: Any = re.search(rf"{name}_received_bytes_total{{{endpoint}}} (\d+)", counted)
    assert int(received[1]) == 2 * len(f'{{"thread_id":"{STATE}"}}')


async def test_requests_are_counted_by_tenant_and_those_of_many_under_one_name(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "BoundedTenants", lambda: BoundedTenants(1))
    counters = access_log.Metrics()
    for tenant in ("acme", "other", "third", None):
        counters.begin("e")
        counters.end(access_log.RequestRecord("1", "e", stored_bytes=7), 200, 0.25, tenant)
    text = counters.text({"acme": 2, "other": 1, "third": 3})
    for line in (
        'tenant_requests_total{status="200",tenant="acme"} 1.0',
        'tenant_requests_total{status="200",tenant="(other)"} 2.0',
        'tenant_requests_total{status="200",tenant="(none)"} 1.0',
        'tenant_seconds_total{tenant="(other)"} 0.5',
        'tenant_stored_bytes_total{tenant="(other)"} 14.0',
        'waiting{tenant="acme"} 2.0',
        'waiting{tenant="(other)"} 4.0',
    ):
        assert f"langgraph_dynamodb_gateway_{line}\n" in text
