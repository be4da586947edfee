"""The events of a client of the gateway: those of a saver on the table, without units."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import Conversation, noise
from tests.support.gateway_service import gateway_service
from tests.support.observed import Collected
from tests.support.operations import OPERATIONS, Side, ask_all, both_sides

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
def test_through_a_gateway_they_have_the_same_names_and_no_units(
    make_remote: Callable[..., HttpCheckpointSaver], collected: Collected, side: Side
) -> None:
    saver = make_remote(on_event=collected, thread_prefix="acme/")
    ask_all(side, saver, "1")
    assert [each.operation for each in collected.events if each.outcome == "ok"] == [*OPERATIONS]
    assert [each.operation for each in collected.events if each.outcome == "began"] == DELETIONS
    assert {each.tenant for each in collected.events} <= {"acme", None}
    put = collected.last("put")
    assert (put.tenant, put.read_units, put.write_units) == ("acme", None, None)
    assert put.bytes_written > 0
    assert put.bytes_read > 0


def test_segments_are_told_alike_through_a_gateway(
    make_remote: Callable[..., HttpCheckpointSaver], make_saver: MakeSaver
) -> None:
    told = []
    for make in (make_saver, make_remote):
        collected = Collected()
        thread = Conversation(make(on_event=collected), f"acme/{make.__name__}")
        thread.put(big=noise(100_000))
        thread.put(other="x")
        thread.saver.put_writes(thread.config, [("big", noise(100_000))], "task")
        told.append([(each.segments_written > 0, each.segments_reused > 0) for each in collected.events])
    assert told == [[(True, False), (False, True), (False, True)]] * 2


def test_the_service_s_own_events_have_units_tenant_and_the_methods_names(
    make_saver: MakeSaver, collected: Collected
) -> None:
    saver = make_saver(on_event=collected)
    with gateway_service(saver) as url, HttpCheckpointSaver(url) as client:
        ask_all("sync", client, "acme/1")
    ended = [each for each in collected.events if each.outcome == "ok"]
    # A put with writes is two requests, and the two of the service say that.
    assert {each.operation for each in ended} == {*OPERATIONS, "put_segments"} - {"put_with_writes"}
    assert [each.operation for each in collected.events if each.outcome == "began"] == DELETIONS
    put = collected.last("put")
    assert put.tenant == "acme"
    assert put.write_units is not None
    assert put.write_units > 0
