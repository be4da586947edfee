"""The viewer's server: static files and documents, for this machine only, and only with the token.

A page of another origin may send requests here, and a name of its own may resolve to this machine (DNS rebinding). So
the address contains a random token, `Host` must be this server's, and so must `Origin`, if a browser sends it.

Other users of the machine may see the address with which a browser is started. So the browser gets an invitation
instead, which redirects to the address once.
"""

import json
import mimetypes
import socket
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from http import HTTPStatus
from secrets import token_urlsafe
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import Self

from .. import errors
from .._runtime.failures import account_remedy
from . import STATIC, documents
from .responses import Responses

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_BY_ADDRESS = "open the page by the address that the command printed"


class Gate:
    """Admits the requests of this server's own page, and refuses all others in the same way."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str, invitation: str | None) -> None:
        """Guard an app that is reached by some hosts with their port, at paths that begin with the token."""
        self._app = app
        self._invitation = invitation
        self._hosts = hosts
        self._origins = frozenset(f"http://{each}" for each in hosts)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        # `OPTIONS *` and `CONNECT host:port` have no path.
        _, key, *rest = scope["path"].split("/", 2) if scope["path"].startswith("/") else ("", "")
        is_own = self._is_own(Request(scope)) and len(rest) == 1
        if is_own and _is(key, self._token):
            await self._app({**scope, "path": f"/{rest[0]}", "raw_path": b""}, receive, guarded)
        elif is_own and self._invitation is not None and _is(key, self._invitation):
            self._invitation = None
            await RedirectResponse(f"/{self._token}/", 303)(scope, receive, guarded)
        else:
            await problem(403, _BY_ADDRESS)(scope, receive, guarded)

    def _is_own(self, request: Request) -> bool:
        headers = request.headers
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        return (
            headers.get("host", "").lower() in self._hosts
            and (origin is None or origin.lower() in self._origins)
            and (site is None or site in ("same-origin", "none"))
        )


def _is(key: str, secret: str) -> bool:
    return compare_digest(key.encode(errors="surrogatepass"), secret.encode())


def make_app(responses: Responses, *, port: int, token: str, invitation: str | None = None) -> ASGIApp:
    """Return the app, for a port of 127.0.0.1. It requires the token or, once, the invitation."""
    # A machine may have another type for it, with which a browser does not run a script that it may not sniff.
    mimetypes.add_type("text/javascript", ".js")
    routes = [
        Route("/api/{name}", _responding(responses), methods=["GET"]),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _not_served})
    return Gate(app, hosts, token, invitation)


def _responding(responses: Responses) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        name, parameters = request.path_params["name"], dict(request.query_params)
        try:
            document = await run_in_threadpool(responses.document, name, parameters)
        except Exception as error:
            refused = refusal(error, responses.table_name)
            if refused is None:
                raise
            return refused
        return _json(document, 200, "application/json")

    return respond


async def _not_served(_: Request, error: Any) -> Response:
    """Return the problem of a path or a method that the page does not have."""
    return problem(error.status_code, _BY_ADDRESS)


# Every other error of ours is about the table.
_STATUSES: Mapping[type[errors.CheckpointerError], int] = {
    errors.CheckpointerInputError: 400,
    errors.CheckpointNotFoundError: 404,
    errors.CheckpointerUnavailableError: 503,
}


def refusal(error: Exception, table_name: str) -> Response | None:
    """Return the response to an error, or None for an unforeseen one."""
    if isinstance(error, errors.CheckpointerError):
        return problem(_STATUSES.get(type(error), 502), str(error))
    remedy = account_remedy(table_name, error)
    if remedy is None and not hasattr(error, "response"):
        return None
    return problem(502, remedy or str(error))


def problem(status: int, detail: str) -> Response:
    """Return an error in the form that the page expects."""
    title = HTTPStatus(status).phrase
    content = documents.ProblemDocument(type="about:blank", title=title, status=status, detail=detail)
    return _json(content, status, "application/problem+json")


def _json(document: Any, status: int, media_type: str) -> Response:
    # In ASCII, so that lone surrogates can be written; without NaN, which is not JSON.
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type=media_type)


class PageServer:
    """The page's server. It binds its port when it is made, and closes it with its context."""

    def __init__(self, responses: Responses, port: int) -> None:
        """Bind a port of this machine only. With 0, bind any free port.

        Raises:
            CheckpointerInputError: The port is taken, or may not be used.
        """
        try:
            # It listens, so a browser that is opened before the server runs waits for it.
            self._socket = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            msg = f"port {port} cannot be used ({error.strerror}); give another --port, or none"
            raise errors.CheckpointerInputError(msg) from error
        bound = self._socket.getsockname()[1]
        token, invitation = token_urlsafe(32), token_urlsafe(32)
        self.address = f"http://127.0.0.1:{bound}/{token}/"
        """The address of the page."""
        self.invitation = f"http://127.0.0.1:{bound}/{invitation}/"
        """An address that redirects to the page once."""
        app = make_app(responses, port=bound, token=token, invitation=invitation)
        options = uvicorn.Config(
            app, log_level="error", access_log=False, ws="none", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(options)

    def run(self) -> None:
        """Serve until Ctrl-C, or until `end`."""
        self._server.run(sockets=[self._socket])

    def end(self) -> None:
        """Stop `run`, from another thread."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the socket."""
        self._socket.close()
