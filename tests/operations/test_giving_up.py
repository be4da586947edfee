"""Operations that others come in the way of each time they try: they end, with an error that says what to do."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX, MERGE_ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.harness import Harness, Run, asks, changes_thread, commits, confirms


def _give_up(run: Run[Any], wanted: Callable[[Call], bool], disturb: Callable[[], object]) -> str:
    """Let somebody come in the way before each such request; return what the error says."""

    def run_on() -> None:
        while True:
            run.until(wanted)
            disturb()
            run.go_on()

    with pytest.raises(ThreadBusyError) as error:
        run_on()
    return str(error.value)


def _end_epoch(harness: Harness, thread: str) -> None:
    """End the epoch of a thread, as a deletion does that finds something to delete."""
    [item] = harness.items("T", thread).values()
    harness.change(item, **{items.EPOCH: {"B": harness.process().storage.rng.randbytes(8)}})


def test_a_put_into_a_thread_that_is_pruned_again_and_again(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"x": 1}))
    put = harness.begin(harness.process().put("2", {"x": 2}, "1"))
    assert _give_up(put, confirms, lambda: _end_epoch(harness, "t")) == (
        "checkpoint '2' of thread 't' could not be stored: the thread was deleted or pruned during each of"
        f" {ATTEMPTS_MAX} attempts; try again when that has ended"
    )


def test_a_put_of_a_checkpoint_that_others_put_again_and_again(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"x": 1}))
    numbers = count()

    def disturb() -> None:
        [head] = harness.items("C#").values()
        harness.change(head, **{items.EPOCH: {"B": b"epoch %d" % next(numbers)}})

    disturb()
    put = harness.begin(harness.process().put("1", {"x": 2}))
    assert _give_up(put, commits("1"), disturb) == (
        "item PK='t#' SK='C#1#' could not be stored: other calls put the same checkpoint"
        f" {MERGE_ATTEMPTS_MAX} times meanwhile; let one process run a thread at a time"
    )


def test_writes_of_a_task_that_others_write_for_again_and_again(harness: Harness) -> None:
    harness.run(harness.process().put("1", {}))
    others = [("x", number) for number in range(100)]
    writes = harness.begin(harness.process().put_writes("1", [("x", 0)] * 100))
    numbers = count(1)
    assert _give_up(
        writes,
        asks("update_item"),
        lambda: harness.run(harness.process().put_writes("1", others[: next(numbers)])),
    ) == (
        "writes of task 'task' of thread 't' could not be stored: other calls for the same task interfered"
        f" {MERGE_ATTEMPTS_MAX} times; let one process run a task at a time"
    )


def test_an_epoch_that_ends_whenever_it_is_to_begin(harness: Harness) -> None:
    harness.run(harness.process().put("1", {}))
    numbers = count()

    def disturb() -> None:
        [thread] = harness.items("T").values()
        epoch = {"B": b"epoch %d" % next(numbers)}
        harness.change(thread, **{items.EPOCH: epoch, items.PENDING: {"BOOL": True}})

    disturb()
    put = harness.begin(harness.process().put("2", {}))
    assert _give_up(put, changes_thread("REMOVE #pending"), disturb) == (
        f"thread 't' was deleted {ATTEMPTS_MAX} times while something was stored in it; retry the call"
    )


def test_a_namespace_that_others_register_for_longer_again_and_again(harness: Harness) -> None:
    ttls = count(2000)

    def disturb() -> None:
        marker = items.namespace_item(items.partition_of("t", "inner"), b"token", None, None)
        harness.change(marker, **{TTL_ATTRIBUTE: {"N": str(int(harness.now) + 1000 * next(ttls))}})

    put = harness.begin(harness.process(1000).put("1", {}, namespace="inner"))
    assert _give_up(put, lambda call: "N#inner" in str(call.params), disturb) == (
        f"namespace 'inner' of thread 't' is being registered by other processes ({ATTEMPTS_MAX} attempts);"
        " retry the call"
    )


def test_a_copy_to_a_thread_that_is_pruned_again_and_again(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"x": 1}))
    copy = harness.begin(harness.process().copy_thread("copy"))
    assert _give_up(copy, changes_thread("#alive = :zero"), lambda: _end_epoch(harness, "copy")) == (
        "thread 't' could not be copied to 'copy': one of them was deleted, pruned or used during each"
        f" of {ATTEMPTS_MAX} attempts; try again when that has ended"
    )
