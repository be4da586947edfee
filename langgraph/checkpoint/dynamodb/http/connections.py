"""Connections to the gateway: one httpx client for blocking calls and one for each event loop.

They are made when first needed, and closed with the transport or with their loop. httpx and its certificates are loaded
with the first one, in an OS thread if there is an event loop.
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
from langgraph.checkpoint.dynamodb.http.documents import Reply

if TYPE_CHECKING:
    import httpx

# Proxies in front of a gateway close idle connections after about a minute.
_IDLE_SECONDS_MAX = 30.0
_CONNECT_SECONDS_MAX = 3.0

Request: TypeAlias = Callable[[], dict[str, Any]]
"""Returns the keyword arguments of httpx's `build_request`. Called when the request is sent: they have its deadline."""


class Connections:
    """The clients of one transport."""

    def __init__(self, timeout: float, options: dict[str, Any], authorize: Callable[[], Any]) -> None:
        """Take the arguments of clients. Nothing is opened yet.

        Args:
            timeout: Seconds to wait for the next piece of a response.
            options: Keyword arguments of httpx's clients.
            authorize: Returns the httpx authorization. Called when httpx may be loaded.
        """
        self._timeout = timeout
        self._options = options
        self._authorize = authorize
        start_in_every_process(self)

    def start(self) -> None:
        """Start with nothing open; also after a fork, which copies neither OS threads nor usable connections."""
        self._lock = threading.Lock()
        self._arguments: dict[str, Any] | None = None
        self._is_async_prepared = False
        self._executor: ThreadPoolExecutor | None = None
        self._open = _Open()
        weakref.finalize(self, _let_go, self._open)

    # Blocking

    def send(self, request: Request) -> Reply:
        """Send a request and wait for its whole response."""
        while True:
            client = self._blocking_client()
            try:
                response = client.send(client.build_request(**request()), stream=True)
                try:
                    return Reply(response.status_code, response.headers, b"".join(response.iter_raw()))
                finally:
                    response.close()
            except RuntimeError:
                # Another thread has closed it meanwhile.
                if not client.is_closed:
                    raise

    def pool(self) -> Executor:
        """Return the pool for parallel requests."""
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

    async def asend(self, request: Request) -> Reply:
        """Send a request on the running event loop and wait for its whole response."""
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
            # httpx imports both when it first connects.
            import anyio.lowlevel  # noqa: PLC0415
            import httpcore  # noqa: F401, PLC0415

            # anyio imports its asyncio backend when it is first used. A fresh context is needed: in the caller's, which
            # may belong to an event loop of anyio, it would refuse to run another one.
            Context().run(anyio.run, anyio.lowlevel.checkpoint)
        with self._lock, without_forks():
            self._prepared()
        self._is_async_prepared = True

    def _prepared(self) -> dict[str, Any]:
        """Return the arguments of every client, with the certificates, whose loading takes longest."""
        if self._arguments is None:
            import httpx  # noqa: PLC0415 - importing the saver should cost little.

            options = {"trust_env": True, "verify": True, **self._options}
            options["verify"] = httpx.create_ssl_context(options["verify"], trust_env=options["trust_env"])
            self._arguments = {
                "auth": self._authorize(),
                "timeout": httpx.Timeout(
                    self._timeout, connect=min(self._timeout, _CONNECT_SECONDS_MAX), pool=None
                ),
                # OS threads and turns bound the number of connections. Idle ones expire: httpcore's bound on idle
                # connections counts all connections (1.0.9).
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
        # Take turns: httpx looks through all waiting requests each time that a connection is free.
        self._turns = asyncio.Semaphore(POOL_CONNECTIONS)
        self._end = LoopEnd.of(loop)
        self._end.open.add(self)

    async def send(self, request: Request) -> Reply:
        async with self._turns:
            response = await self.client.send(self.client.build_request(**request()), stream=True)
            try:
                body = b"".join([each async for each in response.aiter_raw()])
                return Reply(response.status_code, response.headers, body)
            finally:
                await response.aclose()

    async def close(self) -> None:
        self._end.open.discard(self)
        await self.client.aclose()

    def close_soon(self) -> None:
        if not self.client.is_closed:
            self._end.close_soon(self)


class _Open:
    """The open clients of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.client: httpx.Client | None = None
        self.loops: dict[asyncio.AbstractEventLoop, _LoopConnections] = {}


def _let_go(opened: _Open) -> None:
    """Close the connections of a transport that was garbage-collected, unless they belong to a parent process."""
    if opened.process != os.getpid():
        return
    if opened.client is not None:
        opened.client.close()
    for each in list(opened.loops.values()):
        each.close_soon()
