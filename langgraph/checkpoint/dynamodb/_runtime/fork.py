"""Forks: what a child starts anew, and what a fork waits for.

A child has one thread. What other threads of its parent were doing stays half done in it, and locks that they held stay
locked. So whatever has locks or connections starts anew in the child. An import cannot: a fork waits until it is over.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - it registers before us, so a fork takes its lock after ours.
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

# A client may be waiting for credentials that never come; the process is to go on then, and its child too.
_WAIT_SECONDS_MAX = 30.0


class Restarted(Protocol):
    """What has a state that is of use in its own process only."""

    def start(self) -> None:
        """Begin, or begin again in a child, with a state of its own; the child has no other threads yet."""


_all: weakref.WeakSet[Restarted] = weakref.WeakSet()
_whole = threading.RLock()


def start_in_every_process(each: Restarted) -> None:
    """Start something now, and again in every child that is forked while it is in use."""
    each.start()
    _all.add(each)


@contextmanager
def without_forks() -> Iterator[None]:
    """Let a fork by another thread wait: for imports, and for clients that are made, which import modules too.

    A child that imports a module that its parent was importing waits for a thread that it does not have.
    """
    with _whole:
        yield


def _before_fork() -> None:
    _whole.acquire(timeout=_WAIT_SECONDS_MAX)


def _after_fork() -> None:
    # Waiting may have been in vain.
    with suppress(RuntimeError):
        _whole.release()


def _start_all() -> None:
    global _whole
    # A thread that only the parent has may hold the copy of its lock.
    _whole = threading.RLock()
    for each in list(_all):
        each.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_start_all)
