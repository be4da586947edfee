"""What a caller changes of what it gave, while requests are on their way, changes nothing that is stored."""

from typing import Any

import pytest
from langgraph.checkpoint.base import Checkpoint

from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.checkpoints import METADATA, checkpoint_of, thread_config
from tests.support.harness import THREAD, Harness


def _any_request(_: Call) -> bool:
    return True


def _mutable() -> tuple[Checkpoint, Any, dict[str, Any]]:
    """A checkpoint every part of which can be changed in place, its metadata, and its new versions."""
    checkpoint = checkpoint_of("2", {"list": ["given"], "kept": ["given"], "big": ["given " * 4000]})
    checkpoint["versions_seen"] = {"node": {"list": 1}}
    metadata: Any = {**METADATA, "parents": {"": "given"}, "counters_since_delta_snapshot": {"d": [1, 1]}}
    return checkpoint, metadata, {"list": 1}


def _spoil(checkpoint: Checkpoint, metadata: Any, new_versions: dict[str, Any]) -> None:
    for value in checkpoint["channel_values"].values():
        value.append("changed")
    checkpoint["channel_values"]["more"] = "changed"
    checkpoint["channel_versions"].clear()
    checkpoint["versions_seen"]["node"]["list"] = 9
    checkpoint["ts"] = checkpoint["id"] = "changed"
    metadata["parents"][""] = "changed"
    metadata["counters_since_delta_snapshot"].clear()
    metadata["step"] = 9
    new_versions["kept"] = 9


@pytest.mark.parametrize(
    "parent", ["none", "remembered", "forgotten", "never stored", "deleted while the put is under way"]
)
def test_a_put_stores_what_it_was_given(parent: str) -> None:
    harness = Harness()
    process = harness.process()
    if parent not in ("none", "never stored"):
        harness.run(process.put("1", {"other": 1}))
    if parent == "forgotten":
        process = harness.process()
    given, config = _mutable(), thread_config(THREAD, checkpoint_id=None if parent == "none" else "1")
    under_way = harness.begin(put(process.storage, config, *given)).until(_any_request)
    _spoil(*given)
    if parent.startswith("deleted"):
        # So the put is made again.
        harness.run(harness.process().delete_thread())
    assert under_way.finish() == thread_config(THREAD, checkpoint_id="2")
    found = harness.process().found("2")
    assert (found.checkpoint, found.metadata) == _mutable()[:2]
    # What is remembered of it is what was given, too.
    harness.run(process.put("3", {"kept": ["of the child"]}, "2", new=[]))
    assert process.values() == {"kept": ["given"]}


def test_writes_are_stored_as_they_were_given() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}, namespace="sub"))
    writes: list[tuple[str, Any]] = [("list", ["given"]), ("big", ["given " * 20_000])]
    at = thread_config(THREAD, "sub", "1")
    under_way = harness.begin(put_writes(process.storage, at, writes, "task", "")).until(_any_request)
    for _, value in writes:
        value.append("changed")
    writes.append(("more", "changed"))
    under_way.finish()
    given = [("task", "list", ["given"]), ("task", "big", ["given " * 20_000])]
    assert harness.process().pending("1", namespace="sub") == given
