"""Readiness: the table answers, on an engine; it is asked once a second; and the saver is closed with the service."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import anybody_on_this_machine, app, create_gateway
from langgraph.checkpoint.dynamodb.gateway.app import Readiness
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from tests.conftest import MakeSaver
from tests.gateway.conftest import always, client_of
from tests.support.change import change_storage


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
