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
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations.get import get_tuple
from langgraph.checkpoint.dynamodb._operations.put import put
from langgraph.checkpoint.dynamodb._operations.put_writes import put_writes
from tests.support.checkpoints import checkpoint_of, noise, thread_config
from tests.support.stage import CODEC, ENCRYPTED, THREAD, Stage, confirms, deletes, updates

TTL_SECONDS = 1000
# More than an item of writes holds itself.
BIG = noise(100_000)


def test_within_a_call_the_last_write_to_a_special_channel_wins() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {}))
    stage.run(process.put_writes("1", [("__error__", "first"), ("x", 1), ("__error__", "last")]))
    assert sorted(stage.process().pending("1")) == [("task", "__error__", "last"), ("task", "x", 1)]


def test_a_later_call_adds_what_the_task_lacks_and_changes_nothing_that_it_has() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {}))
    stage.run(process.put_writes("1", [("x", "first")]))
    stage.run(process.put_writes("1", [("x", "second"), ("y", "second"), ("__error__", "second")]))
    stage.run(process.put_writes("1", [("x", "third"), ("__error__", "third")]))
    assert sorted(stage.process().pending("1")) == [
        ("task", "__error__", "third"),
        ("task", "x", "first"),
        ("task", "y", "second"),
    ]


def test_a_tasks_item_does_not_outlive_its_segments() -> None:
    """Later calls of the task prolong either both or none."""
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put("1", {}))
    stage.run(process.put_writes("1", [("x", BIG)]))
    for answer in ("first", "second"):
        stage.now += 0.9 * TTL_SECONDS
        stage.run(process.put_writes("1", [("__resume__", answer)]))
    stage.now += 0.6 * TTL_SECONDS
    stage.run(process.put("1", {}))
    stage.now += 0.8 * TTL_SECONDS
    stage.model.expire()
    assert stage.process().pending("1") == [("task", "__resume__", "second"), ("task", "x", BIG)]


def test_writes_reuse_nothing_of_a_checkpoint_that_is_remembered_under_another_epoch() -> None:
    """The thread was deleted, and another process stored the checkpoint again, with segments of its own."""
    stage = Stage()
    process, other = stage.process(), stage.process()
    stage.run(process.put("1", {"big": BIG}))
    stage.run(other.delete_thread())
    stage.run(other.put("1", {"big": BIG}))
    # By this the process gets to know the thread's new epoch, and nothing else.
    stage.run(process.put_writes("1", [("__error__", BIG)], "another task"))
    stage.run(process.put_writes("1", [("big", BIG)]))
    assert stage.process().pending("1") == [("another task", "__error__", BIG), ("task", "big", BIG)]


def test_writes_that_find_a_segment_gone_store_the_value_again() -> None:
    """A process stands still before it renews what it reuses, and DynamoDB removes that meanwhile."""
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put("1", {"big": BIG}))
    for checkpoint_id, parent_id in (("2", "1"), ("3", "2")):
        stage.now += 0.9 * TTL_SECONDS
        stage.run(process.put(checkpoint_id, {"big": BIG}, parent_id, ()))
    stage.now += 0.9 * TTL_SECONDS
    writes = stage.begin(process.put_writes("3", [("big", BIG)]))
    writes.until(updates("S#"))
    stage.now += 0.5 * TTL_SECONDS
    stage.model.expire()
    writes.finish()
    stage.run(process.put("3", {}))
    assert stage.process().pending("3") == [("task", "big", BIG)]


@pytest.mark.parametrize("channel", ["__resume__", "x"])
def test_writes_that_take_the_place_of_others_need_nothing_that_may_have_gone(channel: str) -> None:
    """Their process remembers segments that a deletion has removed, and dies before it notices."""
    stage = Stage()
    dying, other = stage.process(), stage.process()
    stage.run(dying.put("1", {"big": BIG}))
    stage.run(other.delete_thread())
    stage.run(other.put("1", {"big": BIG}))
    stage.run(other.put_writes("1", [(channel, "acknowledged")]))
    replacing = [(channel, BIG)] if channel == "__resume__" else [(channel, "ignored"), ("big", BIG)]
    writes = stage.begin(dying.put_writes("1", replacing))
    writes.until(confirms)
    found = [value for _, name, value in stage.process().pending("1") if name == channel]
    assert found in (["acknowledged"], [BIG])


def test_a_special_write_does_not_vouch_for_regular_ones_that_were_not_acknowledged() -> None:
    """The regular ones lost their segments to a deletion, and their process died before it looked."""
    stage = Stage()
    process, other = stage.process(), stage.process()
    stage.run(process.put("1", {"x": 0}))
    dying = stage.begin(process.put_writes("1", [("x", BIG)]))
    dying.until(lambda call: call.method == "update_item")
    stage.run(other.delete_thread())
    dying.go_on()
    stage.run(other.put("1", {"x": 0}))
    stage.run(other.put_writes("1", [("__resume__", BIG)]))
    assert stage.process().pending("1") == [("task", "__resume__", BIG)]


@pytest.mark.parametrize("again", [False, True])
def test_writes_that_are_there_already_are_in_a_namespace_that_a_deletion_finds(again: bool) -> None:
    """A deletion empties the namespace while a call stores its writes in it, or makes sure that they are there."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 0}, namespace="inner"))
    writes = stage.begin(process.put_writes("1", [("x", 1)], namespace="inner"))
    if again:
        writes.finish()
        writes = stage.begin(process.put_writes("1", [("x", 1)], namespace="inner"))
    stored = writes.until(lambda call: call.method == "update_item")
    stage.run(stage.process().delete_thread())
    stage.perform(stored[0])
    writes.finish()
    stage.run(stage.process().delete_thread())
    assert stage.model.items() == []


@pytest.mark.parametrize("value", ["no", BIG])
def test_a_special_write_that_arrives_late_does_not_take_the_place_of_a_newer_one(value: object) -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 0}))
    late = stage.begin(process.put_writes("1", [("__resume__", value)]))
    (request,) = late.until(lambda call: call.method == "update_item")
    stage.run(stage.process().put_writes("1", [("__resume__", "yes")]))
    stage.perform(request)
    assert stage.process().pending("1") == [("task", "__resume__", "yes")]


def test_a_special_write_of_a_process_whose_clock_is_slow_is_the_newest_all_the_same() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 0}))
    stage.run(process.put_writes("1", [("__resume__", "no"), ("x", 1)]))
    [before] = stage.items("C#1#W#").values()
    stage.now -= 300
    stage.run(stage.process().put_writes("1", [("__resume__", "yes"), ("x", 1)]))
    [after] = stage.items("C#1#W#").values()
    assert items.number(after, items.ORDER) == (items.number(before, items.ORDER) or 0) + 1
    assert stage.process().pending("1") == [("task", "__resume__", "yes"), ("task", "x", 1)]


def test_a_special_write_whose_answer_was_lost_is_stored_once() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 0}))
    call = stage.begin(process.put_writes("1", [("__resume__", "yes")]))
    call.until(lambda each: each.method == "update_item")
    call.perform()
    call.go_on()
    while not call.done:
        assert not call.calls
        call.go_on()


@pytest.mark.parametrize("removed", [False, True])
def test_writes_of_a_task_whose_item_has_expired_take_its_place(removed: bool) -> None:
    """They came before the checkpoint, which is put late; of the item's segments some have gone already."""
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put_writes("1", [("x", BIG), ("__error__", "old")]))
    stage.now += 4 * TTL_SECONDS
    expired = stage.model.expired()
    stage.model.expire(expired if removed else [each for each in expired if each["SK"]["S"].startswith("S#")])
    stage.run(process.put("1", {"x": 0}))
    stage.run(stage.process(TTL_SECONDS).put_writes("1", [("x", BIG), ("__resume__", "new")]))
    assert sorted(stage.process().pending("1")) == [("task", "__resume__", "new"), ("task", "x", BIG)]


def test_writes_that_are_stored_again_do_not_pass_for_abandoned() -> None:
    """They come before their checkpoint; that they were repeated says that it is still on its way."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {}))
    stage.run(process.put_writes("2", [("x", BIG)]))
    stage.now += ORPHAN_SECONDS - 100
    stage.run(process.put_writes("2", [("x", BIG)]))
    stage.now += 200
    stage.run(stage.process().prune())
    stage.run(process.put("2", {}, "1"))
    assert stage.process().pending("2") == [("task", "x", BIG)]


def test_writes_that_are_stored_again_while_they_are_deleted_are_there() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {}))
    stage.run(process.put_writes("1", [("x", "stored")]))
    stage.now += ORPHAN_SECONDS
    again = stage.begin(process.put_writes("1", [("x", "stored")]))
    again.until(lambda call: call.method == "update_item" and "SET #created" in str(call.params))
    stage.run(stage.process().delete_thread())
    again.finish()
    stage.run(process.put("1", {}))
    assert stage.process().pending("1") == [("task", "x", "stored")]


def test_what_a_task_has_lives_as_long_as_what_is_added() -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put("1", {}))
    stage.run(process.put_writes("1", [("x", BIG)]))
    stage.now += 1.5 * TTL_SECONDS
    stage.run(process.put_writes("1", [("__error__", "late")]))
    [writes] = stage.items("C#1#W#").values()
    assert items.number(writes, TTL_ATTRIBUTE) == int(stage.now) + 2 * TTL_SECONDS
    segments = {items.number(each, TTL_ATTRIBUTE) for each in stage.items("S#").values()}
    assert segments == {int(stage.now) + 3 * TTL_SECONDS}


def test_writes_reuse_nothing_that_went_while_their_process_knew_nothing_of_it() -> None:
    """It remembers checkpoint and thread as they were; another process has deleted both, and stored them again."""
    stage = Stage()
    process, other = stage.process(), stage.process()
    stage.run(process.put("1", {"big": BIG}))
    stage.run(other.delete_thread())
    stage.run(other.put("1", {"big": BIG}))
    stage.run(process.put_writes("1", [("big", BIG)]))
    assert stage.process().pending("1") == [("task", "big", BIG)]


@pytest.mark.parametrize("has_begun_again", [False, True])
def test_writes_that_a_deletion_may_be_about_to_tear_are_stored_again(*, has_begun_again: bool) -> None:
    """Their process stood still before it named its segments, which a deletion had read as named by nobody."""
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 0}))
    dying = stage.begin(stage.process().put_writes("1", [("x", BIG)]))
    dying.until(updates("C#1#W#"))
    deletion = stage.begin(stage.process().delete_thread())
    deletion.until(deletes("S#"))
    if has_begun_again:
        stage.run(stage.process().put("1", {"x": 0}))
    dying.perform()
    stage.run(stage.process().put_writes("1", [("x", BIG)]))
    deletion.finish()
    stage.run(stage.process().put("1", {"x": 0}))
    assert stage.process().pending("1") == [("task", "x", BIG)]


def test_writes_that_are_there_already_are_stored_again_where_the_thread_is_deleted_meanwhile() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 0}))
    stage.run(stage.process().put_writes("1", [("x", BIG)]))
    again = stage.begin(stage.process().put_writes("1", [("x", BIG)]))
    again.until(confirms)
    stage.run(stage.process().delete_thread())
    again.finish()
    stage.run(stage.process().put("1", {"x": 0}))
    assert stage.process().pending("1") == [("task", "x", BIG)]


def test_regular_writes_that_lost_their_segments_are_stored_again() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 0}))
    dying = stage.begin(stage.process().put_writes("1", [("x", BIG)]))
    dying.until(updates("C#1#W#"))
    stage.run(stage.process().delete_thread())
    dying.perform()
    stage.run(stage.process().put("1", {"x": 0}))
    stage.run(stage.process().put_writes("1", [("x", BIG), ("y", 1)]))
    assert stage.process().pending("1") == [("task", "x", BIG), ("task", "y", 1)]


def test_small_writes_need_no_epoch() -> None:
    """They are whole in their item, and so count whatever the thread's epoch is."""
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 0}))
    stage.run(process.put_writes("1", [("x", 1)]))
    [writes] = stage.items("C#1#W#").values()
    assert not writes.keys() & set(items.EPOCHS)


def test_writes_of_two_processes_in_the_place_of_what_has_expired_are_both_stored() -> None:
    stage = Stage()
    stage.run(stage.process(TTL_SECONDS).put_writes("1", [("x", BIG)]))
    stage.now += 4 * TTL_SECONDS
    stage.run(stage.process(TTL_SECONDS).put("1", {"x": 0}))
    calls = [
        stage.begin(stage.process(TTL_SECONDS).put_writes("1", [(channel, channel)]))
        for channel in ("x", "__error__")
    ]
    for call in calls:
        call.until(lambda each: each.method == "put_item")
    for call in calls:
        call.finish()
    assert sorted(stage.process().pending("1")) == [("task", "__error__", "__error__"), ("task", "x", "x")]


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
    stage = Stage()
    at: Any = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", **config}}
    with pytest.raises(CheckpointerInputError, match=message):
        stage.run(put_writes(stage.process().table, CODEC, at, [("x", 1)], *arguments))
    assert stage.model.items() == []


def test_a_write_that_cannot_be_serialized_is_named() -> None:
    stage = Stage()
    codec = Codec(JsonPlusSerializer(pickle_fallback=False))
    at = thread_config(THREAD, "", "1")
    with pytest.raises(CheckpointSerializationError, match=r"^the write to channel 'x' cannot be serialized"):
        stage.run(put_writes(stage.process().table, codec, at, [("x", object())], "task", ""))
    assert stage.model.items() == []


@pytest.mark.parametrize("size", [10, 100_000])
def test_encrypted_writes_are_bound_to_what_they_are(size: int) -> None:
    stage = Stage()
    table = stage.process().table
    checkpoint = checkpoint_of("1", {"x": noise(size)})
    stage.run(put(table, ENCRYPTED, thread_config(THREAD), checkpoint, {}, {"x": 1}))
    at, writes = thread_config(THREAD, "", "1"), [("x", noise(size)), ("__error__", noise(size, 1))]
    stage.run(put_writes(table, ENCRYPTED, at, writes, "task", "path"))
    found = stage.run(get_tuple(stage.process().table, ENCRYPTED, at))
    assert found is not None
    assert sorted(found.pending_writes or []) == sorted(("task", *each) for each in writes)
    [item] = stage.items("C#1#W#").values()
    special = items.SPECIAL_WRITES[WRITES_IDX_MAP["__error__"]]
    stage.change(item, **{items.WRITES: item[special], special: item[items.WRITES]})
    with pytest.raises(CheckpointCorruptionError):
        stage.run(get_tuple(stage.process().table, ENCRYPTED, at))
