"""The transport to the gateway: it sends calls over HTTP. It knows nothing of checkpoints.

The drivers run operations over it as they do over boto3: an operation's `Call` names an endpoint and has its arguments.
Operations are idempotent, so a request whose response was lost may be sent again.

There is one httpx client for blocking calls and one for each event loop, made when first needed. httpx and its
certificates are loaded with the first one, in an OS thread if there is an event loop.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Mapping
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from typing_extensions import override

from .._format.limits import POOL_CONNECTIONS, RETRY_SECONDS, THREADED_WORK_BYTES
from .._runtime.fork import without_forks
from .._runtime.loops import Connections, LoopConnections
from .._runtime.options import check_flag, check_seconds
from .._runtime.steps import Call
from ..gateway.call import asked_in, size_of
from . import options
from .documents import Reply
from .exchange import Exchange, ServiceClock

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

# API Gateway responds within about 30 seconds or not at all.
TIMEOUT_SECONDS = 30.0
# Proxies in front of a gateway close idle connections after about a minute.
_IDLE_SECONDS_MAX = 30.0
_CONNECT_SECONDS_MAX = 3.0

Request: TypeAlias = Callable[[], dict[str, Any]]
"""Returns the keyword arguments of httpx's `build_request`. Called when the request is sent: they have its deadline."""


async def _in_thread(size_bytes: int, function: Callable[[], T]) -> T:
    """Run a function, in an OS thread if it has much to do."""
    return await asyncio.to_thread(function) if size_bytes > THREADED_WORK_BYTES else function()


class GatewayTransport(Connections):
    """Sends calls to a gateway, for blocking callers and for any number of event loops.

    Its options are those of `HttpCheckpointSaver`.

    Raises:
        CheckpointerInputError: An option has a value that cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: options.Auth = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        allow_http: bool = False,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Check the options. Nothing is opened before the first request."""
        check_flag("allow_http", allow_http)
        options.check_auth(auth)
        self._url = options.checked_url(url, has_auth=auth is not None, allow_http=allow_http)
        check_seconds("timeout", timeout, at_least=0.001)
        check_seconds("retry_seconds", retry_seconds, at_least=0)
        self._retry_seconds = retry_seconds
        self._auth = auth
        self._clock = ServiceClock(timeout)
        self._timeout = timeout
        self._client_options = options.checked_client_options(client_options)
        super().__init__()

    @override
    def start(self) -> None:
        super().start()
        self._arguments: dict[str, Any] | None = None
        self._is_async_prepared = False
        self._client: httpx.Client | None = None
        self._end: Callable[[], object] | None = None

    # Blocking

    def send(self, call: Call) -> Any:
        """Call an endpoint and wait for its response.

        Args:
            call: The endpoint's name, and its arguments.

        Returns:
            What the response says.

        Raises:
            CheckpointerConfigurationError: The gateway does not accept the caller's identity, or does not allow the
                call; or the response is not from a gateway.
            CheckpointerError: There was no response, or one that describes an error, raised as its own class.
        """
        exchange = self._exchange(call)
        while True:
            try:
                return exchange.answer(self.send_once(exchange.request))
            except Exception as error:  # noqa: BLE001 - it is raised there, unless it may pass.
                wait = exchange.seconds_to_next(error)
            time.sleep(wait)

    def send_once(self, request: Request) -> Reply:
        """Send a request, once, and wait for its whole response."""
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

    def _blocking_client(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                with without_forks():
                    import httpx  # noqa: PLC0415 - importing the saver should cost little.

                    self._client = httpx.Client(**self._prepared())
                self._end = weakref.finalize(self, _end, self._client, os.getpid())
            return self._client

    @override
    def close(self) -> None:
        """Close the blocking client and the pool. Both are made again when needed."""
        super().close()
        with self._lock:
            end, self._end, self._client = self._end, None, None
        if end is not None:
            end()

    # Async

    async def asend(self, call: Call) -> Any:
        """Call an endpoint on the running event loop, as `send` does."""
        exchange = await _in_thread(size_of(asked_in(call)), partial(self._exchange, call))
        while True:
            try:
                reply = await self.asend_once(exchange.request)
                return await _in_thread(len(reply.body), partial(exchange.answer, reply))
            except Exception as error:  # noqa: BLE001 - it is raised there, unless it may pass.
                wait = exchange.seconds_to_next(error)
            await asyncio.sleep(wait)

    async def asend_once(self, request: Request) -> Reply:
        """Send a request on the running event loop, once, and wait for its whole response."""
        if not self._is_async_prepared:
            await asyncio.to_thread(self._prepare)
        while True:
            opened = self.on_loop(self._opened)
            try:
                async with opened.turns:
                    response = await opened.client.send(opened.client.build_request(**request()), stream=True)
                    try:
                        body = b"".join([each async for each in response.aiter_raw()])
                        return Reply(response.status_code, response.headers, body)
                    finally:
                        await response.aclose()
            except RuntimeError:
                # Another task has closed it meanwhile.
                if not opened.client.is_closed:
                    raise

    def _opened(self, loop: asyncio.AbstractEventLoop) -> LoopConnections:
        import httpx  # noqa: PLC0415 - it is loaded by now.

        client = httpx.AsyncClient(**self._prepared())
        return LoopConnections(loop, client, client.aclose, POOL_CONNECTIONS)

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

            # This module loads httpx.
            from .authorization import authorization  # noqa: PLC0415

            given = {"trust_env": True, "verify": True, **self._client_options}
            given["verify"] = httpx.create_ssl_context(given["verify"], trust_env=given["trust_env"])
            self._arguments = {
                "auth": authorization(self._auth),
                "timeout": httpx.Timeout(
                    self._timeout, connect=min(self._timeout, _CONNECT_SECONDS_MAX), pool=None
                ),
                # OS threads and turns bound the number of connections. Idle ones expire: httpcore's bound on idle
                # connections counts all connections (1.0.9).
                "limits": httpx.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE_SECONDS_MAX
                ),
                **given,
            }
        return self._arguments

    def _exchange(self, call: Call) -> Exchange:
        return Exchange(self._url, call, self._retry_seconds, self._clock)


def _end(client: httpx.Client, process: int) -> None:
    """Close the client of a transport that is closed or garbage-collected, unless it belongs to a parent process."""
    if process == os.getpid():
        client.close()
