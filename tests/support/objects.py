"""Objects of the tests' own types in every place where a checkpoint can hold one, and what a reader gets of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import ormsgpack
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.operations import Side, ask


@dataclass
class Place:
    """A type that a test allows."""

    name: str


@dataclass
class Person:
    """A type that no test allows."""

    name: str


class PlantingSerializer(JsonPlusSerializer):
    """Stores, in the place of every value, what runs a command in a reader that creates whatever is named."""

    def __init__(self, creates: Path) -> None:
        """Let the command create a file, by which it is seen to have run."""
        super().__init__(allowed_msgpack_modules=None)
        call = ormsgpack.packb(("os", "system", f"touch {creates}"))
        self._payload = ormsgpack.packb({"said": ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, call)})

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Give the payload; a checkpoint without its values is left as it is."""
        is_value = not isinstance(obj, dict) or "channel_versions" not in obj
        return ("msgpack", self._payload) if is_value else super().dumps_typed(obj)


ALLOWED = [(Place.__module__, Place.__name__)]
PLACE, PERSON = Place("here"), Person("ann")
FIELDS = [{"name": "here"}, {"name": "ann"}]


def fill(saver: BaseCheckpointSaver[Any]) -> None:
    """Store the two objects as a value, a pending write, metadata, a delta channel's stored value and its writes."""
    objects = [PLACE, PERSON]
    metadata = cast("CheckpointMetadata", {**METADATA, "note": objects})
    config = thread_config()
    for checkpoint_id, log in (("1", _DeltaSnapshot(objects)), ("2", None)):
        checkpoint = checkpoint_of(checkpoint_id, {"value": objects, **({"log": log} if log else {})})
        config = saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
        saver.put_writes(config, [("log", objects)], "task")


def read(side: Side, saver: BaseCheckpointSaver[Any]) -> list[Any]:
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
