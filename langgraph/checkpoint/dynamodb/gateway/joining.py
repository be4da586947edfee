"""Joining: operations that may take longer than one request. A repeated request joins the one that is under way.

An operation goes on for a bounded time after the last answer: a client that has given up must not find later that
something was deleted after all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

Start: TypeAlias = Callable[[], Coroutine[Any, Any, object]]


@dataclass(eq=False)
class _Running:
    """An operation, how many requests wait for it, and when it ends without any."""

    task: asyncio.Future[object]
    waiting: int = 0
    end: asyncio.TimerHandle | None = None


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
        if key not in self._running:
            self._running[key] = _Running(asyncio.ensure_future(start()))
        running = self._running[key]
        running.waiting += 1
        if running.end is not None:
            running.end.cancel()
        try:
            await asyncio.wait([running.task], timeout=seconds)
        finally:
            running.waiting -= 1
            if not running.waiting:
                running.end = asyncio.get_running_loop().call_later(seconds, self._forget, key, running)
        if not running.task.done():
            return False
        self._forget(key, running)
        running.task.result()
        return True

    def _forget(self, key: str, running: _Running) -> None:
        if self._running.get(key) is running:
            del self._running[key]
        if running.end is not None:
            running.end.cancel()
        if not running.task.cancel() and not running.task.cancelled():
            # Nobody may have asked for it any more; asyncio would log it as never retrieved.
            running.task.exception()
