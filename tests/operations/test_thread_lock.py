"""The lock of a thread, request by request: late ones, lost answers, clocks that differ, deletions."""

from dataclasses import replace

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerUnavailableError, ThreadBusyError, ThreadLockLostError
from langgraph.checkpoint.dynamodb._format.limits import LOCK_SKEW_SECONDS, TTL_SECONDS_MAX
from langgraph.checkpoint.dynamodb._operations import thread_lock
from langgraph.checkpoint.dynamodb._operations.thread_lock import Hold, TableHolder, hold_on
from langgraph.checkpoint.dynamodb._runtime.steps import Op, interrupted
from langgraph.checkpoint.dynamodb._runtime.storage import Storage
from tests.support.harness import THREAD, Harness, Process, asks

TTL = 60.0


def acquire(storage: Storage, hold: Hold, wait_seconds: float) -> Op[float]:
    """Acquire a hold in the table."""
    return thread_lock.acquire(TableHolder(storage), hold, wait_seconds)


def _runner(harness: Harness, skew_seconds: float = 0.0) -> tuple[Storage, Hold]:
    """A runner with a clock that differs from the stage's."""
    storage = replace(harness.process().storage, clock=lambda: harness.now + skew_seconds)
    return storage, hold_on(THREAD, TTL, 0.0, storage.rng.randbytes(8))


def _is_free(harness: Harness, skew_seconds: float = 0.0) -> bool:
    """Whether another runner can take the thread; it lets go of it again."""
    storage, hold = _runner(harness, skew_seconds)
    try:
        harness.run(acquire(storage, hold, 0.0))
    except ThreadBusyError:
        return False
    harness.run(TableHolder(storage).release(hold))
    return True


def test_the_longest_ttl_holds_a_thread(harness: Harness) -> None:
    storage, _ = _runner(harness)
    harness.run(acquire(storage, hold_on(THREAD, TTL_SECONDS_MAX, 0.0, storage.rng.randbytes(8)), 0.0))
    assert not _is_free(harness)


def test_who_is_told_to_wait_can_have_the_thread_then(harness: Harness) -> None:
    storage, hold = _runner(harness)
    harness.run(acquire(storage, hold, 0.0))
    other, wanted = _runner(harness)
    told = harness.run(TableHolder(other).attempt(wanted))
    assert (told.held_until, told.free_in_seconds) == (None, TTL + LOCK_SKEW_SECONDS)
    for seconds, is_free in ((told.free_in_seconds - 1, False), (2, True)):
        harness.now += seconds
        assert _is_free(harness) == is_free


def test_a_runner_waits_for_another_one_that_lets_go_in_time(harness: Harness) -> None:
    storage, hold = _runner(harness)
    harness.run(acquire(storage, hold, 0.0))
    waiting = harness.begin(acquire(*_runner(harness), 30.0))
    for _ in range(3):
        waiting.go_on()
    harness.run(TableHolder(storage).release(hold))
    assert waiting.finish() > harness.now


def test_an_answer_that_is_lost_costs_a_request_and_no_wait(harness: Harness) -> None:
    taking = harness.begin(acquire(*_runner(harness), 0.0))
    taking.perform()
    assert taking.finish() == harness.now + TTL


def test_a_renewal_that_arrives_late_does_not_shorten_the_hold(harness: Harness) -> None:
    storage, hold = _runner(harness)
    harness.run(acquire(storage, hold, 0.0))
    late = harness.begin(TableHolder(storage).renew(hold))
    harness.now += 30
    until = harness.run(TableHolder(storage).renew(hold))
    late.finish()
    harness.now = until - 1
    assert not _is_free(harness, LOCK_SKEW_SECONDS)


def test_who_stood_still_for_longer_than_the_ttl_is_told(harness: Harness) -> None:
    storage, hold = _runner(harness)
    harness.run(acquire(storage, hold, 0.0))
    harness.now += TTL + LOCK_SKEW_SECONDS + 1
    harness.run(acquire(*_runner(harness), 0.0))
    with pytest.raises(ThreadLockLostError, match="start again from it"):
        harness.run(TableHolder(storage).renew(hold))


def test_who_stood_still_and_was_not_missed_goes_on(harness: Harness) -> None:
    storage, hold = _runner(harness)
    harness.run(acquire(storage, hold, 0.0))
    harness.now += 10 * TTL
    assert harness.run(TableHolder(storage).renew(hold)) == harness.now + TTL


def test_a_runner_that_is_interrupted_while_it_waits_for_its_answer_holds_nothing(harness: Harness) -> None:
    storage, hold = _runner(harness)
    taking = acquire(storage, hold, 0.0)
    harness.perform(next(taking)[0])
    rest = interrupted(taking, KeyboardInterrupt())
    assert rest is not None
    harness.run(rest)
    assert _is_free(harness)


def test_deleting_a_thread_leaves_the_lock_of_who_runs_it(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 1}))
    storage, hold = _runner(harness)
    harness.run(acquire(storage, hold, 0.0))
    ahead = replace(process.storage, clock=lambda: harness.now + TTL + 2 * LOCK_SKEW_SECONDS)
    for each in (process, Process(harness, ahead)):
        harness.run(each.delete_thread())
        assert not _is_free(harness)
        assert list(harness.items("")) == ["L"]


def test_deleting_a_thread_removes_what_locks_have_left(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 1}))
    assert _is_free(harness)
    harness.run(process.delete_thread())
    assert harness.items("") == {}


def test_a_lock_that_is_taken_while_its_thread_is_deleted_stays(harness: Harness, process: Process) -> None:
    harness.run(process.put("1", {"x": 1}))
    assert _is_free(harness)
    deletion = harness.begin(process.delete_thread()).until(asks("delete_item", "L"))
    harness.run(acquire(*_runner(harness), 0.0))
    deletion.finish()
    assert not _is_free(harness)


def test_expiry_takes_a_lock_long_after_it_has_ended(harness: Harness) -> None:
    until = harness.run(acquire(*_runner(harness), 0.0))
    harness.now = until + 60
    harness.model.expire()
    assert list(harness.items("")) == ["L"]
    harness.now = until + 2 * 3600
    harness.model.expire()
    assert harness.items("") == {}


@pytest.mark.parametrize(
    ("error", "once"), [(CheckpointerUnavailableError("down"), True), (OSError("?"), False)]
)
def test_after_an_outage_the_release_is_sent_once(harness: Harness, error: Exception, *, once: bool) -> None:
    """The caller has waited for all of `retry_seconds` already."""
    taking = harness.begin(acquire(*_runner(harness), 0.0))
    [first] = taking.calls
    assert not first.is_sent_once
    taking.go_on([error])
    [released] = taking.calls
    assert released.is_sent_once is once
    with pytest.raises(type(error)):
        taking.go_on([error])
