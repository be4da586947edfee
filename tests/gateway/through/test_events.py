"""The events of a client of the gateway: those of a saver on the table, with the units that its service tells."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.authentication import BearerTokens
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import store, thread_config
from tests.support.gateway_service import gateway_service
from tests.support.observed import Collected
from tests.support.operations import OPERATIONS, Side, ask_all, both_sides

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

DELETIONS = ["prune", "delete_for_runs", "delete_thread"]
MakeSaver = Callable[..., DynamoDBSaver]


@pytest.fixture
def collected() -> Collected:
    """Give a place for events."""
    return Collected()


@pytest.fixture
async def make_remote(make_saver: MakeSaver) -> AsyncIterator[Callable[..., HttpCheckpointSaver]]:
    """Give a factory of savers through a gateway on the table."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(gateway_service(make_saver()))

        def make(**options: Any) -> HttpCheckpointSaver:
            return stack.enter_context(HttpCheckpointSaver(url, **options))

        yield make


@both_sides
def test_through_a_gateway_they_have_the_same_names(
    make_remote: Callable[..., HttpCheckpointSaver], collected: Collected, side: Side
) -> None:
    saver = make_remote(on_event=collected, thread_prefix="acme/")
    ask_all(side, saver, "1")
    assert [each.operation for each in collected.events if each.outcome == "ok"] == [*OPERATIONS]
    assert [each.operation for each in collected.events if each.outcome == "began"] == DELETIONS
    assert {each.tenant for each in collected.events} <= {"acme", None}
    put = collected.last("put")
    assert put.tenant == "acme"
    assert put.bytes_written > 0
    assert put.bytes_read > 0


@both_sides
def test_units_are_those_that_the_service_consumes(make_saver: MakeSaver, side: Side) -> None:
    consumed, told = Collected(), Collected()
    with (
        gateway_service(make_saver(on_event=consumed)) as url,
        HttpCheckpointSaver(url, on_event=told) as client,
    ):
        ask_all(side, client, "1")
    for name in ("read_units", "write_units"):
        service, seen = (sum(getattr(each, name) or 0 for each in ones.events) for ones in (consumed, told))
        assert service == seen > 0
    ended = {each.operation: each for each in told.events if each.outcome == "ok"}
    assert (ended["put_writes"].read_units, ended["list"].write_units) == (None, None)
    assert ended["put"].write_units
    assert ended["list"].read_units is not None


def test_nothing_is_measured_for_a_client_that_does_not_ask(
    make_saver: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = make_saver()
    asked = []
    make = saver.transport.asend_once

    async def asend_once(call: Call) -> Any:
        asked.append("ReturnConsumedCapacity" in call.params)
        return await make(call)

    monkeypatch.setattr(saver.transport, "asend_once", asend_once)
    with gateway_service(saver) as url:
        for on_event in (None, Collected()):
            with HttpCheckpointSaver(url, on_event=on_event) as client:
                client.get_tuple(thread_config("1"))
            assert asked
            assert set(asked) == {on_event is not None}
            asked.clear()


def test_a_tenant_is_not_told_what_others_have(make_saver: MakeSaver) -> None:
    """An index reads what belongs to others; a principal with an owner may ask for threads of others."""
    tokens = {
        Principal("all", rights=RIGHTS): ["all"],
        Principal("acme", tenant="acme", rights=RIGHTS): ["acme"],
        Principal("ada", tenant="acme", rights=RIGHTS, owner="ada"): ["ada"],
    }
    hashes = {each: [sha256(token.encode()).hexdigest() for token in ones] for each, ones in tokens.items()}
    told: dict[str, dict[str, bool]] = {}
    with gateway_service(make_saver(owner_from="user_id"), authenticate=BearerTokens(hashes)) as url:
        for name in ("all", "acme", "ada"):
            collected = Collected()
            with HttpCheckpointSaver(
                url, auth=name, thread_prefix="acme/", on_event=collected, owner_from="user_id"
            ) as client:
                config = thread_config("1")
                config["configurable"]["user_id"] = "ada"
                store(client, config, "1", {"value": "x"})
                client.get_tuple(thread_config("1"))
                client.threads(owner="ada")
            told[name] = {
                each.operation: (each.read_units or each.write_units) is not None for each in collected.events
            }
    assert told == {
        "all": {"put": True, "get_tuple": True, "list_threads": True},
        "acme": {"put": True, "get_tuple": True, "list_threads": False},
        "ada": {"put": False, "get_tuple": False, "list_threads": False},
    }


def test_the_service_s_own_events_have_units_tenant_and_the_methods_names(
    make_saver: MakeSaver, collected: Collected
) -> None:
    saver = make_saver(on_event=collected)
    with gateway_service(saver) as url, HttpCheckpointSaver(url) as client:
        ask_all("sync", client, "acme/1")
    ended = [each for each in collected.events if each.outcome == "ok"]
    assert {each.operation for each in ended} == {*OPERATIONS}
    assert [each.operation for each in collected.events if each.outcome == "began"] == DELETIONS
    put = collected.last("put")
    assert put.tenant == "acme"
    assert put.write_units is not None
    assert put.write_units > 0
