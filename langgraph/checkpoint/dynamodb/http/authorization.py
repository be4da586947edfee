"""The authorization of requests in httpx's form: a token, an AWS signature, or a given `httpx.Auth`.

This module is loaded with httpx, for the first request. A token's source or AWS credentials may block: they do so in an
OS thread if there is an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from typing import Any, TypeAlias

import httpx

from langgraph.checkpoint.dynamodb.http.options import Auth, checked_token
from langgraph.checkpoint.dynamodb.http.signing import SigV4

Flow: TypeAlias = "Generator[httpx.Request | Callable[[], Any], Any, None]"
"""A generator of requests and of functions that may block, which is sent their responses and results."""


def authorization(auth: Auth) -> httpx.Auth | None:
    """Return the httpx authorization for the constructor's `auth`, which has been checked."""
    if auth is None or isinstance(auth, httpx.Auth):
        return auth
    return _Flowing(partial(_signed, auth) if isinstance(auth, SigV4) else _Bearer(auth).flow)


class _Flowing(httpx.Auth):
    """An authorization with one flow for blocking clients and for event loops."""

    def __init__(self, flow: Callable[[httpx.Request], Flow]) -> None:
        self._flow = flow

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        flow, outcome = self._flow(request), None
        while (step := _next(flow, outcome)) is not None:
            outcome = (yield step) if isinstance(step, httpx.Request) else step()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        flow, outcome = self._flow(request), None
        while (step := _next(flow, outcome)) is not None:
            outcome = (yield step) if isinstance(step, httpx.Request) else await asyncio.to_thread(step)


def _next(flow: Flow, outcome: Any) -> httpx.Request | Callable[[], Any] | None:
    try:
        return flow.send(outcome)
    except StopIteration:
        return None


class _Bearer:
    """A token, or a function that returns one, which is called again when the gateway rejects the token."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._token: str | None = None
        self._give: Callable[[], str] = (lambda: token) if isinstance(token, str) else token

    def flow(self, request: httpx.Request) -> Flow:
        token = self._token or (yield self._ask)
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            # Of many requests with the old token, only the first one that is rejected calls the function.
            if self._token == token:
                yield self._ask
            if self._token != token:
                request.headers["Authorization"] = f"Bearer {self._token}"
                yield request

    def _ask(self) -> str:
        self._token = checked_token(self._give())
        return self._token


def _signed(signer: SigV4, request: httpx.Request) -> Flow:
    request.headers.update((yield partial(signer.headers, request.method, str(request.url), request.content)))
    yield request
