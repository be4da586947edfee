"""Listening: the socket at which the service is reached."""

from __future__ import annotations

from socket import IPPROTO_TCP, TCP_NODELAY, socket

import uvicorn


def listen(config: uvicorn.Config) -> socket:
    """Return the socket of a server that is about to start: whoever connects from now on waits for that moment only."""
    listener = config.bind_socket()
    # asyncio does so for sockets that it makes itself. Without it the body of an answer waits until the client has
    # confirmed the headers, which is forty milliseconds on Linux.
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    listener.listen(config.backlog)
    return listener
