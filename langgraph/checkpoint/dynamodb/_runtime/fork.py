"""What a forked child starts anew: locks that another thread of the parent may have held, and connections."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Restarted(Protocol):
    """What has a state that is of use in its own process only."""

    def start(self) -> None:
        """Begin, or begin again in a child, with a state of its own; the child has no other threads yet."""


_all: weakref.WeakSet[Restarted] = weakref.WeakSet()


def start_in_every_process(each: Restarted) -> None:
    """Start something now, and again in every child that is forked while it is in use."""
    each.start()
    _all.add(each)


def _start_all() -> None:
    for each in list(_all):
        each.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all)
