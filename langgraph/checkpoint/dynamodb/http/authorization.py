"""The authorization of requests in httpx's form: a token, a function that returns one, or a given `httpx.Auth`.

This module is loaded with httpx, for the first request. A function may block: it does so in an OS thread if there is an
event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator

import httpx

from .options import Auth, checked_token


def authorization(auth: Auth) -> httpx.Auth | None:
    """Return the httpx authorization for the constructor's `auth`, which has been checked."""
    return auth if auth is None or isinstance(auth, httpx.Auth) else _Bearer(auth)


class _Bearer(httpx.Auth):
    """A token, or a function that returns one, which is called again when the gateway rejects the token.

    Of many requests with the old token, only the first one that is rejected calls the function.
    """

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._token: str | None = None
        self._give: Callable[[], str] = (lambda: token) if isinstance(token, str) else token

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._token or self._ask()
        response = yield _with_token(request, token)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            new = self._ask() if self._token == token else self._token
            if new != token:
                yield _with_token(request, new)

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        token = self._token or await asyncio.to_thread(self._ask)
        response = yield _with_token(request, token)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            new = await asyncio.to_thread(self._ask) if self._token == token else self._token
            if new != token:
                yield _with_token(request, new)

    def _ask(self) -> str:
        self._token = checked_token(self._give())
        return self._token


def _with_token(request: httpx.Request, token: str | None) -> httpx.Request:
    request.headers["Authorization"] = f"Bearer {token}"
    return request
