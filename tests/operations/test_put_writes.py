"""`put_writes` meets deletions and expiries, and calls of one task meet each other."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import (
    CheckpointCorruptionError,
    CheckpointerInputError,
    CheckpointSerializationError,
)
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS, PUT_WAIT_SECONDS_MAX
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Wait
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.harness import ENCRYPTED, THREAD, Harness, commits, confirms, updates

TTL_SECONDS = 1000
# More than an item of writes holds itself.
BIG = noise(100_000)


def test_within_a_call_the_last_write_to_a_special_channel_wins() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("__error__", "first"), ("x", 1), ("__error__", "last")]))
    assert sorted(harness.process().pending("1")) == [("task", "__error__", "last"), ("task", "x", 1)]


def test_a_later_call_adds_what_the_task_lacks_and_changes_nothing_that_it_has() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", "first")]))
    harness.run(process.put_writes("1", [("x", "second"), ("y", "second"), ("__error__", "second")]))
    harness.run(process.put_writes("1", [("x", "third"), ("__error__", "third")]))
    assert sorted(harness.process().pending("1")) == [
        ("task", "__error__", "third"),
        ("task", "x", "first"),
        ("task", "y", "second"),
    ]


def test_writes_reuse_nothing_of_a_checkpoint_that_is_remembered_under_another_epoch() -> None:
    """The thread was deleted, and another process stored the checkpoint again, with segments of its own."""
    harness = Harness()
    process, other = harness.process(), harness.process()
    harness.run(process.put("1", {"big": BIG}))
    harness.run(other.delete_thread())
    harness.run(other.put("1", {"big": BIG}))
    # By this the process gets to know the thread's new epoch, and nothing else.
    harness.run(process.put_writes("1", [("__error__", BIG)], "another task"))
    harness.run(process.put_writes("1", [("big", BIG)]))
    assert harness.process().pending("1") == [("another task", "__error__", BIG), ("task", "big", BIG)]


def test_writes_that_find_a_segment_gone_store_the_value_again() -> None:
    """A process stands still before it extends what it reuses, and finds it gone."""
    harness = Harness()
    process = harness.process(TTL_SECONDS)
    harness.run(process.put("1", {"big": BIG}))
    for checkpoint_id, parent_id in (("2", "1"), ("3", "2")):
        harness.now += 0.45 * TTL_SECONDS
        harness.run(process.put(checkpoint_id, {"big": BIG}, parent_id, ()))
    harness.now += 0.9 * TTL_SECONDS
    writes = harness.begin(process.put_writes("3", [("big", BIG)]))
    writes.until(updates("S#"))
    for segment in harness.items("S#").values():
        harness.remove(segment)
    writes.finish()
    harness.run(process.put("3", {}))
    assert harness.process().pending("3") == [("task", "big", BIG)]


@pytest.mark.parametrize("channel", ["__resume__", "x"])
def test_writes_that_take_the_place_of_others_need_nothing_that_may_have_gone(channel: str) -> None:
    """Their process remembers segments that a deletion has removed, and dies before it notices."""
    harness = Harness()
    dying, other = harness.process(), harness.process()
    harness.run(dying.put("1", {"big": BIG}))
    harness.run(other.delete_thread())
    harness.run(other.put("1", {"big": BIG}))
    harness.run(other.put_writes("1", [(channel, "acknowledged")]))
    replacing = [(channel, BIG)] if channel == "__resume__" else [(channel, "ignored"), ("big", BIG)]
    writes = harness.begin(dying.put_writes("1", replacing))
    writes.until(confirms)
    found = [value for _, name, value in harness.process().pending("1") if name == channel]
    assert found in (["acknowledged"], [BIG])


def test_a_special_write_does_not_vouch_for_regular_ones_that_were_not_acknowledged() -> None:
    """The regular ones lost their segments to a deletion, and their process died before it looked."""
    harness = Harness()
    process, other = harness.process(), harness.process()
    harness.run(process.put("1", {"x": 0}))
    dying = harness.begin(process.put_writes("1", [("x", BIG)]))
    dying.until(lambda call: call.method == "update_item")
    harness.run(other.delete_thread())
    dying.go_on()
    harness.run(other.put("1", {"x": 0}))
    harness.run(other.put_writes("1", [("__resume__", BIG)]))
    assert harness.process().pending("1") == [("task", "__resume__", BIG)]


def test_a_special_write_of_a_process_whose_clock_is_slow_is_the_newest_all_the_same() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": 0}))
    harness.run(process.put_writes("1", [("__resume__", "no"), ("x", 1)]))
    [before] = harness.items("C#1#W#").values()
    harness.now -= 300
    harness.run(harness.process().put_writes("1", [("__resume__", "yes"), ("x", 1)]))
    [after] = harness.items("C#1#W#").values()
    assert items.number(after, items.ORDER) == (items.number(before, items.ORDER) or 0) + 1
    assert harness.process().pending("1") == [("task", "__resume__", "yes"), ("task", "x", 1)]


def test_a_special_write_whose_answer_was_lost_is_stored_once() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": 0}))
    call = harness.begin(process.put_writes("1", [("__resume__", "yes")]))
    call.until(lambda each: each.method == "update_item")
    call.perform()
    call.go_on()
    while not call.done:
        assert not call.calls
        call.go_on()


def test_writes_reuse_nothing_that_went_while_their_process_knew_nothing_of_it() -> None:
    """It remembers checkpoint and thread as they were; another process has deleted both, and stored them again."""
    harness = Harness()
    process, other = harness.process(), harness.process()
    harness.run(process.put("1", {"big": BIG}))
    harness.run(other.delete_thread())
    harness.run(other.put("1", {"big": BIG}))
    harness.run(process.put_writes("1", [("big", BIG)]))
    assert harness.process().pending("1") == [("task", "big", BIG)]


@pytest.mark.parametrize(
    ("config", "arguments", "message"),
    [
        (
            {},
            ("task", ""),
            r'^config\["configurable"\]\["checkpoint_id"\] is missing; give the checkpoint that the writes belong to$',
        ),
        ({"checkpoint_id": "1"}, (7, ""), "^task_id"),
        ({"checkpoint_id": "1"}, ("task", 7), "^task_path"),
    ],
)
def test_arguments_that_are_wrong_are_named_and_nothing_is_stored(
    config: dict[str, str], arguments: tuple[Any, Any], message: str
) -> None:
    harness = Harness()
    at: Any = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", **config}}
    with pytest.raises(CheckpointerInputError, match=message):
        harness.run(put_writes(harness.process().storage, at, [("x", 1)], *arguments))
    assert harness.model.items() == []


def test_a_write_that_cannot_be_serialized_is_named() -> None:
    harness = Harness()
    codec = Codec(JsonPlusSerializer(pickle_fallback=False))
    at = thread_config(THREAD, "", "1")
    with pytest.raises(CheckpointSerializationError, match=r"^the write to channel 'x' cannot be serialized"):
        harness.run(put_writes(harness.process(codec=codec).storage, at, [("x", object())], "task", ""))
    assert harness.model.items() == []


@pytest.mark.parametrize("size", [10, 100_000])
def test_encrypted_writes_are_bound_to_what_they_are(size: int) -> None:
    harness = Harness()
    storage = harness.process(codec=ENCRYPTED).storage
    checkpoint = checkpoint_of("1", {"x": noise(size)})
    harness.run(put(storage, thread_config(THREAD), checkpoint, {}, {"x": 1}))
    at, writes = thread_config(THREAD, "", "1"), [("x", noise(size)), ("__error__", noise(size, 1))]
    harness.run(put_writes(storage, at, writes, "task", "path"))
    found = harness.run(get_tuple(harness.process(codec=ENCRYPTED).storage, at))
    assert found is not None
    assert sorted(found.pending_writes or []) == sorted(("task", *each) for each in writes)
    [item] = harness.items("C#1#W#").values()
    special = items.SPECIAL_WRITES[WRITES_IDX_MAP["__error__"]]
    harness.change(item, **{items.WRITES: item[special], special: item[items.WRITES]})
    with pytest.raises(CheckpointCorruptionError):
        harness.run(get_tuple(harness.process(codec=ENCRYPTED).storage, at))


def _stored(harness: Harness) -> int:
    return len(harness.items("S#"))


@pytest.mark.parametrize("namespace", ["", "inner"])
def test_writes_name_what_the_put_of_their_checkpoint_is_about_to_store(namespace: str) -> None:
    harness = Harness()
    process = harness.process()
    put = harness.begin(process.put("1", {"big": BIG}, namespace=namespace))
    put.until(commits("1"))
    writes = harness.begin(process.put_writes("1", [("big", BIG)], namespace=namespace))
    writes.go_on()
    [wait] = writes.round
    assert isinstance(wait, Wait)
    assert not wait.ended.done()
    put.finish()
    assert wait.ended.done()
    stored, markers = _stored(harness), harness.items("N#")
    writes.finish()
    # The ends of the value are in the head, which nothing can name.
    assert _stored(harness) <= stored + 2
    assert harness.items("N#") == markers
    assert harness.process().pending("1", namespace=namespace) == [("task", "big", BIG)]


def test_writes_do_without_a_put_that_fails() -> None:
    harness = Harness()
    process = harness.process()
    put = harness.begin(process.put("1", {"big": BIG}))
    put.until(commits("1"))
    writes = harness.begin(process.put_writes("1", [("big", BIG)]))
    writes.go_on()
    put.drop()
    writes.finish()
    harness.run(harness.process().put("1", {}))
    assert harness.process().pending("1") == [("task", "big", BIG)]


@pytest.mark.parametrize("namespace", ["", "inner"])
def test_puts_that_never_end_are_waited_for_once(namespace: str) -> None:
    """Their event loops were stopped and kept."""
    harness = Harness()
    process = harness.process()
    kept = [harness.begin(process.put(each, {"big": BIG}, namespace=namespace)) for each in ("1", "2")]
    for each in kept:
        each.go_on()
    before = harness.now
    for task in ("first", "second"):
        harness.run(process.put_writes("3", [("big", BIG)], task, namespace=namespace))
        assert harness.now == before + PUT_WAIT_SECONDS_MAX
    # A later one is waited for, and the first ones may go on.
    later = harness.begin(process.put("3", {"big": BIG}, namespace=namespace))
    writes = harness.begin(process.put_writes("3", [("big", BIG)], "third", namespace=namespace))
    writes.go_on()
    assert [type(step) for step in writes.round] == [Wait]
    for each in (*kept, later):
        each.finish()
    writes.finish()
    assert [task for task, _, _ in harness.process().pending("3", namespace=namespace)] == [
        "first",
        "second",
        "third",
    ]


def test_writes_that_must_not_wait_ask_for_it_once() -> None:
    """A blocking call on a thread that runs an event loop: what it would wait for may need the loop."""
    harness = Harness()
    process = harness.process()
    put = harness.begin(process.put("1", {"big": BIG}))
    put.until(commits("1"))
    writes = harness.begin(process.put_writes("1", [("big", BIG)]))
    writes.go_on()
    assert [type(step) for step in writes.round] == [Wait]
    writes.go_on([None])
    writes.until(updates("C#1#W"))
    assert harness.now == 1_700_000_000.0


def test_writes_name_nothing_of_a_put_that_a_deletion_made_begin_again() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"big": BIG}))
    put = harness.begin(process.put("2", {"big": BIG}, "1", ()))
    put.until(commits("2"))
    writes = harness.begin(process.put_writes("2", [("big", BIG)]))
    harness.run(harness.process().delete_thread())
    put.finish()
    writes.finish()
    assert harness.process().pending("2") == [("task", "big", BIG)]
    harness.run(harness.process().delete_thread())
    assert harness.items("") == {}


def test_writes_that_come_before_their_put_name_what_the_last_checkpoint_has() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"big": BIG}))
    stored = _stored(harness)
    harness.run(process.put_writes("2", [("big", BIG)]))
    assert _stored(harness) <= stored + 2
    # The checkpoint whose segments they name may go, and its segments stay.
    harness.run(process.put("2", {}, "1"))
    harness.run(process.prune())
    harness.now += 2 * ORPHAN_SECONDS
    harness.run(process.prune())
    assert harness.process().pending("2") == [("task", "big", BIG)]


def test_small_writes_wait_for_no_put() -> None:
    harness = Harness()
    process = harness.process()
    put = harness.begin(process.put("1", {"big": BIG}))
    put.until(commits("1"))
    writes = harness.begin(process.put_writes("1", [("x", 1)]))
    writes.until(updates("C#1#W"))
    assert harness.now == 1_700_000_000.0
