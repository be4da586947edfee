"""Children that are forked from the process of a test, while its other threads are busy or not."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver

from tests.support.checkpoints import store, stored_values, thread_config
from tests.support.operations import Side, ask_all

PROJECT_FOLDER = Path(__file__).parents[2]
# A child that waits for ever is a failure of its own, not a test run without an end.
WAIT_SECONDS_MAX = 120.0
_AT_A_TIME = 4

needs_fork = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork"),
    # From Python 3.12 on a fork with threads is warned of, which is what happens here.
    pytest.mark.filterwarnings(
        r"ignore:This process \(pid=\d+\) is multi-threaded, use of fork:DeprecationWarning"
    ),
]


def forking(test: Any) -> Any:
    """Mark one test of a module as one that needs forks."""
    for mark in needs_fork:
        test = mark(test)
    return test


def fork(use: Callable[[], object]) -> int:
    """Fork a process that does this and nothing else."""
    # What measures coverage has a lock that a fork may copy while another thread holds it.
    trace = sys.gettrace()
    sys.settrace(None)
    child = os.fork()
    if child:
        sys.settrace(trace)
    else:
        status = 1
        try:
            threading.settrace(cast("Any", None))
            use()
            status = 0
        finally:
            os._exit(status)
    return child


def exit_statuses(children: Sequence[int]) -> set[int | None]:
    """Wait for children and return their exit statuses; None where one did not end."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    return {_exit_status(child, until) for child in children}


def _exit_status(child: int, until: float) -> int | None:
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    # pytest lets it say where it stands.
    os.kill(child, signal.SIGABRT)
    os.waitpid(child, 0)
    return None


def in_a_child(use: Callable[[], object]) -> int | None:
    """Fork a process that does this; return its exit status, None where it did not end."""
    return exit_statuses([fork(use)]).pop()


def statuses_beside_calls(saver: BaseCheckpointSaver[Any], side: Side, count: int) -> set[int | None]:
    """Fork children while other threads make every kind of call; return the exit statuses of what they do then.

    Each child makes every kind of call too.
    """
    children: list[int] = []
    statuses: set[int | None] = set()
    with _busy(saver, side):
        for number in range(count):
            children.append(fork(lambda: _use(saver, side, f"child-{number}")))  # noqa: B023 - it runs at once.
            if len(children) == _AT_A_TIME:
                statuses |= exit_statuses([children.pop(0)])
        statuses |= exit_statuses(children)
    return statuses


@contextlib.contextmanager
def _busy(saver: BaseCheckpointSaver[Any], side: Side) -> Iterator[None]:
    """Make every kind of call in other threads, again and again, and raise what one of them failed with."""
    ended = threading.Event()
    failures: list[Exception] = []

    def call(thread_id: str) -> None:
        try:
            while not ended.is_set():
                ask_all(side, saver, thread_id)
        except Exception as error:  # noqa: BLE001 - it is raised below.
            failures.append(error)

    threads = [threading.Thread(target=call, args=[f"parent-{number}"]) for number in range(3)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in threads:
            each.join()
    assert failures == []


def _use(saver: BaseCheckpointSaver[Any], side: Side, thread_id: str) -> None:
    ask_all(side, saver, thread_id)
    # Larger than what one request stores: the pool is needed too.
    config = store(saver, thread_config(thread_id), "2", {"big": os.urandom(800_000)})
    assert len(stored_values(saver, config)["big"]) == 800_000


# What a saver's calls import while a fork may come; a child would wait for such an import for ever. Another thread asks
# whether one may come, as whoever forks does.
_IMPORTS = """
import sys, threading
from importlib import import_module
from concurrent.futures import ThreadPoolExecutor
from langgraph.checkpoint.dynamodb._runtime import fork
from tests.support.operations import ask_all

module, name, where, side = sys.argv[1:]
saver = getattr(import_module(module), name)(where)
late, others = [], ThreadPoolExecutor(1)

def may_fork():
    whole = fork._whole
    return whole.acquire(blocking=False) and whole.release() is None

class Finder:
    def find_spec(name, path=None, target=None):
        if others.submit(may_fork).result():
            late.append(name)

others.submit(may_fork).result()
sys.meta_path.insert(0, Finder)
count = len(sys.modules)
ask_all(side, saver, "thread-1")
print(len(sys.modules) - count > 10, late)
"""


def imports_beside_forks(
    saver_class: type[BaseCheckpointSaver[Any]], where: str, side: Side, environment: Mapping[str, str]
) -> str:
    """Let a new process make every kind of call; return whether that loaded much, and what a fork does not wait for."""
    command = [sys.executable, "-c", _IMPORTS, saver_class.__module__, saver_class.__name__, where, side]
    done = subprocess.run(  # noqa: S603  # This interpreter, with the program above.
        command, capture_output=True, text=True, check=True, env=dict(environment), cwd=PROJECT_FOLDER
    )
    return done.stdout.strip()
