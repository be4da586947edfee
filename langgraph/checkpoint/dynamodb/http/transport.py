"""The transport to the gateway: it sends calls over HTTP. It knows nothing of checkpoints.

The drivers run operations over it as they do over boto3: an operation's `Call` names an endpoint and has its arguments.
Operations are idempotent, so a request whose response was lost may be sent again.

There is one httpx client for blocking calls and one for each event loop, made when first needed. The first one loads
the certificates, in an OS thread if there is an event loop.

The options are checked here before anything is opened. Messages say what to pass instead, and show no secret.
"""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar
from urllib.parse import SplitResult, urlsplit

import httpx
from typing_extensions import override

from .._format.limits import POOL_CONNECTIONS, RETRY_SECONDS, THREADED_WORK_BYTES
from .._runtime.failures import is_of_this_machine
from .._runtime.fork import without_forks
from .._runtime.loops import Connections, LoopConnections
from .._runtime.options import check_flag, check_seconds
from .._runtime.steps import Call
from ..errors import CheckpointerInputError
from .exchange import Exchange, RawResponse, ServiceClock, asked_in, size_of

if TYPE_CHECKING:
    from .._runtime.events import Events, OnEvent

Auth: TypeAlias = str | Callable[[], str] | httpx.Auth | None
"""A bearer token, a function that returns one, or an httpx authorization."""


class GatewayKeywords(TypedDict, total=False):
    """The options that the constructors of the gateway's clients hand on. `config/http.py` describes them."""

    auth: Auth
    timeout: float
    retry_seconds: float
    allow_http: bool
    client_options: Mapping[str, Any] | None
    on_event: OnEvent | Events | None


# The keyword arguments of httpx's clients that callers may set.
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_CLIENT_OPTIONS = ("headers", "http2", "proxy", "trust_env", "verify")


def checked_url(value: Any, *, has_auth: bool, allow_http: bool) -> str:
    """Return the gateway's address without a trailing slash; raise if it is not one, or would expose a secret."""
    parts = _parts(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise CheckpointerInputError(
            'url is not the address of a gateway; begin it with https://, such as "https://gateway.example"'
        )
    # Parsing drops these, and the address would still have them.
    if not value.isprintable() or value != value.strip():
        msg = "url has spaces around it or characters that cannot be sent; if it comes from a file, strip it"
        raise CheckpointerInputError(msg)
    # A query may be empty, and endpoints would still come behind it.
    if parts.username is not None or "?" in value or "#" in value:
        msg = "url has a user, a password, a query or a fragment in it; remove them, and pass credentials as auth="
        raise CheckpointerInputError(msg)
    if has_auth and parts.scheme == "http" and not allow_http and not is_of_this_machine(parts.hostname):
        msg = (
            f"url is {value}, where everybody on the way could read what auth= gives; use https, or pass"
            " allow_http=True where the network is your own"
        )
        raise CheckpointerInputError(msg)
    return str(value).rstrip("/")


def _parts(value: Any) -> SplitResult | None:
    if not isinstance(value, str):
        return None
    try:
        parts = urlsplit(value)
        # The port is parsed only when it is accessed, and the name is encoded only when it is looked up.
        _ = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        return None
    return parts


def check_prefix(value: Any) -> None:
    """Raise if a value cannot be the prefix of threads."""
    if not isinstance(value, str):
        msg = f'thread_prefix is {value!r}; give text such as "acme/", or "" for none'
        raise CheckpointerInputError(msg)


def check_auth(value: Any) -> None:
    """Raise if a value is not a kind of authorization."""
    if isinstance(value, str):
        checked_token(value)
        return
    if value is None or isinstance(value, httpx.Auth):
        return
    if isinstance(value, type) or not callable(value):
        msg = f"auth is a {type(value).__name__}; give a token, a function that returns one, or an httpx.Auth"
        raise CheckpointerInputError(msg)


def checked_token(value: Any) -> str:
    """Return a token; raise if it cannot be part of a header, without showing it."""
    if not isinstance(value, str) or not value or not all("!" <= each <= "~" for each in value):
        msg = (
            "the token of auth= cannot be sent: it must be ASCII text without spaces or line breaks; if it comes from a"
            " file, strip it"
        )
        raise CheckpointerInputError(msg)
    return value


def checked_client_options(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return keyword arguments for httpx's clients; raise if one is unknown or cannot be set here."""
    options = dict(value or {})
    for name in options:
        if name not in _CLIENT_OPTIONS:
            msg = f"client_options has no option {name!r}; use one of {', '.join(_CLIENT_OPTIONS)}"
            raise CheckpointerInputError(msg)
    for name, text in dict(options.get("headers") or {}).items():
        # httpx would show the header's value in its own error.
        if not isinstance(text, str) or not (text.isascii() and text.isprintable()):
            msg = f"client_options has a header {name!r} with characters that are not allowed; use printable ASCII"
            raise CheckpointerInputError(msg)
    if options.get("proxy") is not None and not _is_proxy(options["proxy"]):
        # httpx would show the address, with the password in it.
        msg = (
            "proxy is not the address of a proxy; give one such as http://user:password@proxy.example:8080, with"
            " special characters of the password percent-encoded"
        )
        raise CheckpointerInputError(msg)
    return options


def _is_proxy(value: Any) -> bool:
    """Tell whether httpx can use a value as a proxy: an address, or an object of its own."""
    if isinstance(value, httpx.Proxy):
        value = value.url
    try:
        url = httpx.URL(value)
    except (httpx.InvalidURL, TypeError, ValueError):
        return False
    # What follows the port may be the rest of a password, and a proxy has nothing there.
    has_end = url.raw_path != b"/" or bool(url.fragment)
    return url.scheme in _PROXY_SCHEMES and url.host != "" and (url.port or 0) <= 65_535 and not has_end


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


T = TypeVar("T")

# API Gateway responds within about 30 seconds or not at all.
TIMEOUT_SECONDS = 30.0
# Proxies in front of a gateway close idle connections after about a minute.
_IDLE_SECONDS_MAX = 30.0
_CONNECT_SECONDS_MAX = 3.0

Request: TypeAlias = Callable[[], dict[str, Any]]
"""Returns the keyword arguments of httpx's `build_request`. Called when the request is sent: they have its deadline."""


async def _in_thread(size_bytes: int, function: Callable[[], T]) -> T:
    """Run a function, in an OS thread if it has much to do."""
    return await asyncio.to_thread(function) if size_bytes > THREADED_WORK_BYTES else function()


class GatewayTransport(Connections):
    """Sends calls to a gateway, for blocking callers and for any number of event loops.

    Its options are those of `HttpCheckpointSaver`.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Auth = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        allow_http: bool = False,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Check the options. Nothing is opened before the first request."""
        check_flag("allow_http", allow_http)
        check_auth(auth)
        self._url = checked_url(url, has_auth=auth is not None, allow_http=allow_http)
        check_seconds("timeout", timeout, at_least=0.001)
        check_seconds("retry_seconds", retry_seconds, at_least=0)
        self._retry_seconds = retry_seconds
        self._auth = auth
        self._clock = ServiceClock(timeout)
        self._timeout = timeout
        self._client_options = checked_client_options(client_options)
        super().__init__()

    @override
    def start(self) -> None:
        super().start()
        self._arguments: dict[str, Any] | None = None
        self._is_async_prepared = False
        self._client: httpx.Client | None = None
        self._end: Callable[[], object] | None = None

    # Blocking

    def send(self, call: Call) -> Any:
        """Call an endpoint, and return what its response says."""
        exchange = self._exchange(call)
        while True:
            try:
                return exchange.result(self.send_once(exchange.request))
            except Exception as error:  # noqa: BLE001 - it is raised there, unless it may pass.
                wait = exchange.seconds_to_next(error)
            time.sleep(wait)

    def send_once(self, request: Request) -> RawResponse:
        """Send a request, once, and wait for its whole response."""
        while True:
            client = self._blocking_client()
            try:
                response = client.send(client.build_request(**request()), stream=True)
                try:
                    return RawResponse(response.status_code, response.headers, b"".join(response.iter_raw()))
                finally:
                    response.close()
            except RuntimeError:
                # Another thread has closed it meanwhile.
                if not client.is_closed:
                    raise

    def _blocking_client(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                with without_forks():
                    self._client = httpx.Client(**self._prepared())
                self._end = weakref.finalize(self, _end, self._client, os.getpid())
            return self._client

    @override
    def close(self) -> None:
        """Close the blocking client and the pool. Both are made again when needed."""
        super().close()
        with self._lock:
            end, self._end, self._client = self._end, None, None
        if end is not None:
            end()

    # Async

    async def asend(self, call: Call) -> Any:
        """Call an endpoint on the running event loop, as `send` does."""
        exchange = await _in_thread(size_of(asked_in(call)), partial(self._exchange, call))
        while True:
            try:
                response = await self.asend_once(exchange.request)
                return await _in_thread(len(response.body), partial(exchange.result, response))
            except Exception as error:  # noqa: BLE001 - it is raised there, unless it may pass.
                wait = exchange.seconds_to_next(error)
            await asyncio.sleep(wait)

    async def asend_once(self, request: Request) -> RawResponse:
        """Send a request on the running event loop, once, and wait for its whole response."""
        if not self._is_async_prepared:
            await asyncio.to_thread(self._prepare)
        while True:
            opened = self.on_loop(self._opened)
            try:
                async with opened.turns:
                    response = await opened.client.send(opened.client.build_request(**request()), stream=True)
                    try:
                        body = b"".join([each async for each in response.aiter_raw()])
                        return RawResponse(response.status_code, response.headers, body)
                    finally:
                        await response.aclose()
            except RuntimeError:
                # Another task has closed it meanwhile.
                if not opened.client.is_closed:
                    raise

    def _opened(self, loop: asyncio.AbstractEventLoop) -> LoopConnections:
        client = httpx.AsyncClient(**self._prepared())
        return LoopConnections(loop, client, client.aclose, POOL_CONNECTIONS)

    def _prepare(self) -> None:
        with without_forks():
            # httpx imports both when it first connects.
            import anyio.lowlevel  # noqa: PLC0415
            import httpcore  # noqa: F401, PLC0415

            # anyio imports its asyncio backend when it is first used. A fresh context is needed: in the caller's, which
            # may belong to an event loop of anyio, it would refuse to run another one.
            Context().run(anyio.run, anyio.lowlevel.checkpoint)
        with self._lock, without_forks():
            self._prepared()
        self._is_async_prepared = True

    def _prepared(self) -> dict[str, Any]:
        """Return the arguments of every client, with the certificates, whose loading takes longest."""
        if self._arguments is None:
            given = {"trust_env": True, "verify": True, **self._client_options}
            given["verify"] = httpx.create_ssl_context(given["verify"], trust_env=given["trust_env"])
            self._arguments = {
                "auth": authorization(self._auth),
                "timeout": httpx.Timeout(
                    self._timeout, connect=min(self._timeout, _CONNECT_SECONDS_MAX), pool=None
                ),
                # OS threads and turns bound the number of connections. Idle ones expire: httpcore's bound on idle
                # connections counts all connections (1.0.9).
                "limits": httpx.Limits(
                    max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE_SECONDS_MAX
                ),
                **given,
            }
        return self._arguments

    def _exchange(self, call: Call) -> Exchange:
        return Exchange(self._url, call, self._retry_seconds, self._clock)


def _end(client: httpx.Client, process: int) -> None:
    """Close the client of a transport that is closed or garbage-collected, unless it belongs to a parent process."""
    if process == os.getpid():
        client.close()
