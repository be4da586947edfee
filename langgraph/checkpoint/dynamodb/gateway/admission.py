"""Admission: authentication, and how slowly an answer may be read."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass

import anyio
from anyio.lowlevel import checkpoint
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .authentication import Authenticate
from .bodies import patience_seconds
from .principals import Principal
from .problems import unauthenticated
from .shares import REQUEST_BYTES, Shares

# An answer is handed to the server in pieces, so that little of it is left in a buffer when its reader has gone.
_PIECE_BYTES = 64 << 10
# The answer as it is, and as the server has it in its buffers.
_TIMES_AN_ANSWER = 2


@dataclass(frozen=True)
class Admission:
    """The middleware before everything that reads a body. It admits requests of known principals.

    Args:
        app: The application.
        authenticate: Returns a request's principal.
        sending: The bytes of answers that are not yet read.
        open_paths: The paths that need no credentials.
    """

    app: ASGIApp
    authenticate: Authenticate
    sending: Shares
    open_paths: Collection[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate a request, and serve it."""
        if scope["type"] != "http" or scope["path"] in self.open_paths:
            await self.app(scope, receive, send)
            return
        principal = await self.authenticate(HTTPConnection(scope))
        if principal is None:
            raise unauthenticated()
        async with AsyncExitStack() as held:
            scope["state"] |= {"principal": principal, "held": held}
            await self.app(scope, receive, self._timed(principal, send, held))

    def _timed(self, principal: Principal, send: Send, held: AsyncExitStack) -> Send:
        """Return a `send` that waits for its turn, lets go what the request held, and fails if the client is slow."""
        begun = list[Message]()

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Held back until it is the answer's turn, since no other status can be sent after this one.
                begun.append(message)
                return
            body = message.get("body", b"")
            patience = patience_seconds(len(body))
            async with AsyncExitStack() as sending:
                with anyio.fail_after(patience):
                    await sending.enter_async_context(
                        self.sending.turn(principal, REQUEST_BYTES + _TIMES_AN_ANSWER * len(body))
                    )
                await held.aclose()
                with anyio.fail_after(patience):
                    while begun:
                        await send(begun.pop())
                    last = max(len(body) - 1, 0) // _PIECE_BYTES * _PIECE_BYTES
                    for start in range(0, last, _PIECE_BYTES):
                        piece = body[start : start + _PIECE_BYTES]
                        await send({**message, "body": piece, "more_body": True})
                    await send({**message, "body": body[last:]})
            # After a client disconnects, a server's `send` returns at once. This is where the request can be cancelled.
            await checkpoint()

        return timed_send


def principal_of(connection: HTTPConnection) -> Principal:
    """Return the principal of an admitted request."""
    principal: Principal = connection.state.principal
    return principal
