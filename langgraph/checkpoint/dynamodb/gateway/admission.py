"""Admission: authentication, and how slowly an answer may be read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import anyio
from anyio.lowlevel import checkpoint
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import unauthenticated
from langgraph.checkpoint.dynamodb.gateway.shares import Holding

# How long a reader may take for a piece of an answer: this, and a second more for each 16 KiB.
_STALL_SECONDS = 30.0
_BYTES_PER_SECOND_MIN = 16 << 10


@dataclass(frozen=True)
class Admission:
    """The middleware before everything that reads a body. It admits requests of known principals.

    Args:
        app: The application.
        authenticate: Returns a request's principal.
        holding: Counts the bytes of answers that are not yet read.
        open_paths: The paths that need no credentials.
    """

    app: ASGIApp
    authenticate: Authenticate
    holding: Holding
    open_paths: Collection[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate a request, and serve it."""
        if scope["type"] != "http" or scope["path"] in self.open_paths:
            await self.app(scope, receive, send)
            return
        principal = await self.authenticate(HTTPConnection(scope))
        if principal is None:
            raise unauthenticated()
        scope["state"]["principal"] = principal
        await self.app(scope, receive, self._timed(principal, send))

    def _timed(self, principal: Principal, send: Send) -> Send:
        """Return a `send` that waits for memory for the answer, and fails if the client reads too slowly."""
        begun = list[Message]()

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Held back until there is room for the body, since no other status can be sent after this one.
                begun.append(message)
                return
            size = len(message.get("body", b""))
            with self.holding.request(principal) as held:
                held.add(size)
                while begun:
                    await send(begun.pop())
                with anyio.fail_after(_STALL_SECONDS + size / _BYTES_PER_SECOND_MIN):
                    await send(message)
            # After a client disconnects, a server's `send` returns at once. This is where the request can be cancelled.
            await checkpoint()

        return timed_send


def principal_of(connection: HTTPConnection) -> Principal:
    """Return the principal of an admitted request."""
    principal: Principal = connection.state.principal
    return principal
