"""Listening: the socket of the service, and how long the service waits for a request's headers."""

from __future__ import annotations

import asyncio
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import cast

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_HEADERS_SECONDS = 10


def listen(config: uvicorn.Config) -> socket:
    """Return the socket of a server that is about to start. Clients that connect now only wait for the start."""
    listener = config.bind_socket()
    # asyncio sets this for sockets that it makes itself. Without it the body of an answer waits until the client has
    # acknowledged the headers, which takes forty milliseconds on Linux.
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    listener.listen(config.backlog)
    return listener


class Http(H11Protocol):
    """uvicorn's protocol with a timeout for a request's headers, which uvicorn lacks. Pass it as `http=`."""

    _giving_up: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._expect_headers()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_headers()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_expecting()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        """Start the timeout unless a request is served. The rest of one that was answered early does not stop it."""
        if _is_served(self.cycle):
            self._stop_expecting()
        elif self._giving_up is None:
            self._giving_up = self.loop.call_later(_HEADERS_SECONDS, self.transport.abort)

    def _stop_expecting(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


def _is_served(cycle: RequestResponseCycle | None) -> bool:
    return cycle is not None and not cycle.response_complete
