"""The agent of the chaos runs: which of the saver's errors it takes for an answer."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError
from tests.chaos.agent import Agent
from tests.chaos.operation_log import OperationLog
from tests.chaos.recorder import Methods, OperationFailedError, Recorder
from tests.simulation.history import Violation

THREAD = "small-sync-0-0"


class _Empty(Methods):
    """Methods of a saver that finds nothing."""

    def __init__(self) -> None:
        """Have no saver."""

    async def call(self, name: str, *_arguments: Any, **_options: Any) -> Any:
        """Find nothing to copy."""
        raise CheckpointNotFoundError(name)


@pytest.mark.parametrize(("is_deleted", "expected"), [(True, OperationFailedError), (False, Violation)])
async def test_a_copy_may_find_a_thread_empty_if_a_deletion_is_under_way(
    tmp_path: Path, is_deleted: bool, expected: type[Exception]
) -> None:
    log = OperationLog(tmp_path / "sync.jsonl")
    if is_deleted:
        log.ask("sync/0001/0001.000001", "delete_thread", thread=THREAD)
    log.ask("sync/0001/0001.000003", "put", thread=THREAD, namespace="inner", id="1", parent=None, run="run")
    log.acknowledge("sync/0001/0001.000003")
    agent = Agent(_Empty(), Recorder(log, "sync/0001", random.Random(0)), "sync", random.Random(0))
    with pytest.raises(expected):
        await agent._copy(THREAD)  # noqa: SLF001 - it is the one that is tested.
    log.close()
