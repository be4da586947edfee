"""The endpoints: that each is served and described, what is said of what there is not, and readiness."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.wire import WIRE_VERSION
from langgraph.checkpoint.dynamodb.gateway import (
    Limits,
    Principal,
    anybody_on_this_machine,
    app,
    create_gateway,
)
from langgraph.checkpoint.dynamodb.gateway.app import ENDPOINTS, Readiness
from langgraph.checkpoint.dynamodb.gateway.call import Endpoint
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.serving import Reach
from tests.conftest import MakeSaver
from tests.gateway.conftest import MakeClient, always, client_of
from tests.gateway.requests import ODD, example, places_of_values, replaced
from tests.support.change import change_storage
from tools import page_tables


@pytest.mark.parametrize(
    ("principal", "owner"), [(Principal("one"), None), (Principal("one", "acme", owner="ada"), "acme/ada")]
)
async def test_about_tells_the_version_the_limits_and_the_owner_that_credentials_are_bound_to(
    principal: Principal, owner: str | None, make_client: MakeClient
) -> None:
    limits = Limits(request_seconds_max=25)
    about = (await make_client(limits=limits, principal=principal).get("/about")).json()
    assert about == {"wire_version": WIRE_VERSION, "limits": limits.model_dump(), "owner": owner}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/checkpoints/put", 405),
        ("GET", "/", 404),
        ("POST", "/checkpoints/drop", 404),
        ("POST", "/checkpoints/get-tuple/", 404),
        ("GET", "/health/", 404),
    ],
)
async def test_what_is_not_there_is_a_problem(
    method: str, path: str, status: int, make_client: MakeClient
) -> None:
    answer = await make_client().request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert "see /openapi.json" in answer.json()["detail"]
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


def test_a_client_ignores_what_responses_of_a_later_release_have_more() -> None:
    definitions = [each.response.json_schema() for each in ENDPOINTS]
    schemas = [each for schema in definitions for each in (schema, *schema.get("$defs", {}).values())]
    # Where a list stopped, its next request says.
    closed = {each["title"] for each in schemas if each.get("additionalProperties") is False}
    assert closed == {"Place", "CopiedTo", "MemoryKey"}


def test_the_page_of_the_wire_and_the_description_that_is_kept_have_every_endpoint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert page_tables.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", ["/about", "/health", "/metrics", "/ready"])
async def test_what_the_service_tells_of_itself_is_as_described(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def check(_readiness: Readiness) -> None:
        """Find the table there."""

    monkeypatch.setattr(Readiness, "check", check)
    client = make_client()
    described = (await client.get("/openapi.json")).json()
    content = described["paths"][path]["get"]["responses"]["200"]["content"]
    answer = await client.get(path)
    assert [*content] == [answer.headers["content-type"]]
    [said] = content.values()
    told = answer.text if path == "/metrics" else answer.json()
    Draft202012Validator({**said["schema"], "components": described["components"]}).validate(told)


def _numbers(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict) and schema.get("type") in ("integer", "number"):
        yield schema
    elif isinstance(schema, (dict, list)):
        for each in schema.values() if isinstance(schema, dict) else schema:
            yield from _numbers(each)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_every_number_of_a_request_has_bounds(endpoint: Endpoint[Any]) -> None:
    # What the service counts by is not to be larger than what a machine counts by.
    for number in _numbers(endpoint.arguments.model_json_schema()):
        assert number.keys() & {"minimum", "exclusiveMinimum"}, json.dumps(number)
        assert number.keys() & {"maximum", "exclusiveMaximum"}, json.dumps(number)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_a_request_that_the_description_allows_is_understood(endpoint: Endpoint[Any]) -> None:
    described = Draft202012Validator(endpoint.arguments.model_json_schema())
    good = example(endpoint)
    requests = [replaced(good, place, odd) for place in places_of_values(good) for odd in [*ODD, 2**70]]
    allowed = [each for each in (good, *requests) if described.is_valid(each)]
    assert len(allowed) > 1
    for each in allowed:
        endpoint.decoded(json.dumps(each).encode(), Reach(Principal("all")))


@pytest.mark.engines("dynamodb-local")
async def test_it_is_ready_while_the_table_answers(
    make_saver: MakeSaver, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await client_of(create_gateway(make_saver(), authenticate=always(None))).get("/ready")
    assert answer.json() == {"status": "ready"}
    none = make_saver()
    change_storage(none, table=replace(none.storage.table, name="no-such-table"))
    answer = await client_of(create_gateway(none, authenticate=anybody_on_this_machine)).get("/ready")
    assert answer.status_code == 503
    # Clients that come at once do not come again at once.
    assert answer.headers["retry-after"] in ("1", "2", "3")
    assert "no-such-table" not in answer.text
    assert "no-such-table" in caplog.text


async def test_many_who_ask_within_a_second_are_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked, answers = 0.0, list[str](), asyncio.Event()

    async def aget_tuple(config: Any) -> None:
        asked.append(config["configurable"]["thread_id"])
        await answers.wait()

    table: Any = SimpleNamespace(aget_tuple=aget_tuple)
    ready = Readiness(table, lambda: now)
    answers.set()
    await asyncio.gather(*(ready.check() for _ in range(10)))
    assert len(asked) == 1
    assert asked[0].startswith("gateway-ready-")
    now += 1
    monkeypatch.setattr(app, "_RESPONSE_SECONDS", 0.01)
    answers.clear()
    results = await asyncio.gather(*(ready.check() for _ in range(10)), return_exceptions=True)
    assert {type(each) for each in results} == {ProblemError}
    assert len(asked) == 2
    now += 1
    answers.set()
    await ready.check()


async def test_the_saver_is_closed_with_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    async def aclose(_saver: DynamoDBSaver) -> None:
        closed.append(True)

    monkeypatch.setattr(DynamoDBSaver, "aclose", aclose)
    gateway = create_gateway(DynamoDBSaver("threads"), authenticate=anybody_on_this_machine)
    async with gateway.router.lifespan_context(gateway):
        assert closed == []
    assert closed == [True]
