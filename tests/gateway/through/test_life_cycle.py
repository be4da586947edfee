"""A client of the gateway as a context, sync and async, with options and calls that few callers need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import checkpoint_of, stored_values, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")
METADATA: Any = {"source": "loop", "step": 1}


def _arguments(checkpoint_id: str) -> tuple[Any, ...]:
    checkpoint = checkpoint_of(checkpoint_id, {"x": checkpoint_id})
    return thread_config("thread"), checkpoint, METADATA, {"x": 1}


async def test_a_client_is_closed_with_its_context_and_may_be_used_again(
    make_remote: Callable[..., HttpCheckpointSaver],
) -> None:
    saver = make_remote()
    with saver:
        stored = saver.put(*_arguments("1"))
        assert stored_values(saver, stored) == {"x": "1"}
    async with saver:
        stored = await saver.aput(*_arguments("2"))
        await saver.aput_writes(stored, [("x", "2")], "task")
        found = await saver.aget_tuple(stored)
    assert found is not None
    assert found.pending_writes == [("task", "x", "2")]
    with saver:
        assert [each.checkpoint["id"] for each in saver.list(thread_config("thread"))] == ["2", "1"]
