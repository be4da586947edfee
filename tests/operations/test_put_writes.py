"""`put_writes` meets deletions and expiries, and calls of one task meet each other."""

from typing import Any

import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb import CheckpointCorruptionError, CheckpointSerializationError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.codec import Codec
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS, PUT_WAIT_SECONDS_MAX
from langgraph.checkpoint.dynamodb._operations.copy import copy_thread
from langgraph.checkpoint.dynamodb._operations.put_writes import LaterWritesError, put_writes
from langgraph.checkpoint.dynamodb._runtime.steps import Op, Wait
from tests.support.checkpoints import noise, thread_config
from tests.support.harness import (
    ENCRYPTED,
    THREAD,
    TTL_SECONDS,
    Harness,
    Process,
    asks,
    commits,
    deletes,
    updates,
)

# More than an item of writes holds itself.
BIG = noise(100_000)


def test_a_call_without_writes_makes_no_request(harness: Harness) -> None:
    assert harness.begin(harness.process().put_writes("1", [])).trace() == []


def test_within_a_call_the_last_write_to_a_special_channel_wins(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("__error__", "first"), ("x", 1), ("__error__", "last")]))
    assert sorted(harness.process().pending("1")) == [("task", "__error__", "last"), ("task", "x", 1)]


def test_a_later_call_adds_what_the_task_lacks_and_no_more(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", "first")]))
    harness.run(process.put_writes("1", [("x", "second"), ("y", "second"), ("__error__", "second")]))
    harness.run(process.put_writes("1", [("x", "third"), ("__error__", "third")]))
    assert sorted(harness.process().pending("1")) == [
        ("task", "__error__", "third"),
        ("task", "x", "first"),
        ("task", "y", "second"),
    ]


def test_writes_reuse_nothing_that_is_remembered_under_another_epoch(harness: Harness) -> None:
    """The thread was deleted, and another process stored the checkpoint again, with segments of its own."""
    process, other = harness.process(), harness.process()
    harness.run(process.put("1", {"big": BIG}))
    harness.run(other.delete_thread())
    harness.run(other.put("1", {"big": BIG}))
    # By this the process gets to know the thread's new epoch, and nothing else.
    harness.run(process.put_writes("1", [("__error__", BIG)], "another task"))
    harness.run(process.put_writes("1", [("big", BIG)]))
    assert harness.process().pending("1") == [("another task", "__error__", BIG), ("task", "big", BIG)]


def test_writes_that_find_a_segment_gone_store_the_value_again(harness: Harness, aged: Process) -> None:
    """A process stands still before it extends what it reuses, and finds it gone."""
    writes = harness.begin(aged.put_writes("3", [("big", BIG)])).until(updates("S#"))
    for segment in harness.items("S#").values():
        harness.remove(segment)
    writes.finish()
    harness.run(aged.put("3", {}))
    assert harness.process().pending("3") == [("task", "big", BIG)]


def test_a_special_write_does_not_vouch_for_regular_ones_that_were_not_acknowledged(harness: Harness) -> None:
    """The regular ones lost their segments to a deletion, and their process died before it looked."""
    process, other = harness.process(), harness.process()
    harness.run(process.put("1", {"x": 0}))
    dying = harness.begin(process.put_writes("1", [("x", BIG)])).until(asks("update_item"))
    harness.run(other.delete_thread())
    dying.go_on()
    harness.run(other.put("1", {"x": 0}))
    harness.run(other.put_writes("1", [("__resume__", BIG)]))
    assert harness.process().pending("1") == [("task", "__resume__", BIG)]


def test_a_special_write_by_a_slow_clock_is_the_newest(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 0}))
    harness.run(process.put_writes("1", [("__resume__", "no"), ("x", 1)]))
    [before] = harness.items("C#1#W#").values()
    harness.now -= 300
    harness.run(harness.process().put_writes("1", [("__resume__", "yes"), ("x", 1)]))
    [after] = harness.items("C#1#W#").values()
    assert items.number(after, items.ORDER) == (items.number(before, items.ORDER) or 0) + 1
    assert harness.process().pending("1") == [("task", "__resume__", "yes"), ("task", "x", 1)]


def test_a_call_that_was_given_up_replaces_no_later_writes(harness: Harness, process: Process) -> None:
    """A gateway may carry out a request late: the client has made it again, and gone on."""
    harness.run(process.put("1", {"x": 0}))
    at = thread_config(THREAD, "", "1")
    given = [("__resume__", "first"), ("x", 1)]
    for _ in range(2):
        harness.run(put_writes(process.storage, at, given, "task", "", 10))
    harness.run(put_writes(process.storage, at, [("__resume__", "second")], "task", "", 20))
    for order in (10, 20):
        with pytest.raises(LaterWritesError) as caught:
            harness.run(put_writes(harness.process().storage, at, given, "task", "", order))
        assert caught.value.order == 20
    assert harness.process().pending("1") == [("task", "__resume__", "second"), ("task", "x", 1)]


def test_a_special_write_whose_answer_was_lost_is_stored_once(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 0}))
    call = harness.begin(process.put_writes("1", [("__resume__", "yes")])).until(asks("update_item"))
    call.perform()
    call.go_on()
    assert all(each.method == "get_item" for each in call.trace())


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (("x", object()), "the write to channel 'x' cannot be serialized"),
        (("bad \ud800", 1), "a channel name or task path is not valid Unicode"),
    ],
)
def test_a_write_that_cannot_be_serialized_is_named(
    harness: Harness, write: tuple[str, Any], named: str
) -> None:
    codec = Codec(JsonPlusSerializer(pickle_fallback=False))
    with pytest.raises(CheckpointSerializationError, match=f"^{named}"):
        harness.run(harness.process(codec=codec).put_writes("1", [write]))
    assert harness.model.items() == []


@pytest.mark.parametrize("size", [10, 100_000])
def test_encrypted_writes_are_bound_to_what_they_are(harness: Harness, size: int) -> None:
    process = harness.process(codec=ENCRYPTED)
    harness.run(process.put("1", {"x": noise(size)}))
    writes = [("x", noise(size)), ("__error__", noise(size, 1))]
    harness.run(process.put_writes("1", writes))
    found = harness.process(codec=ENCRYPTED).pending("1")
    assert sorted(found) == sorted(("task", *each) for each in writes)
    [item] = harness.items("C#1#W#").values()
    special = items.SPECIAL_WRITES[WRITES_IDX_MAP["__error__"]]
    harness.change(item, **{items.WRITES: item[special], special: item[items.WRITES]})
    with pytest.raises(CheckpointCorruptionError):
        harness.process(codec=ENCRYPTED).get("1")


def _stored(harness: Harness) -> int:
    return len(harness.items("S#"))


@pytest.mark.parametrize("namespace", ["", "inner"])
def test_writes_name_what_a_put_is_about_to_store(harness: Harness, process: Process, namespace: str) -> None:
    put = harness.begin(process.put("1", {"big": BIG}, namespace=namespace)).until(commits("1"))
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


@pytest.mark.parametrize("namespace", ["", "inner"])
def test_puts_that_never_end_are_waited_for_once(harness: Harness, process: Process, namespace: str) -> None:
    """Their event loops were stopped and kept."""
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


def test_writes_that_must_not_wait_ask_for_it_once(harness: Harness, process: Process) -> None:
    """A blocking call on a thread that runs an event loop: what it would wait for may need the loop."""
    put = harness.begin(process.put("1", {"big": BIG}))
    put.until(commits("1"))
    writes = harness.begin(process.put_writes("1", [("big", BIG)]))
    writes.go_on()
    assert [type(step) for step in writes.round] == [Wait]
    writes.go_on([None])
    writes.until(updates("C#1#W"))
    assert harness.now == 1_700_000_000.0


def test_writes_before_their_put_name_what_the_last_one_has(harness: Harness, process: Process) -> None:
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


def test_small_writes_wait_for_no_put(harness: Harness, process: Process) -> None:
    put = harness.begin(process.put("1", {"big": BIG}))
    put.until(commits("1"))
    harness.begin(process.put_writes("1", [("x", 1)])).until(updates("C#1#W"))
    assert harness.now == 1_700_000_000.0


def test_a_tasks_item_does_not_outlive_its_segments(harness: Harness, expiring: Process) -> None:
    """Later calls of the task prolong either both or none."""
    harness.run(expiring.put("1", {}))
    harness.run(expiring.put_writes("1", [("x", BIG)]))
    for answer in ("first", "second"):
        harness.now += 0.9 * TTL_SECONDS
        harness.run(expiring.put_writes("1", [("__resume__", answer)]))
    harness.now += 0.6 * TTL_SECONDS
    harness.run(expiring.put("1", {}))
    harness.now += 0.8 * TTL_SECONDS
    harness.model.expire()
    assert harness.process().pending("1") == [("task", "__resume__", "second"), ("task", "x", BIG)]


@pytest.mark.parametrize("before", [5 * TTL_SECONDS, TTL_SECONDS + 1])
@pytest.mark.parametrize("again", [("x", BIG), ("__resume__", BIG)])
def test_writes_left_behind_by_a_thread_with_a_longer_ttl_do_not_outlive_new_segments(
    harness: Harness, before: int, again: tuple[str, bytes]
) -> None:
    """Its deletion has passed when they arrive, and the thread then begins anew with another ttl."""
    process = harness.process(before)
    harness.run(process.put("1", {}))
    late = harness.begin(process.put_writes("1", [("__error__", "old")]))
    (request,) = late.until(asks("update_item")).calls
    harness.run(harness.process().delete_thread())
    harness.perform(request)
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [again]))
    for _ in range(3):
        harness.run(harness.process(TTL_SECONDS).put("1", {}))
        harness.process().pending("1")
        harness.now += 0.9 * TTL_SECONDS
        harness.model.expire()
    harness.now += 3.1 * TTL_SECONDS
    harness.model.expire()
    harness.run(harness.process(TTL_SECONDS).put("1", {}))
    assert harness.process().pending("1") == []


@pytest.mark.parametrize("again", [False, True])
def test_a_deletion_finds_writes_made_meanwhile(harness: Harness, process: Process, again: bool) -> None:
    """A deletion empties the namespace while a call stores its writes in it, or makes sure that they are there."""
    harness.run(process.put("1", {"x": 0}, namespace="inner"))
    writes = harness.begin(process.put_writes("1", [("x", 1)], namespace="inner"))
    if again:
        writes.finish()
        writes = harness.begin(process.put_writes("1", [("x", 1)], namespace="inner"))
    stored = writes.until(asks("update_item")).calls
    harness.run(harness.process().delete_thread())
    harness.perform(stored[0])
    writes.finish()
    harness.run(harness.process().delete_thread())
    assert harness.model.items() == []


def test_writes_stored_again_while_they_are_deleted_are_there(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", "stored")]))
    harness.now += ORPHAN_SECONDS
    again = harness.begin(process.put_writes("1", [("x", "stored")]))
    again.until(asks("update_item", word="SET #created"))
    harness.run(harness.process().delete_thread())
    again.finish()
    harness.run(process.put("1", {}))
    assert harness.process().pending("1") == [("task", "x", "stored")]


@pytest.mark.parametrize(
    "deletion_has", ["come to segments", "come to segments, and a put has begun anew", "ended"]
)
def test_writes_that_a_deletion_may_tear_are_stored_again(harness: Harness, deletion_has: str) -> None:
    """Their process stood still before it named its segments, which a deletion had read as named by nobody."""
    harness.run(harness.process().put("1", {"x": 0}))
    dying = harness.begin(harness.process().put_writes("1", [("x", BIG)])).until(updates("C#1#W#"))
    deletion = harness.begin(harness.process().delete_thread()).until(deletes("S#"))
    if deletion_has == "ended":
        deletion.finish()
    if deletion_has != "come to segments":
        harness.run(harness.process().put("1", {"x": 0}))
    dying.perform()
    harness.run(harness.process().put_writes("1", [("x", BIG), ("y", 1)]))
    deletion.finish()
    harness.run(harness.process().put("1", {"x": 0}))
    assert harness.process().pending("1") == [("task", "x", BIG), ("task", "y", 1)]


def test_small_writes_need_no_epoch(harness: Harness, process: Process) -> None:
    """They are whole in their item, and so count whatever the thread's epoch is."""
    harness.run(process.put("1", {"x": 0}))
    harness.run(process.put_writes("1", [("x", 1)]))
    [writes] = harness.items("C#1#W#").values()
    assert not writes.keys() & set(items.EPOCHS)


def test_writes_of_two_processes_in_the_place_of_what_has_expired_are_both_stored(harness: Harness) -> None:
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [("x", BIG)]))
    harness.now += 4 * TTL_SECONDS
    harness.run(harness.process(TTL_SECONDS).put("1", {"x": 0}))
    calls = [
        harness.begin(harness.process(TTL_SECONDS).put_writes("1", [(channel, channel)]))
        for channel in ("x", "__error__")
    ]
    for call in calls:
        call.until(asks("put_item"))
    for call in calls:
        call.finish()
    assert sorted(harness.process().pending("1")) == [("task", "__error__", "__error__"), ("task", "x", "x")]


@pytest.mark.parametrize("ttl_seconds", [TTL_SECONDS, TTL_SECONDS // 2, None])
@pytest.mark.parametrize("task_id", ["old", "new"])
@pytest.mark.parametrize("comes_first", ["put", "writes"])
@pytest.mark.parametrize("value", [1, BIG], ids=["small", "large"])
def test_a_checkpoint_put_again_in_a_new_life_has_no_writes_of_the_former(
    harness: Harness, value: object, comes_first: str, task_id: str, ttl_seconds: int | None
) -> None:
    """An import into a thread that has died puts the same ids again."""
    harness.run(harness.process(TTL_SECONDS).put("1", {}))
    old = [("x", value), ("y", value)]
    harness.run(harness.process(TTL_SECONDS).put_writes("1", old, task_id="old"))
    harness.now += TTL_SECONDS
    process = harness.process(ttl_seconds)
    harness.run(process.put("0", {}))
    calls: list[Op[Any]] = [process.put("1", {}, "0"), process.put_writes("1", [("x", 2)], task_id=task_id)]
    for call in calls if comes_first == "put" else reversed(calls):
        harness.run(call)
    assert harness.process().pending("1") == [(task_id, "x", 2)]


@pytest.mark.parametrize(("before", "since"), [(None, TTL_SECONDS), (TTL_SECONDS, None), (10, TTL_SECONDS)])
def test_writes_expire_with_their_checkpoint_where_the_thread_was_replaced_by_a_copy(
    harness: Harness, before: int | None, since: int | None
) -> None:
    """The process remembers the thread with another ttl. It has read the checkpoint since."""
    process, other = harness.process(before), harness.process(since)
    harness.run(process.put("1", {"x": 1}))
    harness.run(other.copy_thread("copy"))
    harness.run(other.delete_thread())
    harness.run(copy_thread(other.storage, "copy", THREAD))
    assert process.values() == {"x": 1}
    harness.run(process.put_writes("1", [("x", 2)]))
    head, writes = harness.items("C#").values()
    assert items.expires_at(writes) == items.expires_at(head)
