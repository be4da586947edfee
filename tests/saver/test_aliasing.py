"""What a caller changes of what it gave, while requests are on their way, changes nothing that is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import Checkpoint

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Work
from tests.support.checkpoints import METADATA, checkpoint_of, store, stored_values, thread_config

MakeSaver = Callable[..., DynamoDBSaver]

pytestmark = pytest.mark.engines("dynamodb-local")


def _with_change(saver: DynamoDBSaver, operation: Op[Any], change: Callable[[], None]) -> Any:
    """Run an operation whose caller changes what it gave when the first request is about to be made."""

    def changing() -> Op[Any]:
        outcomes: Any = None
        changed = False
        while True:
            try:
                steps = operation.send(outcomes)
            except StopIteration as stop:
                return stop.value
            if not changed and not all(isinstance(step, Work) for step in steps):
                change()
                changed = True
            outcomes = yield steps

    return saver.runner.run(changing())


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


def _assert_as_given(saver: DynamoDBSaver) -> None:
    found = next(saver.list(thread_config()))
    checkpoint, metadata, _ = _mutable()
    assert (found.checkpoint, found.metadata) == (checkpoint, metadata)


@pytest.mark.parametrize("parent", ["none", "remembered", "forgotten", "never stored"])
def test_what_a_caller_changes_while_a_put_makes_its_requests_is_stored_as_it_was_given(
    make_saver: MakeSaver, parent: str
) -> None:
    saver = make_saver()
    config = thread_config(checkpoint_id=None if parent == "none" else "1")
    if parent in ("remembered", "forgotten"):
        store(saver, thread_config(), "1", {"other": 1})
        if parent == "forgotten":
            saver = make_saver()
    given = _mutable()
    operation = put(saver.storage, config, *given)
    stored = _with_change(saver, operation, lambda: _spoil(*given))
    assert stored == thread_config(checkpoint_id="2")
    _assert_as_given(make_saver())
    # What is remembered of it is what was given, too.
    child = checkpoint_of("3", {"kept": ["of the child"]})
    assert stored_values(saver, saver.put(stored, child, METADATA, {})) == {"kept": ["given"]}


def test_what_a_caller_changes_while_a_put_is_made_again_is_stored_as_it_was_given(
    make_saver: MakeSaver,
) -> None:
    saver = make_saver()
    store(saver, thread_config(), "0", {})
    given = _mutable()

    def meanwhile() -> None:
        _spoil(*given)
        make_saver().delete_thread("thread-1")

    operation = put(saver.storage, thread_config(), *given)
    _with_change(saver, operation, meanwhile)
    _assert_as_given(make_saver())


def test_what_a_caller_changes_while_writes_are_stored_is_stored_as_it_was_given(
    make_saver: MakeSaver,
) -> None:
    saver = make_saver()
    config = store(saver, thread_config(namespace="sub"), "1", {})
    writes: list[tuple[str, Any]] = [("list", ["given"]), ("big", ["given " * 20_000])]

    def meanwhile() -> None:
        for _, value in writes:
            value.append("changed")
        writes.append(("more", "changed"))

    operation = put_writes(saver.storage, config, writes, "task", "")
    _with_change(saver, operation, meanwhile)
    found = make_saver().get_tuple(config)
    assert found is not None
    assert found.pending_writes == [("task", "list", ["given"]), ("task", "big", ["given " * 20_000])]
