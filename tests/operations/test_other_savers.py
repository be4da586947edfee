"""Looking for another saver's items: once for a table that is this saver's alone, else for each empty thread."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._operations.other_savers import look_for_other_savers
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.support.harness import TABLE, Harness


def _error(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "an operation")


EMPTY: Any = {"Items": []}
DENIED = _error("AccessDeniedException")
NO_INDEX = [
    _error("ResourceNotFoundException"),
    _error("ValidationException", "The table does not have the specified index: run_id-index"),
]


def _look(storage: Storage, *outcomes: Any, thread: str = "t", namespace: str = "") -> list[dict[str, Any]]:
    """Look, and return the keys of each query; the last outcome is that of the index, if it is asked."""
    run = Harness().begin(look_for_other_savers(storage, items.partition_of(thread, namespace)))
    calls = [call.params for call in run.calls]
    while not run.done:
        run.go_on(outcomes[: len(calls)])
    return [
        {**{value["S"]: each.get("IndexName") for value in each["ExpressionAttributeValues"].values()}}
        for each in calls
    ]


def test_each_saver_is_looked_for_by_its_keys(harness: Harness) -> None:
    storage = harness.process().storage
    asked = _look(storage, EMPTY, EMPTY, EMPTY, namespace="n")
    assert [sorted(each) for each in asked] == [["CHECKPOINT_t", "n#"], ["n#checkpoint#", "t"], ["-"]]
    assert [set(each.values()) for each in asked] == [{None}, {None}, {"run_id-index"}]
    assert storage.cache.facts.is_shared is False
    assert _look(storage) == []


@pytest.mark.parametrize("index", NO_INDEX)
def test_a_table_without_the_index_is_asked_each_time(harness: Harness, index: Any) -> None:
    storage = harness.process().storage
    assert len(_look(storage, EMPTY, EMPTY, index)) == 3
    assert storage.cache.facts.is_shared is True
    assert len(_look(storage, EMPTY, EMPTY)) == 2
    assert storage.cache.facts.is_shared is True


@pytest.mark.parametrize(
    ("outcomes", "saver"),
    [
        (({"Items": [items.key("x", "y")]}, EMPTY, EMPTY), "langgraph-checkpoint-aws"),
        ((EMPTY, {"Items": [items.key("x", "y")]}, EMPTY), "langgraph-checkpoint-amazon-dynamodb"),
    ],
)
def test_another_savers_items_are_an_error_each_time(harness: Harness, outcomes: Any, saver: str) -> None:
    storage = harness.process().storage
    for asked in (outcomes, outcomes[:2]):
        with pytest.raises(
            CheckpointerConfigurationError,
            match=rf"^table {TABLE} holds checkpoints of {saver} \(item PK='x' SK='y'\) for this thread",
        ):
            _look(storage, *asked)


def test_a_policy_may_allow_only_keys_of_threads(harness: Harness) -> None:
    storage = harness.process().storage
    assert len(_look(storage, DENIED, DENIED, DENIED)) == 3
    assert storage.cache.facts.is_shared is False
    with pytest.raises(ClientError, match="InternalServerError"):
        _look(harness.process().storage, _error("InternalServerError"), EMPTY, EMPTY)


@pytest.mark.parametrize(
    ("thread", "namespace", "count"),
    [("a#b", "", 1), ("x" * 2_040, "", 2), ("t", "n" * 1_015, 2), ("t", "n", 3)],
)
def test_keys_that_are_ours_or_too_long_are_not_asked(
    harness: Harness, thread: str, namespace: str, count: int
) -> None:
    outcomes = [EMPTY] * 3
    assert len(_look(harness.process().storage, *outcomes, thread=thread, namespace=namespace)) == count
