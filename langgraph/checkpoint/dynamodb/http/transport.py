"""The transport to the gateway: it sends documents to endpoints over HTTP. It knows nothing of checkpoints.

The drivers run operations over it as they do over boto3: an operation's `Call` names an endpoint and has its document.
Operations are idempotent, so a request whose response was lost may be sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.checkpoint.dynamodb._format.limits import RETRY_SECONDS, THREADED_WORK_BYTES
from langgraph.checkpoint.dynamodb._runtime.options import check_flag, check_seconds
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http import documents, options
from langgraph.checkpoint.dynamodb.http.connections import Connections
from langgraph.checkpoint.dynamodb.http.exchange import Exchange, ServiceClock

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

# API Gateway responds within about 30 seconds or not at all.
TIMEOUT_SECONDS = 30.0


async def _in_thread(size_bytes: int, function: Callable[[], T]) -> T:
    """Run a function, in an OS thread if it has much to do."""
    return await asyncio.to_thread(function) if size_bytes > THREADED_WORK_BYTES else function()


class GatewayTransport:
    """Sends documents to a gateway, for blocking callers and for any number of event loops.

    Its options are those of `HttpCheckpointSaver`. With `asks_units` it asks for the capacity units of each request.

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
        asks_units: bool = False,
    ) -> None:
        """Check the options. Nothing is opened before the first request."""
        check_flag("allow_http", allow_http)
        options.check_auth(auth)
        self._url = options.checked_url(url, has_auth=auth is not None, allow_http=allow_http)
        check_seconds("timeout", timeout, at_least=0.001)
        check_seconds("retry_seconds", retry_seconds, at_least=0)
        self._retry_seconds = retry_seconds
        self._auth = auth
        self._asks_units = asks_units
        self._clock = ServiceClock(timeout)
        self._connections = Connections(
            timeout, options.checked_client_options(client_options), self._authorization
        )

    def _authorization(self) -> httpx.Auth | None:
        # The module loads httpx.
        from langgraph.checkpoint.dynamodb.http.authorization import authorization  # noqa: PLC0415

        return authorization(self._auth)

    # Blocking

    def send(self, call: Call) -> Any:
        """Call an endpoint and wait for its response.

        Args:
            call: The endpoint's name, and the document to send.

        Returns:
            The document of the response.

        Raises:
            CheckpointerConfigurationError: The gateway does not accept the caller's identity, or does not allow the
                call; or the response is not from a gateway.
            CheckpointerError: There was no response, or one that describes an error, raised as its own class.
        """
        exchange = self._exchange(call)
        while True:
            try:
                return exchange.document(self._connections.send(exchange.request))
            except Exception as error:  # noqa: BLE001 - it is raised there, unless it may pass.
                wait = exchange.seconds_to_next(error)
            time.sleep(wait)

    def pool(self) -> Executor:
        """Return the pool for parallel requests."""
        return self._connections.pool()

    def close(self) -> None:
        """Close the blocking client. The transport can be used again: it then makes a new client."""
        self._connections.close()

    # Async

    async def asend(self, call: Call) -> Any:
        """Call an endpoint on the running event loop, as `send` does."""
        exchange = await _in_thread(documents.size_of(call.params), partial(self._exchange, call))
        while True:
            try:
                reply = await self._connections.asend(exchange.request)
                return await _in_thread(len(reply.body), partial(exchange.document, reply))
            except Exception as error:  # noqa: BLE001 - it is raised there, unless it may pass.
                wait = exchange.seconds_to_next(error)
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._connections.aclose()

    def _exchange(self, call: Call) -> Exchange:
        return Exchange(self._url, call, self._retry_seconds, self._clock, asks_units=self._asks_units)
