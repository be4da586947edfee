"""A process that is forked while other threads use the saver: the child waits for none of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import Conversation, store, stored_values, thread_config
from tests.support.rounds import WAIT_SECONDS_MAX

pytestmark = [
    pytest.mark.engines("dynamodb-local"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork"),
    # From Python 3.12 on a fork with threads is warned of, which is what happens here.
    pytest.mark.filterwarnings(
        r"ignore:This process \(pid=\d+\) is multi-threaded, use of fork:DeprecationWarning"
    ),
]


def _in_a_child(use: Callable[[], None]) -> int | None:
    """Fork a process that does this; return its exit status, None where it did not end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            use()
            status = 0
        finally:
            os._exit(status)
    until = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.parametrize("held", ["memory", "clients"])
def test_a_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held(
    make_saver: Callable[..., DynamoDBSaver], held: str
) -> None:
    saver = make_saver()
    Conversation(saver, "parent").put(value=1)
    lock = saver._table.memory._lock if held == "memory" else saver._clients._lock
    holds, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holds.set()
            forked.wait()

    def use() -> None:
        # Larger than what one request stores: the pool is needed too.
        config = store(saver, thread_config("child"), "1", {"big": os.urandom(800_000)})
        assert len(stored_values(saver, config)["big"]) == 800_000

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(WAIT_SECONDS_MAX)
    try:
        assert _in_a_child(use) == 0, "the child failed, or waits for ever"
    finally:
        forked.set()
        thread.join()
    assert stored_values(saver, thread_config("parent")) == {"value": 1}


def test_a_child_remembers_nothing_of_its_parent(make_saver: Callable[..., DynamoDBSaver]) -> None:
    """The fork may have come while a thread was half-way through changing what is remembered."""
    saver = make_saver()
    config = Conversation(saver, "thread").put(value=1)
    place = ("thread#", config["configurable"]["checkpoint_id"])
    assert saver._table.memory.checkpoint(*place) is not None

    def use() -> None:
        assert saver._table.memory.checkpoint(*place) is None
        assert stored_values(saver, config) == {"value": 1}

    assert _in_a_child(use) == 0
    assert saver._table.memory.checkpoint(*place) is not None
