"""`thread_lock` and `athread_lock`: held while their block runs, whatever happens in it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import (
    CheckpointerInputError,
    DynamoDBSaver,
    ThreadBusyError,
    ThreadLockLostError,
)
from langgraph.checkpoint.dynamodb._operations import thread_lock
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")


def _is_held(saver: DynamoDBSaver) -> bool:
    try:
        with saver.thread_lock("t"):
            return False
    except ThreadBusyError:
        return True


def test_a_free_lock_costs_two_requests(saver: DynamoDBSaver, traffic: Traffic) -> None:
    traffic.clear()
    with saver.thread_lock("t") as lock:
        assert lock.held
    assert traffic.operations == ["UpdateItem", "UpdateItem"]


def test_another_runner_is_told_who_to_wait_for(saver: DynamoDBSaver) -> None:
    with (
        saver.thread_lock("t", ttl=30),
        pytest.raises(ThreadBusyError, match="thread 't' is held by another runner"),
    ):
        saver.thread_lock("t", wait=0.2).__enter__()
    assert not _is_held(saver)


def test_one_runner_waits_for_the_other(saver: DynamoDBSaver) -> None:
    """Twenty threads add one to a number that only the lock protects."""
    total = 0

    def add() -> None:
        nonlocal total
        with saver.thread_lock("t", wait=60):
            seen = total
            time.sleep(0.01)
            total = seen + 1

    threads = [threading.Thread(target=add) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert total == 8


def test_a_lock_is_renewed_while_its_block_runs(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_lock, "LOCK_SKEW_SECONDS", 0)
    with saver.thread_lock("t", ttl=1) as lock:
        time.sleep(1.5)
        assert lock.held
        assert _is_held(saver)


async def test_an_async_lock_is_renewed_while_its_block_runs(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_lock, "LOCK_SKEW_SECONDS", 0)
    async with saver.athread_lock("t", ttl=1) as lock:
        await asyncio.sleep(1.5)
        assert lock.held
        with pytest.raises(ThreadBusyError):
            await saver.athread_lock("t").__aenter__()
    async with saver.athread_lock("t"):
        pass


def test_a_block_that_fails_lets_go(saver: DynamoDBSaver) -> None:
    with pytest.raises(ZeroDivisionError), saver.thread_lock("t"):
        raise ZeroDivisionError
    assert not _is_held(saver)


async def test_a_block_that_is_cancelled_lets_go(saver: DynamoDBSaver) -> None:
    entered = asyncio.Event()

    async def hold() -> None:
        async with saver.athread_lock("t"):
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(hold())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _is_held(saver)


def _take_away(saver: DynamoDBSaver) -> None:
    """Let somebody else take the lock, as if its ttl were over."""
    hold = thread_lock.hold_on(saver._table, "t", 60, 0)
    hurried = {"#holder": "holder"}
    values = {":holder": {"B": hold.token}}
    saver._blocking.run(saver._table.update(hold.key, "SET #holder = :holder", names=hurried, values=values))


def test_a_lock_that_was_lost_is_an_error_before_the_last_put_and_at_the_end(saver: DynamoDBSaver) -> None:
    def block() -> None:
        with saver.thread_lock("t") as lock:
            _take_away(saver)
            with pytest.raises(ThreadLockLostError):
                lock.check()
            assert not lock.held

    with pytest.raises(ThreadLockLostError, match="thread 't' is not held any more"):
        block()


def test_a_loss_that_only_the_background_noticed_is_an_error_at_the_end(saver: DynamoDBSaver) -> None:
    def block() -> None:
        with saver.thread_lock("t", ttl=1) as lock:
            _take_away(saver)
            while lock.held:
                time.sleep(0.05)

    with pytest.raises(ThreadLockLostError):
        block()


async def test_an_async_lock_that_was_lost_is_an_error_at_the_end(saver: DynamoDBSaver) -> None:
    async def block() -> None:
        async with saver.athread_lock("t", ttl=1) as lock:
            _take_away(saver)
            # By then it has run out, if nobody has noticed before.
            await asyncio.sleep(1.1)
            assert not lock.held

    with pytest.raises(ThreadLockLostError):
        await block()


def test_a_loss_does_not_hide_what_the_block_failed_with(
    saver: DynamoDBSaver, caplog: pytest.LogCaptureFixture
) -> None:
    def block() -> None:
        with saver.thread_lock("t") as lock:
            _take_away(saver)
            with pytest.raises(ThreadLockLostError):
                lock.check()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert "is not held any more" in caplog.text


def test_an_outage_hides_neither_the_work_nor_itself(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The block's work is done; the lock runs out."""
    with saver.thread_lock("t", ttl=1):
        with monkeypatch.context() as patch:
            patch.setattr(saver._blocking, "_send", _no_network)
            time.sleep(0.5)
        assert "could not be renewed: no network" in caplog.text
        monkeypatch.setattr(saver._blocking, "_send", _no_network)
    assert "could not be let go, and runs out by itself: no network" in caplog.text


def _no_network(_call: object) -> Any:
    raise OSError("no network")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thread_id": ""}, "thread_id is ''"),
        ({"thread_id": None}, "thread_id is None"),
        ({"ttl": 0}, "ttl is 0; give a number of seconds, 1 or more"),
        ({"ttl": True}, "ttl is True"),
        ({"ttl": "60"}, "ttl is '60'"),
        ({"ttl": float("inf")}, "ttl is inf"),
        ({"wait": -1}, "wait is -1; give a number of seconds, 0 or more"),
        ({"wait": float("nan")}, "wait is nan"),
    ],
)
@pytest.mark.parametrize("method", ["thread_lock", "athread_lock"])
def test_bad_arguments_are_refused_before_anything_is_requested(
    method: str, options: dict[str, Any], words: str
) -> None:
    saver = DynamoDBSaver("table", region_name="us-east-1")
    with pytest.raises(CheckpointerInputError, match=words):
        getattr(saver, method)(**{"thread_id": "t", **options})
