"""What an agent behind the gateway makes of bytes that others stored: harmless types, and those that were allowed."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import create_checkpointer
from tests.conftest import MakeSaver
from tests.gateway.through.conftest import MakeRemote, Serve
from tests.support.objects import ALLOWED, FIELDS, PERSON, PLACE, Place, fill, read
from tests.support.operations import Side, both_sides

# An engine knows nothing of types.
pytestmark = pytest.mark.engines("dynamodb-local")


@both_sides
def test_by_default_no_type_is_made_that_was_not_allowed(
    make_saver: MakeSaver, make_remote: MakeRemote, side: Side
) -> None:
    fill(make_saver())
    remote = make_remote()
    assert read(side, remote) == [FIELDS] * 14
    generous = remote.with_allowlist(ALLOWED)
    assert read(side, generous) == [[PLACE, FIELDS[1]]] * 14
    # Neither has changed the other.
    assert read(side, remote) == [FIELDS] * 14


@pytest.mark.parametrize(
    ("serde", "expected"),
    [
        ({}, FIELDS),
        ({"serde": {}}, FIELDS),
        ({"serde": {"allowed_msgpack_modules": [f"{Place.__module__}:Place"]}}, [PLACE, FIELDS[1]]),
        ({"serde": f"{__name__}:permissive"}, [PLACE, PERSON]),
    ],
)
def test_a_configured_client_is_as_strict(
    make_saver: MakeSaver, serve: Serve, serde: dict[str, Any], expected: list[Any]
) -> None:
    fill(make_saver())
    with create_checkpointer({"type": "http", "config": {"url": serve(), **serde}}) as remote:
        assert remote is not None
        assert read("sync", remote) == [expected] * 14


def permissive() -> JsonPlusSerializer:
    """Make a serializer that makes every type."""
    return JsonPlusSerializer(allowed_msgpack_modules=True)
