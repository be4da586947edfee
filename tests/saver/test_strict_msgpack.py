"""Strict msgpack: a type that was not allowed is never made from stored data, whichever way the data is read.

What is in the way of an object instead is its serialized fields. The serializer that decides is the saver's at the time
of the call, also within `EncryptedSerializer`, whose inner one the saver uses by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.operations import Side, ask, both_sides
from tools.engine import Engine

# An engine knows nothing of types.
pytestmark = pytest.mark.engines("dynamodb-local")

MakeSaver = Callable[..., DynamoDBSaver]
KEY = b"0123456789abcdef"


@dataclass
class Place:
    """A type that a test allows."""

    name: str


@dataclass
class Person:
    """A type that no test allows."""

    name: str


ALLOWED = [(Place.__module__, Place.__name__)]
PLACE, PERSON = Place("here"), Person("ann")
FIELDS = [{"name": "here"}, {"name": "ann"}]


def _strict() -> SerializerProtocol:
    return JsonPlusSerializer(allowed_msgpack_modules=None)


def _strict_and_encrypted() -> SerializerProtocol:
    return EncryptedSerializer.from_pycryptodome_aes(serde=_strict(), key=KEY)


both_serializers = pytest.mark.parametrize("serde", [_strict, _strict_and_encrypted])


def _fill(saver: DynamoDBSaver) -> None:
    """Store the two objects as a value, a pending write, metadata, a delta channel's stored value and its writes."""
    objects = [PLACE, PERSON]
    metadata = cast("CheckpointMetadata", {**METADATA, "note": objects})
    config = thread_config()
    for checkpoint_id, log in (("1", _DeltaSnapshot(objects)), ("2", None)):
        checkpoint = checkpoint_of(checkpoint_id, {"value": objects, **({"log": log} if log else {})})
        config = saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
        saver.put_writes(config, [("log", objects)], "task")


def _read(side: Side, saver: DynamoDBSaver) -> list[Any]:
    """What became of the objects, in every place that they were stored in."""
    newest = ask(side, saver, "get_tuple", thread_config())
    named = ask(side, saver, "get_tuple", thread_config(checkpoint_id="2"))
    listed = ask(side, saver, "list", thread_config())
    child = thread_config(checkpoint_id="2")
    history = ask(side, saver, "get_delta_channel_history", config=child, channels=["log"])["log"]
    tuples = [newest, named, *listed]
    return [
        *(each.checkpoint["channel_values"]["value"] for each in tuples),
        *(each.metadata["note"] for each in tuples),
        *(write[2] for each in tuples for write in each.pending_writes),
        history["seed"].value,
        *(write[2] for write in history["writes"]),
    ]


@both_sides
@both_serializers
def test_only_types_that_were_allowed_are_made(
    make_saver: MakeSaver, side: Side, serde: Callable[[], SerializerProtocol]
) -> None:
    strict = make_saver(serde=serde())
    _fill(strict)
    assert _read(side, strict) == [FIELDS] * 14
    generous = strict.with_allowlist(ALLOWED)
    assert isinstance(generous, DynamoDBSaver)
    assert _read(side, generous) == [[PLACE, FIELDS[1]]] * 14
    # Neither has changed the other.
    assert _read(side, strict) == [FIELDS] * 14


@both_serializers
def test_a_put_makes_no_type_of_what_it_inherits(
    make_saver: MakeSaver, serde: Callable[[], SerializerProtocol]
) -> None:
    """A channel that a step leaves alone is carried on as it was stored, by a saver that may not read it either."""
    strict = make_saver(serde=serde())
    _fill(strict)
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
