"""Parts of a task's writes are stored after what they name, and never in place of writes that they do not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.content import Write, pack_writes
from langgraph.checkpoint.dynamodb._format.limits import ORPHAN_SECONDS, WRITES_BYTES_MAX
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from langgraph.checkpoint.dynamodb._operations.commit_writes import TaskWrites, commit_writes
from langgraph.checkpoint.dynamodb._operations.item_builder import (
    ItemBuilder,
    SegmentRefs,
)
from langgraph.checkpoint.dynamodb._operations.threads import find_epoch
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from tests.support.checkpoints import noise
from tests.support.harness import THREAD, Harness, Process, confirms, deletes, updates

TTL_SECONDS = 1000
# More than an item of writes holds itself.
BIG = noise(100_000)


def _composed(process: Process, data: bytes, *, namespace: str = "") -> TaskWrites:
    """Compose one regular write, whose segments are all new."""
    partition = items.partition_of(THREAD, namespace)
    sk = items.writes_sk("1", "task")
    builder = ItemBuilder(process.storage, partition, items.key(partition.pk, sk), None)
    group = pack_writes([Write(0, "x", "bytes", data, "")])
    return TaskWrites(
        partition, sk, {items.WRITES: builder.part(items.WRITES, group, WRITES_BYTES_MAX)}, builder
    )


def _kind(call: Call) -> str:
    """Return the kind of item that a request stores, updates or reads."""
    key = call.params.get("Key") or call.params.get("Item")
    if key is None:
        [key] = {request["PutRequest"]["Item"]["SK"]["S"][:2] for request in _batch(call)}
        return f"{call.method} {key}"
    sk = key["SK"]["S"]
    return f"{call.method} {'W#' if '#W#' in sk else sk[:2]}"


def _batch(call: Call) -> list[dict[str, dict[str, items.Item]]]:
    [requests] = call.params["RequestItems"].values()
    return list(requests)


def test_parts_come_after_what_they_name_and_before_the_look_at_the_thread() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}, namespace="inner"))
    other = harness.process()
    thread = harness.run(find_epoch(other.storage, items.partition_of(THREAD, "inner")))
    calls = harness.begin(
        commit_writes(other.storage, _composed(other, BIG, namespace="inner"), thread)
    ).trace()
    kinds = list(dict.fromkeys(map(_kind, calls)))
    marker = kinds.pop(0)
    assert marker.endswith(" N#")
    assert kinds == ["batch_write_item S#", "update_item W#", "get_item T"]


def test_parts_that_name_nothing_are_one_request() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    thread = harness.run(find_epoch(process.storage, items.partition_of(THREAD)))
    commit = harness.begin(commit_writes(process.storage, _composed(process, b"small"), thread))
    assert [_kind(each) for each in commit.trace()] == ["update_item W#"]
    assert commit.finish().stored


@pytest.mark.parametrize("data", [b"small", BIG], ids=["inline", "in segments"])
def test_writes_that_are_there_are_returned_with_what_they_name_and_kept(data: bytes) -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    assert harness.run(commit_writes(process.storage, _composed(process, data), None)).stored
    [stored] = harness.items("C#1#W#").values()
    other = harness.process()
    outcome = harness.run(commit_writes(other.storage, _composed(other, b"another"), None))
    assert not outcome.stored
    assert outcome.found is not None
    assert outcome.found.item == stored
    assert (outcome.found.is_gone, outcome.found.is_safe) == (False, True)
    assert outcome.found.contents is not None
    assert outcome.found.contents.keys() == items.named_ids([stored])
    assert list(harness.items("C#1#W#").values()) == [stored]


def test_of_two_that_replace_what_has_expired_the_second_finds_the_first() -> None:
    harness = Harness()
    process = harness.process(TTL_SECONDS)
    harness.run(process.put_writes("1", [("__resume__", "expired")]))
    [old] = harness.items("C#1#W#").values()
    harness.now += 3 * TTL_SECONDS
    harness.run(process.put("1", {}))

    def replacing(data: bytes) -> TaskWrites:
        return replace(_composed(process, data), old=old, replaces=True)

    assert harness.run(commit_writes(process.storage, replacing(b"first"), None)).stored
    [first] = harness.items("C#1#W#").values()
    assert not first.keys() & set(items.SPECIAL_WRITES.values())
    outcome = harness.run(commit_writes(process.storage, replacing(b"second"), None))
    assert outcome.found is not None
    assert outcome.found.item == first
    assert list(harness.items("C#1#W#").values()) == [first]


def test_a_call_that_adds_nothing_finds_an_item_that_was_deleted() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", 1)]))
    [old] = harness.items("C#1#W#").values()
    partition, sk = items.partition_of(THREAD), items.writes_sk("1", "task")
    nothing = TaskWrites(partition, sk, {}, SegmentRefs(), old=old)
    assert harness.run(commit_writes(process.storage, nothing, None)).stored
    harness.now += ORPHAN_SECONDS
    harness.remove(old)
    outcome = harness.run(commit_writes(process.storage, nothing, None))
    assert not outcome.stored
    assert outcome.found is not None
    assert outcome.found.is_gone
    assert harness.items("C#1#W#") == {}


# Calls of `put_writes` that depend on it


def test_a_tasks_item_does_not_outlive_its_segments() -> None:
    """Later calls of the task prolong either both or none."""
    harness = Harness()
    process = harness.process(TTL_SECONDS)
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", BIG)]))
    for answer in ("first", "second"):
        harness.now += 0.9 * TTL_SECONDS
        harness.run(process.put_writes("1", [("__resume__", answer)]))
    harness.now += 0.6 * TTL_SECONDS
    harness.run(process.put("1", {}))
    harness.now += 0.8 * TTL_SECONDS
    harness.model.expire()
    assert harness.process().pending("1") == [("task", "__resume__", "second"), ("task", "x", BIG)]


@pytest.mark.parametrize("before", [5 * TTL_SECONDS, TTL_SECONDS + 1])
@pytest.mark.parametrize("again", [("x", BIG), ("__resume__", BIG)])
def test_writes_left_behind_by_a_thread_with_a_longer_ttl_do_not_outlive_new_segments(
    before: int, again: tuple[str, bytes]
) -> None:
    """Its deletion has passed when they arrive, and the thread then begins anew with another ttl."""
    harness = Harness()
    process = harness.process(before)
    harness.run(process.put("1", {}))
    late = harness.begin(process.put_writes("1", [("__error__", "old")]))
    (request,) = late.until(lambda call: call.method == "update_item")
    harness.run(harness.process().delete_thread())
    harness.perform(request)
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [again]))
    for _ in range(3):
        harness.run(harness.process(TTL_SECONDS).put("1", {}))
        harness.process().pending("1")
        harness.now += 0.9 * TTL_SECONDS
        harness.model.expire()
    harness.now += TTL_SECONDS
    harness.model.expire()
    harness.run(harness.process(TTL_SECONDS).put("1", {}))
    assert harness.process().pending("1") == []


@pytest.mark.parametrize("value", ["no", BIG])
def test_a_special_write_that_arrives_late_does_not_take_the_place_of_a_newer_one(value: object) -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": 0}))
    late = harness.begin(process.put_writes("1", [("__resume__", value)]))
    (request,) = late.until(lambda call: call.method == "update_item")
    harness.run(harness.process().put_writes("1", [("__resume__", "yes")]))
    harness.perform(request)
    assert harness.process().pending("1") == [("task", "__resume__", "yes")]


@pytest.mark.parametrize("again", [False, True])
def test_writes_that_are_there_already_are_in_a_namespace_that_a_deletion_finds(again: bool) -> None:
    """A deletion empties the namespace while a call stores its writes in it, or makes sure that they are there."""
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": 0}, namespace="inner"))
    writes = harness.begin(process.put_writes("1", [("x", 1)], namespace="inner"))
    if again:
        writes.finish()
        writes = harness.begin(process.put_writes("1", [("x", 1)], namespace="inner"))
    stored = writes.until(lambda call: call.method == "update_item")
    harness.run(harness.process().delete_thread())
    harness.perform(stored[0])
    writes.finish()
    harness.run(harness.process().delete_thread())
    assert harness.model.items() == []


@pytest.mark.parametrize("removed", [False, True])
def test_writes_of_a_task_whose_item_has_expired_take_its_place(removed: bool) -> None:
    """They came before the checkpoint, which is put late; of the item's segments some have gone already."""
    harness = Harness()
    process = harness.process(TTL_SECONDS)
    harness.run(process.put_writes("1", [("x", BIG), ("__error__", "old")]))
    harness.now += 4 * TTL_SECONDS
    expired = harness.model.expired()
    harness.model.expire(
        expired if removed else [each for each in expired if each["SK"]["S"].startswith("S#")]
    )
    harness.run(process.put("1", {"x": 0}))
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [("x", BIG), ("__resume__", "new")]))
    assert sorted(harness.process().pending("1")) == [("task", "__resume__", "new"), ("task", "x", BIG)]
    [writes] = [each for sk, each in harness.items("C#").items() if "#W#" in sk]
    assert items.expires_at(writes) == harness.now + 2 * TTL_SECONDS


def test_writes_that_are_stored_again_do_not_pass_for_abandoned() -> None:
    """They come before their checkpoint; that they were repeated says that it is still on its way."""
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("2", [("x", BIG)]))
    harness.now += ORPHAN_SECONDS - 100
    harness.run(process.put_writes("2", [("x", BIG)]))
    harness.now += 200
    harness.run(harness.process().prune())
    harness.run(process.put("2", {}, "1"))
    assert harness.process().pending("2") == [("task", "x", BIG)]


def test_writes_that_are_stored_again_while_they_are_deleted_are_there() -> None:
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", "stored")]))
    harness.now += ORPHAN_SECONDS
    again = harness.begin(process.put_writes("1", [("x", "stored")]))
    again.until(lambda call: call.method == "update_item" and "SET #created" in str(call.params))
    harness.run(harness.process().delete_thread())
    again.finish()
    harness.run(process.put("1", {}))
    assert harness.process().pending("1") == [("task", "x", "stored")]


def test_what_a_task_has_lives_as_long_as_what_is_added() -> None:
    harness = Harness()
    process = harness.process(TTL_SECONDS)
    harness.run(process.put("1", {}))
    harness.run(process.put_writes("1", [("x", BIG)]))
    harness.now += 1.5 * TTL_SECONDS
    harness.run(process.put_writes("1", [("__error__", "late")]))
    [writes] = harness.items("C#1#W#").values()
    assert items.number(writes, TTL_ATTRIBUTE) == int(harness.now) + 2 * TTL_SECONDS
    segments = {items.number(each, TTL_ATTRIBUTE) for each in harness.items("S#").values()}
    assert segments == {int(harness.now) + 3 * TTL_SECONDS}


@pytest.mark.parametrize("has_begun_again", [False, True])
def test_writes_that_a_deletion_may_be_about_to_tear_are_stored_again(*, has_begun_again: bool) -> None:
    """Their process stood still before it named its segments, which a deletion had read as named by nobody."""
    harness = Harness()
    harness.run(harness.process().put("1", {"x": 0}))
    dying = harness.begin(harness.process().put_writes("1", [("x", BIG)]))
    dying.until(updates("C#1#W#"))
    deletion = harness.begin(harness.process().delete_thread())
    deletion.until(deletes("S#"))
    if has_begun_again:
        harness.run(harness.process().put("1", {"x": 0}))
    dying.perform()
    harness.run(harness.process().put_writes("1", [("x", BIG)]))
    deletion.finish()
    harness.run(harness.process().put("1", {"x": 0}))
    assert harness.process().pending("1") == [("task", "x", BIG)]


def test_writes_that_are_there_already_are_stored_again_where_the_thread_is_deleted_meanwhile() -> None:
    harness = Harness()
    harness.run(harness.process().put("1", {"x": 0}))
    harness.run(harness.process().put_writes("1", [("x", BIG)]))
    again = harness.begin(harness.process().put_writes("1", [("x", BIG)]))
    again.until(confirms)
    harness.run(harness.process().delete_thread())
    again.finish()
    harness.run(harness.process().put("1", {"x": 0}))
    assert harness.process().pending("1") == [("task", "x", BIG)]


def test_regular_writes_that_lost_their_segments_are_stored_again() -> None:
    harness = Harness()
    harness.run(harness.process().put("1", {"x": 0}))
    dying = harness.begin(harness.process().put_writes("1", [("x", BIG)]))
    dying.until(updates("C#1#W#"))
    harness.run(harness.process().delete_thread())
    dying.perform()
    harness.run(harness.process().put("1", {"x": 0}))
    harness.run(harness.process().put_writes("1", [("x", BIG), ("y", 1)]))
    assert harness.process().pending("1") == [("task", "x", BIG), ("task", "y", 1)]


def test_small_writes_need_no_epoch() -> None:
    """They are whole in their item, and so count whatever the thread's epoch is."""
    harness = Harness()
    process = harness.process()
    harness.run(process.put("1", {"x": 0}))
    harness.run(process.put_writes("1", [("x", 1)]))
    [writes] = harness.items("C#1#W#").values()
    assert not writes.keys() & set(items.EPOCHS)


def test_writes_of_two_processes_in_the_place_of_what_has_expired_are_both_stored() -> None:
    harness = Harness()
    harness.run(harness.process(TTL_SECONDS).put_writes("1", [("x", BIG)]))
    harness.now += 4 * TTL_SECONDS
    harness.run(harness.process(TTL_SECONDS).put("1", {"x": 0}))
    calls = [
        harness.begin(harness.process(TTL_SECONDS).put_writes("1", [(channel, channel)]))
        for channel in ("x", "__error__")
    ]
    for call in calls:
        call.until(lambda each: each.method == "put_item")
    for call in calls:
        call.finish()
    assert sorted(harness.process().pending("1")) == [("task", "__error__", "__error__"), ("task", "x", "x")]
