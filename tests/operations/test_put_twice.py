"""A checkpoint that is put again with other values, which LangGraph does not do: what readers and children get."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.put import put
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import THREAD, Harness, Process

METADATA: Any = {"source": "loop"}


def _put(
    process: Process,
    checkpoint_id: str,
    values: dict[str, Any],
    new: dict[str, Any],
    parent: str | None = None,
) -> None:
    at, checkpoint = thread_config(THREAD, "", parent), checkpoint_of(checkpoint_id, values)
    process.harness.run(put(process.storage, at, checkpoint, METADATA, new))


def _value(process: Process, checkpoint_id: str) -> Any:
    found = process.harness.run(get_tuple(process.storage, thread_config(THREAD, "", checkpoint_id)))
    assert found is not None
    return found.checkpoint["channel_values"]["x"]


@pytest.mark.parametrize(
    ("first", "later"), [("a", "b"), (noise(50_000, 1), noise(50_000, 2))], ids=["small", "large"]
)
@pytest.mark.parametrize("remembers", [True, False], ids=["remembered", "not remembered"])
def test_the_later_values_are_read_and_a_child_inherits_what_its_process_knows(
    harness: Harness, remembers: bool, first: Any, later: Any
) -> None:
    one, another = harness.process(), harness.process()
    _put(one, "1", {"x": first}, {"x": 1})
    _put(another, "1", {"x": later}, {"x": 1})
    child = one if remembers else harness.process()
    _put(child, "2", {"x": first, "y": 1}, {"y": 2}, "1")
    for reader in (one, another, child, harness.process()):
        assert _value(reader, "1") == later
        assert _value(reader, "2") == (first if remembers else later)
