"""Defects found in other DynamoDB savers that the public conformance suite does not catch.

Each docstring says what went wrong there and what has to hold here.
"""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import writes_sort_key

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.conftest import NO_SECOND_OPINION
from tests.support.checkpoints import checkpoint_of, store, thread_config

pytestmark = NO_SECOND_OPINION


def test_writes_come_back_in_the_order_in_which_a_run_applies_them(saver: DynamoDBSaver) -> None:
    """A peer sorted writes as text (0, 1, 10, 11, 2), by task id, and did not look at the task path.

    The order is LangGraph's `writes_sort_key`: the task path first, then the task, then the number.
    """
    config = store(saver, thread_config(), "1", {"a": 1})
    paths = {"task-a": "~__pregel_pull, z", "task-c": "~__pregel_pull, b", "task-b": "~__pregel_pull, b"}
    for task_id, task_path in paths.items():
        saver.put_writes(config, [("channel", number) for number in range(12)], task_id, task_path)
    found = saver.get_tuple(config)
    assert found is not None
    expected = sorted(
        ((task_id, "channel", number) for task_id in paths for number in range(12)),
        key=lambda write: writes_sort_key(paths[write[0]], write[0], write[2]),
    )
    assert found.pending_writes == expected
    assert [write[0] for write in expected[::12]] == ["task-b", "task-c", "task-a"]


def test_the_caller_s_metadata_is_added_and_replaces_nothing(saver: DynamoDBSaver) -> None:
    """A peer let `config["metadata"]` replace `source` and `step`, and left the configurable keys out.

    What LangGraph says of a checkpoint stays; what the caller says is added to it.
    """
    config: RunnableConfig = {
        "configurable": {"thread_id": "thread-1", "checkpoint_ns": "", "tenant": "acme", "step": -7},
        "metadata": {"source": "forged", "step": 99, "user": "ann"},
    }
    stored = saver.put(config, checkpoint_of("1", {}), {"source": "loop", "step": 3, "parents": {}}, {})
    found = saver.get_tuple(stored)
    assert found is not None
    assert found.metadata == {"source": "loop", "step": 3, "parents": {}, "tenant": "acme", "user": "ann"}
    assert [each.metadata for each in saver.list(thread_config(), filter={"step": 3, "tenant": "acme"})] == [
        found.metadata
    ]
