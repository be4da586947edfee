"""The connections of a transport, on each event loop and in OS threads: those of a loop are closed before it is.

Connections can be closed on their own loop only, and only `asyncio.run` gives notice before it closes one. So a loop
with open connections gets a `close` that runs it one last time.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from .._format.limits import PARALLEL_REQUESTS
from .fork import start_in_every_process


class LoopEnd:
    """Replaces the `close` of one event loop, and closes the resources that are open on it first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Replace the loop's `close`."""
        self.open: set[LoopConnections] = set()
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

    def close_soon(self, each: LoopConnections) -> None:
        """Schedule closing one resource for when the loop runs or is closed. Can be called from any thread."""
        if self._process == os.getpid() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin_to_close, each)

    def _begin_to_close(self, each: LoopConnections) -> None:
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


class Connections:
    """The OS threads for blocking calls, and what is open on each event loop; all of it is made when first needed."""

    def __init__(self) -> None:
        """Begin with nothing open."""
        start_in_every_process(self)

    def start(self) -> None:
        """Start with nothing open; also after a fork, which copies neither OS threads nor usable connections."""
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._loops: dict[asyncio.AbstractEventLoop, LoopConnections] = {}
        weakref.finalize(self, _let_go, self._loops).atexit = False

    def pool(self) -> Executor:
        """Return the pool for parallel requests."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    PARALLEL_REQUESTS, thread_name_prefix="langgraph-dynamodb"
                )
            return self._executor

    def close(self) -> None:
        """Close the pool. It is made again when needed."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()

    def on_loop(self, make: Callable[[asyncio.AbstractEventLoop], LoopConnections]) -> LoopConnections:
        """Return what is open on the running event loop; make it if there is nothing."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._loops:
                for closed in [each for each in self._loops if each.is_closed()]:
                    del self._loops[closed]
                self._loops[loop] = make(loop)
            return self._loops[loop]

    async def aclose(self) -> None:
        """Close the running event loop's connections; they are opened again when needed."""
        with self._lock:
            opened = self._loops.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.close()


class LoopConnections:
    """An async client on one event loop: its connections there, which are closed on the loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, client: Any, close: Callable[[], Awaitable[None]], places: int
    ) -> None:
        """Take the client, what closes its connections on the loop, and how many requests it makes at a time."""
        self.client = client
        # aiohttp gives a free connection to the first to ask, which is the caller that just returned one. httpx looks
        # through all waiting requests each time that a connection is free.
        self.turns = asyncio.Semaphore(places)
        self._close = close
        self._end = LoopEnd.of(loop)
        self._end.open.add(self)

    async def close(self) -> None:
        """Close the connections."""
        self._end.open.discard(self)
        await self._close()

    def close_soon(self) -> None:
        """Schedule closing them. Can be called from any thread."""
        self._end.close_soon(self)


def _let_go(loops: dict[asyncio.AbstractEventLoop, LoopConnections]) -> None:
    """Close the connections of an object that was garbage-collected."""
    for opened in list(loops.values()):
        opened.close_soon()
