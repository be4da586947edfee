"""A caller may change its arguments while a call waits: what counts is what they were at the beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._runtime.steps import Call, Op, Work
from langgraph.checkpoint.dynamodb.http import operations
from langgraph.checkpoint.dynamodb.http.memory import LastUsed
from langgraph.checkpoint.dynamodb.http.service import Service
from langgraph.checkpoint.dynamodb.http.values import Values
from tests.support.checkpoints import checkpoint_of

ABOUT = {"wire_version": 2, "features": [], "owner": None, "limits": {"decompressed_bytes_max": 1 << 20}}
ANSWERS = {"about": ABOUT, "put": {"wanted": []}, "put-writes": {}}


def _sent(operation: Op[Any], then: Callable[[], None]) -> dict[str, Any]:
    """Run an operation, and something else as soon as it waits; return the last document that it sends."""
    steps = next(operation)
    then()
    sent: dict[str, Any] = {}
    while True:
        [step] = steps
        outcome: Any
        if isinstance(step, Work):
            outcome = step.function()
        else:
            assert isinstance(step, Call)
            sent, outcome = dict(step.params), ANSWERS[step.method]
        try:
            steps = operation.send([outcome])
        except StopIteration:
            return sent


def _client() -> operations.Client:
    return operations.Client(Service(), LastUsed[operations.Known](0), Values(JsonPlusSerializer()))


def _config() -> Any:
    above = {"": "root"}
    return {
        "configurable": {
            "thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1", "checkpoint_map": above
        }
    }  # fmt: skip


def test_a_put_stores_what_it_was_given() -> None:
    config, checkpoint = _config(), checkpoint_of("2", {"x": [1]})
    metadata: Any = {"source": "loop", "parents": {"": "root"}}
    new_versions: Any = {"x": 1}

    def change() -> None:
        for each in (config["configurable"]["checkpoint_map"], config, metadata["parents"], metadata):
            each.clear()
        for name in ("channel_values", "channel_versions", "versions_seen"):
            vars_of: Any = checkpoint
            vars_of[name].clear()
        new_versions.clear()

    sent = _sent(operations.put(_client(), config, checkpoint, metadata, new_versions), change)
    assert sent["checkpoint_map"] == {"": "root"}
    assert sent["metadata"] == {"source": "loop", "parents": {"": "root"}}
    assert sent["new_versions"] == sent["checkpoint"]["channel_versions"] == {"x": 1}
    assert list(sent["values"]) == ["x"]


def test_writes_are_stored_as_they_were_given() -> None:
    config, writes = _config(), [("x", 1), ("y", 2)]

    def change() -> None:
        config["configurable"].clear()
        config.clear()
        writes.clear()

    sent = _sent(operations.put_writes(_client(), config, writes, "task", ""), change)
    assert sent["checkpoint_map"] == {"": "root"}
    assert [name for name, _ in sent["writes"]] == ["x", "y"]
