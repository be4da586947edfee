"""`thread_lock` and `athread_lock`: held while their block runs, whatever happens in it."""

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
from langgraph.checkpoint.dynamodb._format import limits
from langgraph.checkpoint.dynamodb._operations import thread_lock
from langgraph.checkpoint.dynamodb.protocol import Change
from tests.conftest import MakeSaver
from tests.support.change import change_requests
from tests.support.forks import forking, in_a_child
from tests.support.traffic import Traffic

pytestmark = pytest.mark.engines("dynamodb-local")


def _is_held(saver: DynamoDBSaver, thread_id: str = "t") -> bool:
    try:
        with saver.thread_lock(thread_id):
            return False
    except ThreadBusyError:
        return True


def test_a_free_lock_costs_two_requests(saver: DynamoDBSaver, traffic: Traffic) -> None:
    traffic.clear()
    with saver.thread_lock("t") as lock:
        assert lock.held
    assert traffic.operations == ["UpdateItem", "UpdateItem"]


def test_a_lock_is_renewed_while_its_block_runs(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOCK_SKEW_SECONDS", 0)
    with saver.thread_lock("t", ttl=1) as lock:
        time.sleep(1.5)
        assert lock.held
        assert _is_held(saver)


async def test_an_async_lock_is_renewed_while_its_block_runs(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LOCK_SKEW_SECONDS", 0)
    async with saver.athread_lock("t", ttl=1) as lock:
        await asyncio.sleep(1.5)
        assert lock.held
        with pytest.raises(ThreadBusyError):
            await saver.athread_lock("t").__aenter__()
    async with saver.athread_lock("t"):
        pass


def _cancelled_at(saver: DynamoDBSaver, request_number: int) -> None:
    """Let the async request of this number cancel the task `holder` before it is sent, and once more as it is."""
    send, sent = saver.transport.asend, 0

    async def send_and_cancel(call: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == request_number:
            holder = next(each for each in asyncio.all_tasks() if each.get_name() == "holder")
            holder.cancel()
            await asyncio.sleep(0)
            holder.cancel()
        return await send(call)

    change_requests(saver, asend=send_and_cancel)


async def _hold(saver: DynamoDBSaver, entered: asyncio.Event | None = None, thread_id: str = "t") -> None:
    async with saver.athread_lock(thread_id):
        if entered is not None:
            entered.set()


@pytest.mark.parametrize("request_number", [1, 2], ids=["entered", "left"])
async def test_a_task_that_is_cancelled_while_it_asks_holds_nothing(
    saver: DynamoDBSaver, request_number: int
) -> None:
    _cancelled_at(saver, request_number)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(_hold(saver), name="holder")
    assert not _is_held(saver)


async def test_a_task_that_is_cancelled_anywhere_while_it_leaves_lets_go(saver: DynamoDBSaver) -> None:
    """A task does a few steps of the event loop when it leaves, and then as many as its request needs."""
    held_after = {}
    for steps in range(12):
        entered = asyncio.Event()
        task = asyncio.create_task(_hold(saver, entered, f"t{steps}"))
        await entered.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        # Where the machine is slow it may have ended.
        task.cancel()
        await asyncio.wait([task])
        held_after[steps] = _is_held(saver, f"t{steps}")
    assert not any(held_after.values()), held_after


def test_an_interruption_while_a_block_is_left_lets_go(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    lock = saver.thread_lock("t")
    lock.__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lock.__exit__(None, None, None)
    assert not _is_held(saver)


def test_an_interruption_of_the_last_request_is_answered_by_another(saver: DynamoDBSaver) -> None:
    send, interruptions = saver.transport.send, list[BaseException]()

    def interrupted(call: Any) -> Any:
        if interruptions:
            raise interruptions.pop()
        return send(call)

    change_requests(saver, send=interrupted)

    def block() -> None:
        with saver.thread_lock("t"):
            interruptions.append(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        block()
    assert not interruptions
    assert not _is_held(saver)


def test_a_lock_is_for_one_block_at_a_time(saver: DynamoDBSaver, traffic: Traffic) -> None:
    lock = saver.thread_lock("t")
    for _ in range(2):
        with lock:
            traffic.clear()
            with pytest.raises(CheckpointerInputError, match="a block that has not ended"):
                lock.__enter__()
            assert traffic.operations == []
            within = lock.held
        assert (within, lock.held) == (True, False)
        assert not _is_held(saver)


def test_a_process_that_has_no_more_threads_holds_nothing(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lock = saver.thread_lock("t")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            lock.__enter__()
    assert not lock.held
    assert not _is_held(saver)


@forking
def test_a_child_neither_has_nor_ends_the_hold_of_its_parent(make_saver: MakeSaver) -> None:
    saver = make_saver()

    def unwind() -> None:
        assert not lock.held
        with pytest.raises(ThreadLockLostError, match="is locked by process"):
            lock.check()
        # As `sys.exit` does.
        lock.__exit__(SystemExit, SystemExit(), None)

    def leave() -> None:
        with pytest.raises(ThreadLockLostError, match="is locked by process"):
            lock.__exit__(None, None, None)

    with saver.thread_lock("t") as lock:
        assert [in_a_child(unwind), in_a_child(leave)] == [0, 0]
        assert lock.held
        assert _is_held(saver)
    assert not _is_held(saver)


@forking
async def test_a_child_neither_has_nor_ends_the_async_hold_of_its_parent(make_saver: MakeSaver) -> None:
    saver = make_saver()

    def leave() -> None:
        # It waits for nothing: the event loop is its parent's.
        with pytest.raises(ThreadLockLostError, match="is locked by process"):
            lock.__aexit__(None, None, None).send(None)

    async with saver.athread_lock("t") as lock:
        assert in_a_child(leave) == 0
        assert lock.held
        assert _is_held(saver)


@forking
def test_a_lock_that_is_made_before_a_fork_is_had_by_one_process(make_saver: MakeSaver) -> None:
    saver = make_saver()
    lock = saver.thread_lock("t")
    assert in_a_child(lock.__enter__) == 0
    with pytest.raises(ThreadBusyError):
        lock.__enter__()


def _take_away(saver: DynamoDBSaver) -> None:
    """Let somebody else take the lock, as if its ttl were over."""
    hold = thread_lock.hold_on("t", 60, 0, saver.storage.rng.randbytes(8))
    hurried = {"#holder": "holder"}
    values = {":holder": {"B": hold.token}}
    saver.runner.run(
        saver.storage.table.update(hold.key, Change("SET #holder = :holder", "", hurried, values))
    )


def test_a_lock_that_was_lost_is_an_error_before_the_last_put_and_at_the_end(saver: DynamoDBSaver) -> None:
    def block() -> None:
        with saver.thread_lock("t") as lock:
            _take_away(saver)
            with pytest.raises(ThreadLockLostError):
                lock.check()
            assert not lock.held

    with pytest.raises(ThreadLockLostError, match="thread 't' is no longer held"):
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
    assert "is no longer held" in caplog.text


def test_an_outage_hides_neither_the_work_nor_itself(
    saver: DynamoDBSaver, caplog: pytest.LogCaptureFixture
) -> None:
    """The block's work is done; the lock runs out."""
    send, has_network = saver.transport.send, True

    def try_to_send(call: Any) -> Any:
        if not has_network:
            raise OSError("no network")
        return send(call)

    change_requests(saver, send=try_to_send)
    with saver.thread_lock("t", ttl=1):
        has_network = False
        time.sleep(0.5)
        has_network = True
        assert "could not be renewed: no network" in caplog.text
        has_network = False
    assert "could not be released. It expires by itself: no network" in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thread_id": ""}, "thread_id is ''"),
        ({"thread_id": None}, "thread_id is None"),
        ({"ttl": 0}, "ttl is 0; give a number of seconds from 1 to 31,622,400,000"),
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
