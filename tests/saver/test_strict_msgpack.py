"""Strict msgpack: a type that was not allowed is never made from stored data, whichever way the data is read.

What is in the way of an object instead is its serialized fields. The serializer that decides is the saver's at the time
of the call, also within `EncryptedSerializer`, whose inner one the saver uses by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.objects import ALLOWED, FIELDS, PLACE, fill, read
from tests.support.operations import Side, both_sides
from tools.engine import Engine

# An engine knows nothing of types.
pytestmark = pytest.mark.engines("dynamodb-local")

MakeSaver = Callable[..., DynamoDBSaver]
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


PROGRAM = """
import sys
from dataclasses import dataclass
from typing import Any, TypedDict
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import StateGraph
from langgraph.checkpoint.dynamodb import DynamoDBSaver

@dataclass
class Place:
    name: str

@dataclass
class Person:
    name: str

class State(TypedDict):
    place: Place
    anything: Any

serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
saver = DynamoDBSaver(sys.argv[1], endpoint_url=sys.argv[2], serde=serde)
builder = StateGraph(State).add_node("node", lambda state: {"anything": Person("ann")})
graph = builder.set_entry_point("node").compile(checkpointer=saver)
config = {"configurable": {"thread_id": "t"}}
graph.invoke({"place": Place("here")}, config)
print(graph.get_state(config).values)
"""


@pytest.mark.search
def test_a_graph_in_strict_mode_revives_its_schema_s_types_only(engine: Engine, table_name: str) -> None:
    """LangGraph derives the list from the state's schema, and gives it to the graph's saver."""
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "AWS_DEFAULT_REGION": engine.region_name}
    done = subprocess.run(  # noqa: S603 - the test's own program.
        [sys.executable, "-c", PROGRAM, table_name, str(engine.endpoint_url)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "{'place': Place(name='here'), 'anything': {'name': 'ann'}}\n", done.stderr
