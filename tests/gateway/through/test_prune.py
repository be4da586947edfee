"""Strategies of pruning: every name of one means the same to the saver, to the service and to its client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.checkpoints import checkpoint_of, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.mark.parametrize(("strategy", "left"), [("keep_latest", ["2"]), ("delete", []), ("delete_all", [])])
@pytest.mark.parametrize("asks", ["saver", "client"])
async def test_a_strategy_means_the_same_to_saver_and_client(
    make_saver: Callable[..., DynamoDBSaver],
    make_remote: Callable[..., HttpCheckpointSaver],
    asks: str,
    strategy: str,
    left: list[str],
) -> None:
    saver = make_saver()
    asking = saver if asks == "saver" else make_remote()
    for side in ("sync", "async"):
        for each in ("1", "2"):
            saver.put(thread_config(side), checkpoint_of(each, {}), {"source": "loop"}, {})
    asking.prune(["sync"], strategy=strategy)
    await asking.aprune(["async"], strategy=strategy)
    for side in ("sync", "async"):
        assert [each.checkpoint["id"] for each in saver.list(thread_config(side))] == left
