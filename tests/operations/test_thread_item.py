"""The thread item: claims that keep deletions apart, and renewals that make nothing."""

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from langgraph.checkpoint.dynamodb import CheckpointerUnavailableError, ThreadBusyError
from langgraph.checkpoint.dynamodb._format import items, limits
from tests.support.checkpoints import noise
from tests.support.harness import (
    TTL_SECONDS,
    Harness,
    Process,
    Run,
    asks,
    changes_thread,
    confirms,
    removes_thread,
)

# More than an item of writes holds itself.
BIG = noise(100_000)


@pytest.mark.parametrize("deletion", ["prune", "delete_thread"])
@pytest.mark.parametrize("stands_still_before", ["#pending", "#claim = :claim"])
def test_a_deletion_that_lost_its_claim_does_not_release_another_ones(
    harness: Harness, process: Process, deletion: str, stands_still_before: str
) -> None:
    """The first stands still past its claim, before the epoch ends or at its end; the second takes over."""
    for checkpoint_id in ("1", "2"):
        harness.run(process.put(checkpoint_id, {"big": BIG}))
    first = harness.begin(getattr(harness.process(), deletion)()).until(changes_thread(":ended"))
    if stands_still_before != "#pending":
        first.go_on()
        first.until(changes_thread("REMOVE #claim") if deletion == "prune" else removes_thread)
    harness.now += limits.CLAIM_SECONDS + 1
    second = harness.begin(harness.process().prune()).until(asks("query"))
    if stands_still_before == "#pending":
        with pytest.raises(ThreadBusyError, match="another deletion took over"):
            first.finish()
    else:
        first.finish()
    with pytest.raises(ThreadBusyError, match="is being deleted or pruned by another call"):
        harness.run(harness.process().delete_thread())
    second.finish()


def test_a_confirmation_makes_no_thread_item(harness: Harness, expiring: Process) -> None:
    """A process finds its epoch in a thread that expires soon, and the thread is deleted before it is extended."""
    harness.run(expiring.put("1", {}))
    harness.now += 1.5 * TTL_SECONDS
    put = harness.begin(expiring.put("2", {}, "1")).until(confirms)
    put.go_on()
    harness.run(harness.process().delete_thread())
    put.finish()
    assert items.EPOCH in harness.items("T")["T"]
    assert harness.process().values() == {}


@pytest.mark.parametrize("deletion", ["prune", "delete_thread"])
def test_a_thread_that_expires_meanwhile_is_deleted(harness: Harness, deletion: str) -> None:
    harness.run(harness.process(TTL_SECONDS).put("1", {"big": BIG}))
    harness.now += 2 * TTL_SECONDS - 5
    run = harness.begin(getattr(harness.process(), deletion)()).until(asks("query"))
    harness.now += 10
    harness.model.expire()
    run.finish()
    harness.run(harness.process().delete_thread())
    assert harness.items("T") == harness.items("C#") == {}


def test_a_deletion_waits_for_another_one_and_then_gives_up(harness: Harness) -> None:
    harness.run(harness.process().put("1", {"big": BIG}))
    harness.begin(harness.process().prune()).until(asks("query"))
    begun, second = harness.now, harness.begin(harness.process().prune())
    with pytest.raises(ThreadBusyError, match="is being deleted or pruned by another call, for over 60 s"):
        second.finish()
    assert limits.BACKOFF_SECONDS_TOTAL < harness.now - begun < 2 * limits.BACKOFF_SECONDS_TOTAL


def test_a_saver_with_another_ttl_says_once_that_a_thread_keeps_its_own(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.run(harness.process(TTL_SECONDS).put("1", {"x": 1}))
    harness.run(harness.process(TTL_SECONDS).put("2", {"x": 2}, "1"))
    assert caplog.messages == []
    other = harness.process(2 * TTL_SECONDS)
    for number in (3, 4):
        harness.run(other.put(str(number), {"x": number}, str(number - 1)))
    assert caplog.messages == [
        "Thread 't' was created with ttl_seconds=1000 and keeps it; this saver has ttl_seconds=2000. A copy of the"
        " thread would take the saver's. This is logged once."
    ]


def _confirming(process: Process, checkpoint_id: str) -> Run[RunnableConfig]:
    """Begin a put and stop it before it reads the thread item, or waits for another one that does."""
    run = process.harness.begin(process.put(checkpoint_id, {})).until(asks("put_item", word="C#"))
    run.go_on()
    return run


def _waits(run: Run[RunnableConfig]) -> bool:
    return not run.done and not run.calls


def test_confirmations_that_wait_at_the_same_time_share_a_request(harness: Harness, process: Process) -> None:
    harness.run(process.put("0", {}))
    first, second, third, fourth = (_confirming(process, each) for each in ("1", "2", "3", "4"))
    assert [confirms(call) for call in first.calls] == [True]
    assert all(map(_waits, (second, third, fourth)))
    first.finish()
    assert [confirms(call) for call in second.trace()] == [True]
    assert third.trace() == fourth.trace() == []


def test_a_confirmation_uses_no_answer_from_before_its_commit(harness: Harness, process: Process) -> None:
    """The first put's answer is on its way when a deletion comes, which the second one must not miss."""
    harness.run(process.put("0", {"big": BIG}))
    first = _confirming(process, "1")
    answer = first.perform()
    harness.run(harness.process().delete_thread())
    second = _confirming(process, "2")
    first.go_on(answer)
    first.finish()
    assert any(map(confirms, second.trace()))
    assert harness.process().values("2") == {}


@pytest.mark.parametrize("end", ["fails", "is dropped", "takes too long"])
def test_who_waits_for_a_read_in_vain_reads_for_itself(harness: Harness, process: Process, end: str) -> None:
    harness.run(process.put("0", {}))
    first, second, third = (_confirming(process, each) for each in ("1", "2", "3"))
    if end == "takes too long":
        assert [confirms(call) for call in third.trace()] == [True]
    elif end == "is dropped":
        first.finish()
        second.drop()
        assert [confirms(call) for call in third.trace()] == [True]
    else:
        first.finish()
        second.go_on()
        with pytest.raises(ConnectionError):
            second.go_on([ConnectionError()])
        assert [confirms(call) for call in third.trace()] == [True]
    assert harness.process().values("3") == {}
    if end == "takes too long":
        second.finish()
        first.finish()
    assert [confirms(call) for call in _confirming(process, "4").trace()] == [True], (
        "something was left behind"
    )


def test_a_shared_read_that_is_never_sent_is_waited_for_once(harness: Harness, process: Process) -> None:
    """It is on an event loop that was stopped and kept, and it may be sent later all the same."""
    harness.run(process.put("0", {}))
    first, kept = _confirming(process, "1"), _confirming(process, "2")
    before = harness.now
    for checkpoint_id in ("3", "4", "5"):
        put = _confirming(process, checkpoint_id)
        if checkpoint_id == "4":
            # The first read ends, and the one that waited for it stays where it is.
            first.finish()
            before = harness.now
        assert [confirms(call) for call in put.trace()] == [True]
        assert harness.now == before + (limits.READ_WAIT_SECONDS_MAX if checkpoint_id == "3" else 0)
    following = _confirming(process, "6")
    kept.go_on()
    assert [confirms(call) for call in kept.trace()] == [True]
    assert [confirms(call) for call in following.trace()] == [True]


def test_after_an_outage_a_claim_is_released_by_one_attempt(harness: Harness, process: Process) -> None:
    harness.run(process.put("0", {}))
    deletion = harness.begin(process.delete_thread())
    error = CheckpointerUnavailableError("down")
    deletion.go_on([error])
    assert [call.is_sent_once for call in deletion.calls] == [True]
    with pytest.raises(CheckpointerUnavailableError):
        deletion.go_on([error])


@pytest.mark.parametrize("begins", ["put", "put_writes"])
def test_a_thread_that_another_process_has_deleted_begins_with_its_item(
    harness: Harness, process: Process, begins: str
) -> None:
    """It has the owner. This process remembers the life before, and has found no checkpoint."""
    harness.run(process.put("1", {"x": 1}))
    harness.run(harness.process().delete_thread())
    assert process.get() is None
    run: Run[Any] = harness.begin(
        process.put("2", {"x": 2}) if begins == "put" else process.put_writes("2", [("x", 2)])
    )
    while not run.done:
        outcomes = run.perform()
        stored = harness.items("")
        assert not stored or "T" in stored
        run.go_on(outcomes)
