"""The socket at which the service is reached."""

from __future__ import annotations

import socket
from contextlib import closing

import uvicorn

from langgraph.checkpoint.dynamodb.gateway.listening import listen


async def _application(scope: object, receive: object, send: object) -> None:
    """Never called: nothing serves."""


def test_whoever_connects_before_the_server_is_up_waits_for_it_and_for_nothing_else() -> None:
    with (
        closing(listen(uvicorn.Config(_application, port=0))) as listener,
        socket.create_connection(listener.getsockname(), timeout=5),
    ):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
