"""Who asks, as httpx wants to know it: a token, a signature of AWS, or whatever of httpx's own was given.

It is loaded with httpx, when the first request is made. What may block, a token's source or credentials of AWS, does so
in a thread where there is an event loop.
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
"""Requests to be sent, each answered by its response, and functions that may block, answered by what they return."""


def authorization(auth: Auth) -> httpx.Auth | None:
    """Make httpx's authorization of what the constructor was given, which has been checked."""
    if auth is None or isinstance(auth, httpx.Auth):
        return auth
    return _Flowing(_Signature(auth).flow if isinstance(auth, SigV4) else _Bearer(auth).flow)


class _Flowing(httpx.Auth):
    """An authorization whose flow is written once, for blocking clients and for event loops."""

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
    """A token, or what gives one: that is asked again once the gateway does not take the token any more."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._token = token if isinstance(token, str) else None
        self._give: Callable[[], str] = (lambda: token) if isinstance(token, str) else token
        self._is_given_anew = not isinstance(token, str)

    def flow(self, request: httpx.Request) -> Flow:
        token = self._token or (yield self._ask)
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED and self._is_given_anew:
            # Of many requests with the old token, the first one that is refused asks for all.
            if self._token == token:
                yield self._ask
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    def _ask(self) -> str:
        self._token = checked_token(self._give())
        return self._token


class _Signature:
    """AWS's signature."""

    def __init__(self, signer: SigV4) -> None:
        self._signer = signer

    def flow(self, request: httpx.Request) -> Flow:
        signed = yield partial(self._signer.headers, request.method, str(request.url), request.content)
        request.headers.update(signed)
        yield request
