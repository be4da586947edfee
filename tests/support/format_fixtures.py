"""Threads as this format version stores them, kept in `tests/fixtures/` so that later releases must read them.

    python -m tests.support.format_fixtures

stores each thread of `THREADS` on an engine of this machine and writes its items to
`tests/fixtures/format-<version>/<name>.json`. The files of a version are made once, by the release that
introduces it, and never again: a release that cannot read them breaks its users' tables.
"""

import base64
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import boto3
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._format.items import FORMAT_VERSION
from langgraph.checkpoint.dynamodb._format.schema import table_schema
from tests.support.checkpoints import all_items, thread_config
from tools.engine import find_best

FOLDER = Path(__file__).parent.parent / "fixtures"
KEY = b"0123456789abcdef"
# The table that the encrypted thread is for, whichever one it is stored in.
BOUND_TO = "fixtures"


def _put(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    step: int,
    values: dict[str, Any],
    **metadata: Any,
) -> RunnableConfig:
    """Store a checkpoint in which these channels are new, on top of the parent's others."""
    parent = saver.get_tuple(config) if "checkpoint_id" in config["configurable"] else None
    before = {} if parent is None else parent.checkpoint["channel_values"]
    versions = {} if parent is None else parent.checkpoint["channel_versions"]
    new_versions: ChannelVersions = dict.fromkeys(values, step)
    checkpoint: Checkpoint = {
        "v": 4,
        "id": f"1f0c0000-0000-6000-8000-{step:012}",
        "ts": f"2026-01-01T00:00:{step:02}+00:00",
        "channel_values": {name: value for name, value in {**before, **values}.items() if value is not None},
        "channel_versions": {**versions, **new_versions},
        "versions_seen": {"node": dict(versions)},
        "updated_channels": sorted(values),
    }
    complete = {"source": "loop", "step": step, "parents": {}, **metadata}
    return saver.put(config, checkpoint, cast("CheckpointMetadata", complete), new_versions)


def _conversation(saver: BaseCheckpointSaver[Any]) -> None:
    """Values and writes of many kinds, in two namespaces."""
    for namespace in ("", "sub|inner:#1"):
        config = _put(saver, thread_config("thread #1", namespace), 1, {"text": "é%#\x00", "count": 1})
        saver.put_writes(
            config, [("text", "next"), ("set", {1, 2}), ("__interrupt__", ["go on?"])], "task", "~a, 1"
        )
        saver.put_writes(config, [("__resume__", "yes")], "00000000-0000-0000-0000-000000000000")
        message = AIMessage("hello", id="1", tool_calls=[{"name": "t", "args": {"a": 1.5}, "id": "c"}])
        messages = [HumanMessage("hi", id="0"), message]
        config = _put(saver, config, 2, {"messages": messages, "raw": b"\x00\xff"}, run_id="run-1")
        _put(
            saver, config, 3, {"count": 2, "text": None}, who={"name": "ann", "tags": ["x", None]}, odd={1, 2}
        )


def _segmented(saver: BaseCheckpointSaver[Any]) -> None:
    """A growing list over several segments, ids in an index segment, metadata and writes over their items' size."""
    entries = [f"entry {number}: {number * number}" for number in range(4000)]
    config = _put(saver, thread_config("segmented"), 1, {"list": entries, "idle": "x" * 3000, "count": 0})
    config = _put(saver, config, 2, {"list": [*entries, "one more"]}, note=" ".join(entries[:3000]))
    config = _put(saver, config, 3, {"count": 1, "repeats": "y" * 1_200_000})
    saver.put_writes(config, [("list", [entry[::-1] for entry in entries * 8])], "task")


def _delta(saver: BaseCheckpointSaver[Any]) -> None:
    """A delta channel with a snapshot between its writes."""
    config = thread_config("delta")
    for step in range(1, 7):
        value = _DeltaSnapshot([f"until {step}"]) if step == 3 else None
        counters = {} if step == 3 else {"log": (step % 3, step % 3)}
        config = _put(saver, config, step, {"log": value}, counters_since_delta_snapshot=counters)
        saver.put_writes(config, [("log", [f"write {step}"])], f"task-{step}")


def encrypted_serde() -> EncryptedSerializer:
    """The serializer of the encrypted thread."""
    return EncryptedSerializer.from_pycryptodome_aes(key=KEY)


THREADS: dict[str, tuple[Callable[[BaseCheckpointSaver[Any]], None], Callable[[], dict[str, Any]]]] = {
    "plain": (_conversation, dict),
    "encrypted": (_conversation, lambda: {"serde": encrypted_serde(), "bound_to": BOUND_TO}),
    "segmented": (_segmented, dict),
    "delta": (_delta, dict),
}


def path_of(version: int, name: str) -> Path:
    """Where a thread's items are kept."""
    return FOLDER / f"format-{version}" / f"{name}.json"


def read_items(name: str, version: int = FORMAT_VERSION) -> list[dict[str, Any]]:
    """Read a thread's items, as the low-level client takes them."""

    def revive(attribute: dict[str, Any]) -> dict[str, Any]:
        return {"B": base64.b64decode(attribute["B"])} if "B" in attribute else attribute

    items = json.loads(path_of(version, name).read_text())
    return [{key: revive(attribute) for key, attribute in item.items()} for item in items]


def _write_items(name: str, items: list[dict[str, Any]]) -> None:
    path = path_of(FORMAT_VERSION, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x") as file:
        json.dump(items, file, indent=1, sort_keys=True, default=lambda data: base64.b64encode(data).decode())
        file.write("\n")


def main() -> None:
    """Write the files of this format version; one that exists already stops it."""
    with find_best().run() as engine:
        client = boto3.client("dynamodb", **engine.client_options())
        for name, (store, options) in THREADS.items():
            table_name = f"format-{uuid.uuid4().hex}"
            client.create_table(**table_schema(table_name))
            store(DynamoDBSaver(table_name, client=client, **options()))
            _write_items(name, sorted(all_items(client, table_name), key=lambda item: item["SK"]["S"]))


if __name__ == "__main__":
    main()
