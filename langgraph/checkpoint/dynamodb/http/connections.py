"""Connections to the gateway: one client of httpx for blocking calls, one for each event loop.

They are made when first needed and closed with the transport, or with their loop. httpx is loaded then too, and its
certificates are, in a thread where there is an event loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeAlias

from langgraph.checkpoint.dynamodb._format.limits import PARALLEL_REQUESTS, POOL_CONNECTIONS
from langgraph.checkpoint.dynamodb._runtime.fork import start_in_every_process, without_forks
from langgraph.checkpoint.dynamodb._runtime.loops import LoopEnd

if TYPE_CHECKING:
    import httpx

# A gateway's idle connections are closed by what is in front of it after a minute or so.
_IDLE_SECONDS_MAX = 30.0
_CONNECT_SECONDS_MAX = 3.0

Request: TypeAlias = Callable[[], dict[str, Any]]
"""Gives the keyword arguments of httpx's `build_request` when its turn comes: it says until when it is waited for."""


class Connections:
    """The clients of one transport."""

    def __init__(self, timeout: float, options: dict[str, Any], authorize: Callable[[], Any]) -> None:
        """Take what clients are made with; nothing is opened yet.

        Args:
            timeout: Seconds to wait for the next piece of an answer.
            options: Keyword arguments of httpx's clients.
            authorize: Makes httpx's authorization, once httpx may be loaded.
        """
        self._timeout = timeout
        self._options = options
        self._authorize = authorize
        start_in_every_process(self)

    def start(self) -> None:
        """Have nothing open; also after a fork, which copies neither threads nor what connections are for."""
        self._lock = threading.Lock()
        self._arguments: dict[str, Any] | None = None
        self._is_async_prepared = False
        self._executor: ThreadPoolExecutor | None = None
        self._open = _Open()
        weakref.finalize(self, _let_go, self._open)

    # Blocking

    def send(self, request: Request) -> httpx.Response:
        """Send a request and wait for all of its answer."""
        while True:
            client = self._blocking_client()
            try:
                return client.send(client.build_request(**request()))
            except RuntimeError:
                # Another thread has closed it meanwhile.
                if not client.is_closed:
                    raise

    def pool(self) -> Executor:
        """The pool for requests that go out side by side."""
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(
                    PARALLEL_REQUESTS, thread_name_prefix="langgraph-dynamodb"
                )
            return self._executor

    def _blocking_client(self) -> httpx.Client:
        with self._lock:
            if self._open.client is None:
                with without_forks():
                    import httpx  # noqa: PLC0415 - importing the saver should cost little.

                    self._open.client = httpx.Client(**self._prepared())
            return self._open.client

    def close(self) -> None:
        """Close the blocking client and the pool. Both are made again when needed."""
        with self._lock:
            client, self._open.client = self._open.client, None
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()
        if client is not None:
            client.close()

    # Async

    async def asend(self, request: Request) -> httpx.Response:
        """Do as `send` does, on the running event loop."""
        while True:
            connections = await self._loop_connections()
            try:
                return await connections.send(request)
            except RuntimeError:
                if not connections.client.is_closed:
                    raise

    async def aclose(self) -> None:
        """Close the running event loop's connections; they are opened again when needed."""
        with self._lock:
            connections = self._open.loops.get(asyncio.get_running_loop())
        if connections is not None:
            await connections.close()

    async def _loop_connections(self) -> _LoopConnections:
        if not self._is_async_prepared:
            await asyncio.to_thread(self._prepare)
        loop, loops = asyncio.get_running_loop(), self._open.loops
        with self._lock:
            connections = loops.get(loop)
            if connections is None or connections.client.is_closed:
                for closed in [each for each in loops if each.is_closed()]:
                    del loops[closed]
                connections = loops[loop] = _LoopConnections(loop, self._prepared())
            return connections

    def _prepare(self) -> None:
        with without_forks():
            # httpx loads both when it first connects.
            import anyio.lowlevel  # noqa: PLC0415
            import httpcore  # noqa: F401, PLC0415

            # anyio's part for asyncio is loaded when it is first used. In the caller's context, where an event loop may
            # be one of anyio's, it would refuse to run another.
            Context().run(anyio.run, anyio.lowlevel.checkpoint)
        with self._lock, without_forks():
            self._prepared()
        self._is_async_prepared = True

    def _prepared(self) -> dict[str, Any]:
        """The arguments of every client, the certificates among them; nothing takes longer."""
        if self._arguments is None:
            import httpx  # noqa: PLC0415 - importing the saver should cost little.

            options = {"trust_env": True, "verify": True, **self._options}
            options["verify"] = httpx.create_ssl_context(options["verify"], trust_env=options["trust_env"])
            self._arguments = {
                "auth": self._authorize(),
                "timeout": httpx.Timeout(
                    self._timeout, connect=min(self._timeout, _CONNECT_SECONDS_MAX), pool=None
                ),
                # How many there are at a time is decided by threads, and by turns. They end when they have been idle,
                # since a bound on idle ones counts all (1.0.9).
                "limits": httpx.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE_SECONDS_MAX
                ),
                **options,
            }
        return self._arguments


class _LoopConnections:
    """One event loop's client, which is closed on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, arguments: dict[str, Any]) -> None:
        import httpx  # noqa: PLC0415 - it is loaded by now.

        self.client = httpx.AsyncClient(**arguments)
        # httpx looks through all that wait each time that a connection is free.
        self._turns = asyncio.Semaphore(POOL_CONNECTIONS)
        self._end = LoopEnd.of(loop)
        self._end.open.add(self)

    async def send(self, request: Request) -> httpx.Response:
        async with self._turns:
            return await self.client.send(self.client.build_request(**request()))

    async def close(self) -> None:
        self._end.open.discard(self)
        await self.client.aclose()

    def close_soon(self) -> None:
        if not self.client.is_closed:
            self._end.close_soon(self)


class _Open:
    """What is open in one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.client: httpx.Client | None = None
        self.loops: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}


def _let_go(opened: _Open) -> None:
    """Close the connections of a transport that nobody has any more; those of a parent are its own to close."""
    if opened.process != os.getpid():
        return
    if opened.client is not None:
        opened.client.close()
    for each in list(opened.loops.values()):
        each.close_soon()
