"""The end of an event loop: close the connections that are open on it before the loop itself is closed.

Connections can be closed on their own loop only, and only `asyncio.run` gives notice before it closes one. So a loop
with open connections gets a `close` that runs it one last time.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Coroutine
from contextlib import closing
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread without an event loop. nest_asyncio's `asyncio.run` would leave its loop open.

    Debug mode is off: it would log that the coroutine is slow, although no other event loop waits for it.
    """
    with closing(asyncio.new_event_loop()) as loop:
        loop.set_debug(False)
        return loop.run_until_complete(coroutine)


class Closable(Protocol):
    """A resource that is open on a loop."""

    def close(self) -> Coroutine[Any, Any, None]:
        """Close the resource, on its loop; closing it again does nothing."""


class LoopEnd:
    """Replaces the `close` of one event loop, and closes the resources that are open on it first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Replace the loop's `close`."""
        self.open: set[Closable] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._loop = loop
        self._close_loop = loop.close
        self._process = os.getpid()
        vars(loop)["close"] = self
        _ends.add(self)

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> LoopEnd:
        """Return the end of a loop."""
        end = vars(loop).get("close")
        return end if isinstance(end, LoopEnd) else LoopEnd(loop)

    def __call__(self) -> None:
        """Close open resources, and then the loop."""
        self.close_open()
        self._close_loop()

    def close_open(self) -> None:
        """Close open resources, unless the loop runs. A loop that a fork copied is for the parent to close."""
        ours = self._process == os.getpid() and not (self._loop.is_running() or self._loop.is_closed())
        if ours and (self.open or self._closing):
            self._loop.run_until_complete(self._closed())

    def close_soon(self, each: Closable) -> None:
        """Schedule closing one resource for when the loop runs or is closed. Can be called from any thread."""
        if self._process == os.getpid() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin_to_close, each)

    def _begin_to_close(self, each: Closable) -> None:
        task = self._loop.create_task(each.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _closed(self) -> None:
        # Let the callbacks of `close_soon` run.
        await asyncio.sleep(0)
        for each in list(self.open):
            self._begin_to_close(each)
        # A resource that fails to close must not keep the others, or the loop, open.
        await asyncio.gather(*self._closing, return_exceptions=True)


_ends: weakref.WeakSet[LoopEnd] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for end in list(_ends):
        end.close_open()
