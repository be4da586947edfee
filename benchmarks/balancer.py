"""A load balancer that gives each request to a service at random, or by its thread, and counts what clients send.

Requests of one connection go to different services too. At random is the worst for what a service has in its cache. It
runs on a thread of the benchmark.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import uvicorn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.types import Receive, Scope, Send

_HOST = "127.0.0.1"
# Those are about one connection, and this one's ends here.
_OF_A_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding", b"host"}


class Balancer:
    """Passes requests on.

    Attributes:
        address: Where it answers.
        sent_bytes: What clients have sent so far: first lines, headers and bodies.
    """

    def __init__(self, addresses: Sequence[str], *, by_thread: bool = False) -> None:
        """Take where the services answer, and whether the header that names a thread chooses one of them."""
        self.address = ""
        self.sent_bytes = 0
        self._services = addresses
        self._by_thread = by_thread
        self._rng = random.Random(1)
        self._client: httpx.AsyncClient | None = None

    @contextmanager
    def serving(self) -> Iterator[Balancer]:
        """Pass requests on for the duration of the context."""
        server = uvicorn.Server(
            uvicorn.Config(self._serve, interface="asgi3", log_level="error", lifespan="off")
        )
        with socket.create_server((_HOST, 0)) as listener:
            self.address = f"http://{_HOST}:{listener.getsockname()[1]}"
            thread = threading.Thread(target=asyncio.run, args=(self._run(server, listener),))
            thread.start()
            try:
                yield self
            finally:
                server.should_exit = True
                thread.join()

    async def _run(self, server: uvicorn.Server, listener: socket.socket) -> None:
        async with httpx.AsyncClient(timeout=120) as self._client:
            await server.serve([listener])

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._client is None:
            raise AssertionError("Nothing is served before the client is there.")
        body = await _body(receive)
        self.sent_bytes += _size(scope) + len(body)
        request = self._client.build_request(
            scope["method"],
            f"{self._chosen(scope)}{scope['path']}",
            headers=[each for each in scope["headers"] if each[0] not in _OF_A_CONNECTION],
            content=body,
        )
        response = await self._client.send(request, stream=True)
        headers = [each for each in response.headers.raw if each[0].lower() not in _OF_A_CONNECTION]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for part in response.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _chosen(self, scope: Scope) -> str:
        """Return the address of the service that a request goes to."""
        thread = dict(scope["headers"]).get(b"x-thread") if self._by_thread else None
        if thread is None:
            return self._rng.choice(self._services)
        return self._services[int(thread, 16) % len(self._services)]


async def _body(receive: Receive) -> bytes:
    body, is_more = b"", True
    while is_more:
        message = await receive()
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
    return body


def _size(scope: Scope) -> int:
    """How long the first line and the headers are, as they were sent."""
    line = f"{scope['method']} {scope['path']} HTTP/1.1\r\n\r\n"
    return len(line) + sum(len(name) + len(value) + len(": \r\n") for name, value in scope["headers"])
