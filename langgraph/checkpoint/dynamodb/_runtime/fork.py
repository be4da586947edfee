"""Forks: start objects with locks or connections again in a child process, and keep forks out of imports.

A child has one thread. Whatever other threads of its parent were doing stays half done in it, and locks that they held
stay locked. So objects with locks or connections start again in the child. An import cannot, so a fork waits for it.
"""

import concurrent.futures.thread  # noqa: F401 - it registers before us, so a fork takes its lock after ours.
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

# A client may be waiting for credentials that never come. The fork then goes ahead.
_WAIT_SECONDS_MAX = 30.0


class Restarted(Protocol):
    """An object whose state is valid in one process only."""

    def start(self) -> None:
        """Start with a fresh state: once, and again in each child, which has no other threads yet."""


_all: weakref.WeakSet[Restarted] = weakref.WeakSet()
_whole = threading.RLock()


def start_in_every_process(each: Restarted) -> None:
    """Start an object now, and again in every child that is forked while the object exists."""
    each.start()
    _all.add(each)


@contextmanager
def without_forks() -> Iterator[None]:
    """Make forks by other threads wait, while modules are imported or clients are made, which import modules too.

    A child that imports a module that its parent was importing would wait for a thread that it does not have.
    """
    with _whole:
        yield


def _before_fork() -> None:
    _whole.acquire(timeout=_WAIT_SECONDS_MAX)


def _after_fork() -> None:
    # The lock is not ours if waiting for it timed out.
    with suppress(RuntimeError):
        _whole.release()


def _start_all() -> None:
    global _whole
    # The child's copy of the lock may be held by a thread that only the parent has.
    _whole = threading.RLock()
    for each in list(_all):
        each.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_start_all)
