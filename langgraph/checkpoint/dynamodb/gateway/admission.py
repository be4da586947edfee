"""Admission: authentication, rate limits, and the pace at which an answer must be read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from anyio.lowlevel import checkpoint
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate
from langgraph.checkpoint.dynamodb.gateway.holding import Holding
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.pace import Pace
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import unauthenticated
from langgraph.checkpoint.dynamodb.gateway.rates import Rates


@dataclass(frozen=True)
class Admission:
    """The middleware before everything that reads a body. It admits requests of known principals.

    Args:
        app: The application.
        authenticate: Returns a request's principal.
        limits: The limits of the service.
        rates: Counts each principal's requests.
        holding: Counts the bytes of answers that are not yet read.
        open_paths: The paths that need no credentials.
    """

    app: ASGIApp
    authenticate: Authenticate
    limits: Limits
    rates: Rates
    holding: Holding
    open_paths: Collection[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate a request, check its rate, and serve it."""
        if scope["type"] != "http" or scope["path"] in self.open_paths:
            await self.app(scope, receive, send)
            return
        principal = await self.authenticate(HTTPConnection(scope))
        if principal is None:
            raise unauthenticated()
        scope["state"]["principal"] = principal
        self.rates.take(principal)
        await self.app(scope, receive, self._paced(principal, send))

    def _paced(self, principal: Principal, send: Send) -> Send:
        """Return a `send` that waits for memory for the answer, and fails if the client reads too slowly."""
        pace, begun = Pace(self.limits), list[Message]()

        async def paced_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Held back until there is room for the body, since no other status can be sent after this one.
                begun.append(message)
                return
            size = len(message.get("body", b""))
            with self.holding.request(principal) as held:
                held.add(size)
                while begun:
                    await send(begun.pop())
                await pace.wait_for(send(message))
            pace.moved(size)
            # After a client disconnects, a server's `send` returns at once. This is where the request can be cancelled.
            await checkpoint()

        return paced_send


def principal_of(connection: HTTPConnection) -> Principal:
    """Return the principal of an admitted request."""
    principal: Principal = connection.state.principal
    return principal
