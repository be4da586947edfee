"""The events of a client of the gateway: those of a saver on the table, without units, which its service counts."""

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import MakeSaver
from tests.support.gateway_service import gateway_service
from tests.support.observed import Collected
from tests.support.operations import OPERATIONS, Side, ask_all, both_sides

# What is asked for is the same on every engine.
pytestmark = pytest.mark.engines("dynamodb-local")

DELETIONS = ["prune", "delete_for_runs", "delete_thread"]


@both_sides
def test_client_and_service_tell_the_same_calls_and_tenants(make_saver: MakeSaver, side: Side) -> None:
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
    assert service.last("put").write_units
    assert {(event.read_units, event.write_units) for event in client.events} == {(None, None)}
    assert [event.operation for event in client.events if event.outcome == "ok"] == [*OPERATIONS]
    put = client.last("put")
    assert put.bytes_written > 0
    assert put.bytes_read > 0
