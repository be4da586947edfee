"""Listening: the socket of the service."""

from __future__ import annotations

from socket import IPPROTO_TCP, TCP_NODELAY, socket

import uvicorn


def listen(config: uvicorn.Config) -> socket:
    """Return the socket of a server that is about to start. Clients that connect now only wait for the start."""
    listener = config.bind_socket()
    # asyncio sets this for sockets that it makes itself. Without it the body of an answer waits until the client has
    # acknowledged the headers, which takes forty milliseconds on Linux.
    listener.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    listener.listen(config.backlog)
    return listener
