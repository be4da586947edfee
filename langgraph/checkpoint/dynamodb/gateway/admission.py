"""Admission: who makes a request, whether it is one too many, and its place among those that are served."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.places import Places
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.problems import unauthenticated
from langgraph.checkpoint.dynamodb.gateway.rates import Rates


class Admission:
    """Lets requests in: the middleware before everything that reads a body."""

    def __init__(
        self, app: ASGIApp, *, authenticate: Authenticate, limits: Limits, open_paths: Collection[str]
    ) -> None:
        """Take what tells principals, the limits, and the paths that are open to everybody."""
        self._app = app
        self._authenticate = authenticate
        self._open_paths = open_paths
        self._seconds = limits.request_seconds_max
        self._rates = Rates(limits.requests_per_second, limits.burst_requests)
        self._places = Places(limits.in_flight_max, limits.waiting_max, limits.request_seconds_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request when it is its turn."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            await self._app(scope, receive, send)
            return
        principal = await self._authenticate(HTTPConnection(scope))
        if principal is None:
            raise unauthenticated()
        scope["state"]["principal"] = principal
        self._rates.take(principal.name)

        async def patient_send(message: Message) -> None:
            # Who does not read is not waited for: others want the place.
            await asyncio.wait_for(send(message), self._seconds)

        async with self._places.place(principal.name):
            await self._app(scope, receive, patient_send)


def principal_of(connection: HTTPConnection) -> Principal:
    """The principal of a request that was let in."""
    principal: Principal = connection.state.principal
    return principal
