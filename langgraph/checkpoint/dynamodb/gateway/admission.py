"""Admission: who makes a request, whether it is one too many, and how fast its answer has to be read."""

from __future__ import annotations

from collections.abc import Collection

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


class Admission:
    """Lets requests in: the middleware before everything that reads a body."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticate: Authenticate,
        limits: Limits,
        rates: Rates,
        holding: Holding,
        open_paths: Collection[str],
    ) -> None:
        """Take what tells principals, what bounds them, and the paths that are open to everybody."""
        self._app = app
        self._authenticate = authenticate
        self._limits = limits
        self._rates = rates
        self._holding = holding
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of somebody who may make it."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        principal = await self._authenticate(HTTPConnection(scope))
        if principal is None:
            raise unauthenticated()
        scope["state"]["principal"] = principal
        self._rates.take(principal)
        await self._app(scope, receive, self._paced(principal, send))

    def _paced(self, principal: Principal, send: Send) -> Send:
        """Send an answer for as long as its reader takes it, and its principal has room for what is not yet read."""
        pace, begun = Pace(self._limits), list[Message]()

        async def paced_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Held back until there is room for the body, since no status can be sent after this one.
                begun.append(message)
                return
            size = len(message.get("body", b""))
            with self._holding.request(principal) as held:
                held.add(size)
                while begun:
                    await send(begun.pop())
                await pace.wait_for(send(message))
            pace.moved(size)
            # To somebody who has gone a server sends nothing, and returns at once. Here the request can be cancelled.
            await checkpoint()

        return paced_send


def principal_of(connection: HTTPConnection) -> Principal:
    """The principal of a request that was let in."""
    principal: Principal = connection.state.principal
    return principal
