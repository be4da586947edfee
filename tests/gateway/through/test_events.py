"""The events of a client of the gateway: those of a saver on the table, with the units that its service tells."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.authentication import BearerTokens
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import MakeSaver
from tests.support.checkpoints import store, thread_config
from tests.support.gateway_service import gateway_service
from tests.support.observed import Collected
from tests.support.operations import OPERATIONS, Side, ask_all, both_sides

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

DELETIONS = ["prune", "delete_for_runs", "delete_thread"]


@both_sides
def test_client_and_service_tell_the_same_calls_tenants_and_units(make_saver: MakeSaver, side: Side) -> None:
    service, client = Collected(), Collected()
    with (
        gateway_service(make_saver(on_event=service)) as url,
        HttpCheckpointSaver(url, on_event=client, thread_prefix="acme/") as remote,
    ):
        ask_all(side, remote, "1")
    for each in (service, client):
        ended = {event.operation: event for event in each.events if event.outcome == "ok"}
        assert {*ended} == {*OPERATIONS}
        assert [event.operation for event in each.events if event.outcome == "began"] == DELETIONS
        assert {event.tenant for event in each.events} <= {"acme", None}
        assert ended["put"].tenant == "acme"
        assert ended["put"].write_units
        assert (ended["put_writes"].read_units, ended["list"].write_units) == (None, None)
    for name in ("read_units", "write_units"):
        consumed, told = (
            sum(getattr(event, name) or 0 for event in each.events) for each in (service, client)
        )
        assert consumed == told > 0
    assert [event.operation for event in client.events if event.outcome == "ok"] == [*OPERATIONS]
    put = client.last("put")
    assert put.bytes_written > 0
    assert put.bytes_read > 0


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
