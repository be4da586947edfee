"""The lock of a thread, request by request: late ones, lost answers, clocks that differ, deletions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langgraph.checkpoint.dynamodb import ThreadBusyError, ThreadLockLostError
from langgraph.checkpoint.dynamodb._format.limits import LOCK_SKEW_SECONDS
from langgraph.checkpoint.dynamodb._operations.thread_lock import Hold, hold_on, keep, let_go, take
from langgraph.checkpoint.dynamodb._runtime.requests import Table
from langgraph.checkpoint.dynamodb._runtime.steps import interrupted
from tests.support.stage import THREAD, Stage

TTL = 60.0


def _runner(stage: Stage, skew_seconds: float = 0.0) -> tuple[Table, Hold]:
    """A runner with a clock that differs from the stage's."""
    table = replace(stage.process().table, clock=lambda: stage.now + skew_seconds)
    return table, hold_on(table, THREAD, TTL, 0.0)


def _is_free(stage: Stage, skew_seconds: float = 0.0) -> bool:
    """Whether another runner can take the thread; it lets go of it again."""
    table, hold = _runner(stage, skew_seconds)
    try:
        stage.run(take(table, hold, 0.0))
    except ThreadBusyError:
        return False
    stage.run(let_go(table, hold))
    return True


def test_a_thread_has_one_runner_until_that_one_lets_go() -> None:
    stage = Stage()
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    assert not _is_free(stage)
    stage.run(let_go(table, hold))
    assert _is_free(stage)


def test_a_runner_waits_for_another_one_that_lets_go_in_time() -> None:
    stage = Stage()
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    waiting = stage.begin(take(*_runner(stage), 30.0))
    for _ in range(3):
        waiting.go_on()
    stage.run(let_go(table, hold))
    assert waiting.finish() > stage.now


@pytest.mark.parametrize("skew_seconds", [-LOCK_SKEW_SECONDS, 0, LOCK_SKEW_SECONDS])
def test_the_thread_of_a_dead_runner_is_free_after_the_ttl_whatever_clocks_say(skew_seconds: int) -> None:
    stage = Stage()
    until = stage.run(take(*_runner(stage), 0.0))
    stage.now = until - 0.01
    assert not _is_free(stage, skew_seconds)
    stage.now = until + 2 * LOCK_SKEW_SECONDS + 0.01
    assert _is_free(stage, skew_seconds)


def test_an_answer_that_is_lost_costs_a_request_and_no_wait() -> None:
    stage = Stage()
    taking = stage.begin(take(*_runner(stage), 0.0))
    taking.perform()
    assert taking.finish() == stage.now + TTL


def test_a_renewal_that_arrives_late_does_not_shorten_the_hold() -> None:
    stage = Stage()
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    late = stage.begin(keep(table, hold))
    stage.now += 30
    until = stage.run(keep(table, hold))
    late.finish()
    stage.now = until - 1
    assert not _is_free(stage, LOCK_SKEW_SECONDS)


@pytest.mark.parametrize("late", [take, keep])
def test_a_request_of_one_who_has_let_go_does_not_touch_the_next_runner(late: object) -> None:
    stage = Stage()
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    request = stage.begin(take(table, hold, 0.0) if late is take else keep(table, hold))
    stage.run(let_go(table, hold))
    other_table, other = _runner(stage)
    until = stage.run(take(other_table, other, 0.0))
    request.perform()
    stage.run(let_go(table, hold))
    assert stage.run(keep(other_table, other)) == until


def test_who_stood_still_for_longer_than_the_ttl_is_told() -> None:
    stage = Stage()
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    stage.now += TTL + LOCK_SKEW_SECONDS + 1
    stage.run(take(*_runner(stage), 0.0))
    with pytest.raises(ThreadLockLostError, match="begin again from it"):
        stage.run(keep(table, hold))


def test_who_stood_still_and_was_not_missed_goes_on() -> None:
    stage = Stage()
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    stage.now += 10 * TTL
    assert stage.run(keep(table, hold)) == stage.now + TTL


def test_a_runner_that_is_interrupted_while_it_waits_for_its_answer_holds_nothing() -> None:
    stage = Stage()
    table, hold = _runner(stage)
    taking = take(table, hold, 0.0)
    stage.perform(next(taking)[0])
    rest = interrupted(taking, KeyboardInterrupt())
    assert rest is not None
    stage.run(rest)
    assert _is_free(stage)


def test_deleting_a_thread_leaves_the_lock_of_who_runs_it() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 1}))
    table, hold = _runner(stage)
    stage.run(take(table, hold, 0.0))
    stage.run(process.delete_thread())
    assert not _is_free(stage)
    assert list(stage.items("")) == ["L"]


def test_deleting_a_thread_removes_what_locks_have_left() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 1}))
    assert _is_free(stage)
    stage.run(process.delete_thread())
    assert stage.items("") == {}


def test_a_lock_that_is_taken_while_its_thread_is_deleted_stays() -> None:
    stage = Stage()
    process = stage.process()
    stage.run(process.put("1", {"x": 1}))
    assert _is_free(stage)
    deletion = stage.begin(process.delete_thread())
    deletion.until(lambda call: call.method == "delete_item" and call.params["Key"]["SK"] == {"S": "L"})
    stage.run(take(*_runner(stage), 0.0))
    deletion.finish()
    assert not _is_free(stage)


def test_expiry_takes_a_lock_long_after_it_has_ended() -> None:
    stage = Stage()
    until = stage.run(take(*_runner(stage), 0.0))
    stage.now = until + 60
    stage.model.expire()
    assert list(stage.items("")) == ["L"]
    stage.now = until + 2 * 3600
    stage.model.expire()
    assert stage.items("") == {}
