"""Strict msgpack: a type that was not allowed is never made from stored data, whichever way the data is read.

What is in the way of an object instead is its serialized fields. The serializer that decides is the saver's at the time
of the call, also within `EncryptedSerializer`, whose inner one the saver uses by itself.
"""

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph
from typing_extensions import TypedDict

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import MakeSaver
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.objects import ALLOWED, FIELDS, PERSON, PLACE, Place, fill, read
from tests.support.operations import Side, both_sides

# An engine knows nothing of types.
pytestmark = pytest.mark.engines("dynamodb-local")

KEY = b"0123456789abcdef"


def _strict() -> SerializerProtocol:
    return JsonPlusSerializer(allowed_msgpack_modules=None)


def _strict_and_encrypted() -> SerializerProtocol:
    return EncryptedSerializer.from_pycryptodome_aes(serde=_strict(), key=KEY)


both_serializers = pytest.mark.parametrize("serde", [_strict, _strict_and_encrypted])


@both_sides
@both_serializers
def test_only_types_that_were_allowed_are_made(
    make_saver: MakeSaver, side: Side, serde: Callable[[], SerializerProtocol]
) -> None:
    strict = make_saver(serde=serde())
    fill(strict)
    assert read(side, strict) == [FIELDS] * 14
    generous = strict.with_allowlist(ALLOWED)
    assert isinstance(generous, DynamoDBSaver)
    assert read(side, generous) == [[PLACE, FIELDS[1]]] * 14
    # Neither has changed the other.
    assert read(side, strict) == [FIELDS] * 14


@both_serializers
def test_a_put_makes_no_type_of_what_it_inherits(
    make_saver: MakeSaver, serde: Callable[[], SerializerProtocol]
) -> None:
    """A channel that a step leaves alone is carried on as it was stored, by a saver that may not read it either."""
    strict = make_saver(serde=serde())
    fill(strict)
    checkpoint = checkpoint_of("3", {"value": FIELDS})
    make_saver(serde=serde()).put(thread_config(checkpoint_id="2"), checkpoint, METADATA, {})
    found = make_saver(serde=serde()).with_allowlist(ALLOWED).get_tuple(thread_config())
    assert found is not None
    assert found.checkpoint["channel_values"]["value"] == [PLACE, FIELDS[1]]


class State(TypedDict):
    """A schema with one of the types."""

    place: Place
    anything: Any


def test_a_graph_in_strict_mode_revives_its_schemas_types_only(
    make_saver: MakeSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph derives the list from the state's schema, and gives it to the graph's saver."""
    monkeypatch.setattr("langgraph._internal._serde.STRICT_MSGPACK_ENABLED", True)
    builder = StateGraph(State).add_node("node", lambda _: {"anything": PERSON})
    graph = builder.set_entry_point("node").compile(checkpointer=make_saver(serde=_strict_and_encrypted()))
    graph.invoke({"place": PLACE, "anything": None}, thread_config())
    assert graph.get_state(thread_config()).values == {"place": PLACE, "anything": FIELDS[1]}
