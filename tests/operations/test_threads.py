"""The thread item: claims that keep deletions apart, and renewals that make nothing."""

from __future__ import annotations

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items
from langgraph.checkpoint.dynamodb._format.limits import BACKOFF_SECONDS_TOTAL, CLAIM_SECONDS, ORPHAN_SECONDS
from langgraph.checkpoint.dynamodb._format.schema import TTL_ATTRIBUTE
from tests.support.checkpoints import noise
from tests.support.stage import Stage, changes_thread, confirms, deletes, removes_thread

TTL_SECONDS = 1000
# More than an item of writes holds itself.
BIG = noise(100_000)


@pytest.mark.parametrize("deletion", ["prune", "delete_thread"])
@pytest.mark.parametrize("stands_still_before", ["#pending", "#claim = :claim"])
def test_a_deletion_that_lost_its_claim_does_not_release_another_ones(
    deletion: str, stands_still_before: str
) -> None:
    """The first stands still past its claim, before the epoch ends or at its end; the second takes over."""
    stage = Stage()
    process = stage.process()
    for checkpoint_id in ("1", "2"):
        stage.run(process.put(checkpoint_id, {"big": BIG}))
    first = stage.begin(getattr(stage.process(), deletion)())
    first.until(changes_thread("SET #epoch = :new"))
    if stands_still_before != "#pending":
        first.go_on()
        first.until(changes_thread("REMOVE #claim") if deletion == "prune" else removes_thread)
    stage.now += CLAIM_SECONDS + 1
    second = stage.begin(stage.process().prune())
    second.until(lambda call: call.method == "query")
    if stands_still_before == "#pending":
        with pytest.raises(ThreadBusyError, match="another deletion took over"):
            first.finish()
    else:
        first.finish()
    with pytest.raises(ThreadBusyError, match="is being deleted or pruned by another call"):
        stage.run(stage.process().delete_thread())
    second.finish()


def test_a_confirmation_does_not_make_a_thread_item_that_has_gone() -> None:
    """A process finds its epoch in a thread that expires soon, and the thread is deleted before it is extended."""
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    stage.run(process.put("1", {}))
    stage.now += 1.5 * TTL_SECONDS
    put = stage.begin(process.put("2", {}, "1"))
    put.until(confirms)
    put.go_on()
    stage.run(stage.process().delete_thread())
    put.finish()
    assert items.EPOCH in stage.items("T")["T"]
    assert stage.process().values() == {}


def test_an_epoch_that_has_begun_does_not_become_idle_again() -> None:
    """The request that ended a thread's epoch arrives twice, the second time after a put was acknowledged."""
    stage = Stage()
    stage.run(stage.process().put("1", {"big": BIG}))
    deletion = stage.begin(stage.process().delete_thread())
    (end,) = deletion.until(changes_thread("SET #epoch = :new"))
    deletion.until(removes_thread)
    stage.run(stage.process().put("2", {"big": BIG}))
    stage.perform(end)
    deletion.finish()
    epochs = [item["epoch"] for item in (*stage.items("C#").values(), *stage.items("T").values())]
    assert len(epochs) == 2
    assert epochs[0] == epochs[1]


def test_whoever_takes_a_threads_epoch_leaves_it_as_it_is() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {}))
    before = stage.items("T")
    stage.run(stage.process().put("2", {}))
    assert stage.items("T") == before


def test_a_namespace_that_was_entered_again_keeps_its_entry() -> None:
    """A deletion saw that nothing was left of it, and somebody stores in it before the entry goes."""
    stage = Stage()
    stage.run(stage.process().put("1", {}, namespace="inner"))
    deletion = stage.begin(stage.process().delete_thread())
    deletion.until(lambda call: call.method == "delete_item" and "N#inner" in str(call.params["Key"]))
    stage.run(stage.process().put("2", {"big": BIG}, namespace="inner"))
    deletion.finish()
    assert stage.process().values(namespace="inner") == {"big": BIG}
    stage.run(stage.process().delete_thread())
    assert stage.model.items() == []


@pytest.mark.parametrize("ttl_seconds", [None, TTL_SECONDS])
def test_a_process_enters_a_namespace_once_and_again_before_its_entry_expires(
    ttl_seconds: int | None,
) -> None:
    stage = Stage()
    process = stage.process(ttl_seconds)
    stage.run(process.put("1", {"x": 1}, namespace="inner"))
    entered = stage.items("N#")
    stage.run(process.put("2", {"x": 2}, namespace="inner"))
    assert stage.items("N#") == entered
    stage.now += 1.5 * TTL_SECONDS
    stage.run(process.put("3", {"x": 3}, namespace="inner"))
    [entry] = stage.items("N#").values()
    assert items.number(entry, TTL_ATTRIBUTE) == (ttl_seconds and int(stage.now) + 2 * ttl_seconds)


@pytest.mark.parametrize("tell_when", [True, False])
def test_abandoned_writes_that_somebody_has_written_to_stay(tell_when: bool) -> None:
    """For an hour they had no checkpoint; a deletion takes them, but for those that have changed since it read them.

    Those of the first release do not tell when they were stored.
    """
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {}))
    for task_id in ("left", "taken up"):
        stage.run(process.put_writes("2", [("x", BIG)], task_id))
    if not tell_when:
        for item in stage.items("C#2#W#").values():
            stage.change(item, **{items.CREATED_AT: None})
    stage.now += ORPHAN_SECONDS + 1
    deletion = stage.begin(stage.process().prune())
    deletion.until(lambda call: call.method == "delete_item" and "#W#" in str(call.params["Key"]))
    stage.run(process.put_writes("2", [("__error__", "late")], "taken up"))
    deletion.finish()
    stage.run(process.put("2", {}))
    assert stage.process().pending("2") == [("taken up", "__error__", "late"), ("taken up", "x", BIG)]


@pytest.mark.parametrize("deletion", ["prune", "delete_thread"])
def test_an_operator_without_a_ttl_deletes_a_thread_that_expires_meanwhile(deletion: str) -> None:
    stage = Stage()
    stage.run(stage.process(TTL_SECONDS).put("1", {"big": BIG}))
    stage.now += 2 * TTL_SECONDS - 5
    run = stage.begin(getattr(stage.process(), deletion)())
    run.until(lambda call: call.method == "query")
    stage.now += 10
    stage.model.expire()
    run.finish()
    stage.run(stage.process().delete_thread())
    assert stage.items("T") == stage.items("C#") == {}


def test_a_claim_that_expires_with_its_thread_item_is_taken_again() -> None:
    """DynamoDB removes the item between the claim and what lets the item live for it."""
    stage = Stage()
    stage.run(stage.process(TTL_SECONDS).put("1", {"big": BIG}))
    stage.now += 2 * TTL_SECONDS - 5
    deletion = stage.begin(stage.process().delete_thread())
    deletion.until(lambda call: "SET #expiry" in call.params.get("UpdateExpression", ""))
    stage.now += 10
    stage.model.expire()
    deletion.finish()
    assert stage.items("T") == stage.items("C#") == {}


def test_a_deletion_that_ends_an_epoch_has_its_claim_for_as_long_again() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"big": BIG}))
    first = stage.begin(stage.process().delete_thread())
    first.until(deletes("C#"))
    stage.now += CLAIM_SECONDS - 20
    first.until(changes_thread("SET #epoch = :new"))
    first.go_on()
    stage.now += 30
    with pytest.raises(ThreadBusyError, match="is being deleted or pruned by another call"):
        stage.run(stage.process().prune())
    first.finish()
    assert stage.model.items() == []


def test_a_thread_that_a_deletion_made_an_item_for_has_the_ttl_of_who_stores_in_it() -> None:
    stage = Stage()
    deletion = stage.begin(stage.process().delete_thread())
    deletion.until(removes_thread)
    stage.run(stage.process(TTL_SECONDS).put("1", {}))
    deletion.finish()
    assert stage.items("C#")["C#1#"]["expires_at"] == {"N": str(int(stage.now) + TTL_SECONDS)}


def test_a_deletion_waits_for_another_one_and_then_gives_up() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"big": BIG}))
    first = stage.begin(stage.process().prune())
    first.until(lambda call: call.method == "query")
    begun, second = stage.now, stage.begin(stage.process().prune())
    with pytest.raises(ThreadBusyError, match="is being deleted or pruned by another call, for over 60 s"):
        second.finish()
    assert BACKOFF_SECONDS_TOTAL < stage.now - begun < 2 * BACKOFF_SECONDS_TOTAL


def test_a_deletion_has_its_claim_though_the_thread_item_lives_for_longer_meanwhile() -> None:
    """A put renews it after the claim was made and before the claim's own renewal; nothing is waited for."""
    stage = Stage()
    stage.run(stage.process(TTL_SECONDS).put("1", {"big": BIG}))
    stage.now += 1.5 * TTL_SECONDS
    deletion = stage.begin(stage.process().delete_thread())
    deletion.until(lambda call: "SET #expiry" in call.params.get("UpdateExpression", ""))
    stage.run(stage.process(10 * ORPHAN_SECONDS).put("2", {"big": BIG}))
    now = stage.now
    deletion.finish()
    assert stage.now == now
    assert stage.items("C#") == {}


def test_the_thread_item_outlives_what_is_stored() -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    for step in range(1, 12):
        stage.run(process.put(str(step), {"x": step}, str(step - 1) if step > 1 else None))
        [thread] = stage.items("T").values()
        assert TTL_SECONDS <= (items.expires_at(thread) or 0) - stage.now <= 2 * TTL_SECONDS
        stage.now += 0.7 * TTL_SECONDS
        stage.model.expire()


def test_the_thread_item_outlives_the_writes_that_are_stored_last() -> None:
    stage = Stage()
    process = stage.process(TTL_SECONDS)
    for step in range(5):
        stage.run(process.put_writes("1", [("x", noise(100_000, step))], f"task {step}"))
        [thread] = stage.items("T").values()
        assert (items.number(thread, TTL_ATTRIBUTE) or 0) > stage.now + TTL_SECONDS
        stage.now += 0.7 * TTL_SECONDS
        stage.model.expire()


def test_a_thread_that_was_made_before_threads_kept_their_ttl_has_the_savers() -> None:
    stage = Stage()
    stage.run(stage.process(TTL_SECONDS).put("1", {"x": 1}))
    [thread] = stage.items("T").values()
    stage.change(thread, **{items.TTL_SECONDS: None})
    process = stage.process(TTL_SECONDS)
    for checkpoint_id, parent in (("2", "1"), ("3", "2")):
        stage.run(process.put(checkpoint_id, {"x": 2}, parent))
        head = stage.items("C#")[f"C#{checkpoint_id}#"]
        assert items.number(head, TTL_ATTRIBUTE) == int(stage.now) + TTL_SECONDS


def test_a_thread_that_no_saver_has_given_a_ttl_keeps_none() -> None:
    stage = Stage()
    stage.run(stage.process().put("1", {"x": 1}))
    process = stage.process(TTL_SECONDS)
    for checkpoint_id, parent in (("2", "1"), ("3", "2")):
        stage.run(process.put(checkpoint_id, {"x": 2}, parent))
        assert TTL_ATTRIBUTE not in stage.items("C#")[f"C#{checkpoint_id}#"]
