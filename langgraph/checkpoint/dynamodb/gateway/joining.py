"""Joining: operations that may take longer than one request. A repeated request joins the one that is under way.

An operation goes on for a bounded time after the last answer: a client that has given up must not find later that
something was deleted after all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

Start: TypeAlias = Callable[[], Coroutine[Any, Any, object]]


class Joining:
    """The operations under way in one process, by what identifies them."""

    def __init__(self) -> None:
        """Start with none."""
        self._running: dict[str, _Running] = {}

    async def done(self, key: str, start: Start, seconds: float) -> bool:
        """Start an operation, or join it, and wait for its end.

        Args:
            key: Identifies the caller and the request.
            start: Starts the operation.
            seconds: How long to wait, and how long it goes on without anybody who waits.

        Returns:
            Whether it has ended; it raises what the operation raised.
        """
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = _Running(asyncio.ensure_future(start()))
        running.join()
        try:
            await asyncio.wait([running.task], timeout=seconds)
        finally:
            running.leave(seconds, lambda: self._forget(key, running))
        if not running.task.done():
            return False
        self._forget(key, running)
        running.task.result()
        return True

    def _forget(self, key: str, running: _Running) -> None:
        if self._running.get(key) is running:
            del self._running[key]
        running.end()


class _Running:
    """An operation, and how many requests wait for it."""

    def __init__(self, task: asyncio.Future[object]) -> None:
        self.task = task
        self._waiting = 0
        self._end: asyncio.TimerHandle | None = None

    def join(self) -> None:
        self._waiting += 1
        if self._end is not None:
            self._end.cancel()

    def leave(self, seconds: float, forget: Callable[[], None]) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._end = asyncio.get_running_loop().call_later(seconds, forget)

    def end(self) -> None:
        if self._end is not None:
            self._end.cancel()
        if not self.task.cancel() and not self.task.cancelled():
            # Nobody may have asked for it any more; asyncio would log it as never retrieved.
            self.task.exception()
