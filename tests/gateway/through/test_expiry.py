"""A thread with a ttl that agents use through the gateway keeps what their runs need, as one on the table does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.change import change_storage
from tests.support.checkpoints import Conversation, thread_config

TTL_SECONDS = 1000


@pytest.mark.engines("dynamodb-local")
async def test_writes_and_subgraphs_renew_what_a_run_needs(
    make_saver: Callable[..., DynamoDBSaver],
    serve_saver: Callable[[DynamoDBSaver], str],
    make_remote: Callable[..., HttpCheckpointSaver],
) -> None:
    now = [1_700_000_000.0]
    serving = make_saver(ttl_seconds=TTL_SECONDS)
    change_storage(serving, clock=lambda: now[0])
    remote = make_remote(serve_saver(serving))
    config = await remote.aput(*Conversation(serving, "t").change(text="short"))
    inner = Conversation(serving, "t", "inner:1")
    for step in range(4):
        now[0] += TTL_SECONDS * 0.6
        await remote.aput_writes(config, [("answers", step)], f"task-{step}")
        now[0] += TTL_SECONDS * 0.6
        await remote.aput(*inner.change(text=f"step {step}"))
    found = await remote.aget_tuple(thread_config("t"))
    assert found is not None
    assert [each[2] for each in found.pending_writes or ()] == [0, 1, 2, 3]
    now[0] += TTL_SECONDS
    assert await remote.aget_tuple(thread_config("t")) is None
