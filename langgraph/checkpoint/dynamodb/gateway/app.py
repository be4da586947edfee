"""The application: whom it admits, the endpoints of the calls, and those for operators and load balancers.

A request waits for its turn four times: its body, memory, a slot, and the sending of its response.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from langchain_core.runnables import RunnableConfig
from pydantic_core import to_jsonable_python
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .._format.wire import WIRE_VERSION
from ..errors import CheckpointerError
from ..saver import DynamoDBSaver
from . import bodies, call, memory_calls, node_calls, thread_calls
from .access_log import METRICS_TYPE, AccessLog, Metrics, RequestRecord, let_go, note, problem_response
from .asking import asking, patient, seconds_left, sleep
from .authentication import Authenticate
from .limits import REQUEST_BYTES, Held, Limits, MoreMemory, Shares, Slot, slot
from .opaque import opaque_storage
from .openapi import About, describe
from .problems import ProblemError, unauthenticated
from .serving import Principal, Reach, Serving, check_all, check_right, served

# A response is handed to the server in pieces, so that little of it is left in a buffer when its reader has gone.
_PIECE_BYTES = 64 << 10
# The response as it is, and as the server has it in its buffers.
_TIMES_A_RESPONSE = 2
# How long the outcome of a check of the table counts.
_KEPT_SECONDS = 1
# A load balancer waits no longer; the saver itself would retry for a minute.
_RESPONSE_SECONDS = 4

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Admission:
    """The middleware before everything that reads a body. It admits requests of known principals."""

    app: ASGIApp
    authenticate: Authenticate
    sending: Shares
    """The bytes of responses that are not yet read."""
    open_paths: Collection[str]
    """The paths that need no credentials."""

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
                # Held back until it is the response's turn, since no other status can be sent after this one.
                begun.append(message)
                return
            body = message.get("body", b"")
            patience = bodies.patience_seconds(len(body))
            async with AsyncExitStack() as sending:
                with anyio.fail_after(patience):
                    await sending.enter_async_context(
                        self.sending.turn(principal, REQUEST_BYTES + _TIMES_A_RESPONSE * len(body))
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


class Readiness:
    """Asks whether the table answers: once for all who ask within a second, as load balancers do."""

    def __init__(self, saver: DynamoDBSaver, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the saver whose table is asked, and a clock in seconds."""
        self._saver = saver
        self._clock = clock
        self._asked_at = float("-inf")
        self._asking: asyncio.Future[bool]

    async def check(self) -> None:
        """Return if the table has answered; raise a 503 otherwise."""
        if self._clock() - self._asked_at >= _KEPT_SECONDS:
            self._asked_at = self._clock()
            self._asking = asyncio.ensure_future(self._ask())
        # Who gives up leaves the others their response.
        if not await asyncio.shield(self._asking):
            msg = "the table does not answer, or cannot be used; the gateway's log says why"
            raise ProblemError(503, msg, CheckpointerError, retry_seconds=_KEPT_SECONDS)

    async def _ask(self) -> bool:
        """Read a checkpoint that cannot exist: one query that finds nothing."""
        config: RunnableConfig = {"configurable": {"thread_id": f"gateway-ready-{uuid.uuid4().hex}"}}
        try:
            await asyncio.wait_for(self._saver.aget_tuple(config), _RESPONSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever it is, the table cannot be used.
            # The query names nobody's thread, so the message reveals nothing.
            logger.warning("the table cannot be used: %s: %s", type(error).__name__, error)
            return False
        return True


ENDPOINTS = call.endpoints_of(thread_calls, memory_calls, node_calls)
_DESCRIPTION = "/openapi.json"
_OPEN_PATHS = ("/health", "/ready", _DESCRIPTION)


def create_gateway(
    saver: DynamoDBSaver,
    *,
    authenticate: Authenticate,
    limits: Limits | None = None,
    audit_key: bytes | None = None,
) -> Starlette:
    """Return the service through which agents without AWS access store their threads.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver
        from langgraph.checkpoint.dynamodb.gateway import Principal, create_gateway
        from langgraph.checkpoint.dynamodb.gateway.authentication import BearerTokens

        # printf %s "$TOKEN" | sha256sum
        hashes = {Principal("acme-agents", tenant="acme"): ["9f86d081884c7d65..."]}
        app = create_gateway(DynamoDBSaver("langgraph-checkpoints"), authenticate=BearerTokens(hashes))
        ```

    Args:
        saver: The saver whose table is served. Clients serialize values, so only the cipher of its serializer is used.
            It is closed when the application ends.
        authenticate: An async function that returns a request's `Principal`, or None for the response 401. For
            development, `anybody_on_this_machine`.
        limits: The limits of one request, one tenant and one principal.
        audit_key: A secret. With it, the access log has a keyed digest of each thread's id, and the ids of AWS's
            requests. All processes of one service need the same.

    Returns:
        An ASGI application.

    Raises:
        CheckpointerConfigurationError: The saver's serializer encrypts in another way than LangGraph's own.
    """
    service = _Endpoints(saver, limits or Limits(), audit_key=audit_key)
    return service.application(authenticate)


class _Endpoints:
    """The state that the endpoints share."""

    def __init__(self, saver: DynamoDBSaver, limits: Limits, *, audit_key: bytes | None) -> None:
        self._saver = saver
        self._audit_key = audit_key
        self._limits = limits
        self._storage = opaque_storage(saver)
        retry_seconds = self._storage.table.retry_seconds
        self._runner = saver.runner.asking(patient(saver.transport, retry_seconds), sleep)
        self._store = memory_calls.store_storage(saver, limits.search_bytes_max)
        self._cache = node_calls.cache_storage(saver)
        self._readiness = Readiness(saver)
        self._metrics = Metrics()
        self._workers = bodies.Workers()
        # A request waits for these in this order, so none of them waits for one before it.
        self._receiving = Shares(limits.wire_bytes, waiting_max=0)
        self._memory = Shares(limits.memory_bytes)
        self._places = Shares(limits.in_flight_max)
        self._sending = Shares(limits.wire_bytes)

    def application(self, authenticate: Authenticate) -> Starlette:
        routes = [
            Route("/about", self._about),
            Route("/health", self._health),
            Route("/ready", self._ready),
            Route("/metrics", self._metrics_text),
            Route(_DESCRIPTION, self._openapi),
        ]
        routes += [
            Route(each.path, partial(self._serve_in_time, each), methods=["POST"]) for each in ENDPOINTS
        ]
        app = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _unknown},
            middleware=[
                Middleware(
                    AccessLog,
                    metrics=self._metrics,
                    paths=[each.path for each in routes],
                    audit_key=self._audit_key,
                ),
                Middleware(
                    Admission, authenticate=authenticate, sending=self._sending, open_paths=_OPEN_PATHS
                ),
            ],
        )
        # A redirect would lead to the host that the request's own header names.
        app.router.redirect_slashes = False
        return app

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._saver.aclose()

    async def _serve_in_time(self, endpoint: call.Endpoint[Any], request: Request) -> Response:
        """Serve a request as long as its client waits: what is given up would otherwise take effect later."""
        seconds = min(seconds_left(request.headers), self._limits.request_seconds_max)
        until = asyncio.get_running_loop().time() + seconds
        return await asyncio.wait_for(self._serve(endpoint, request, until), seconds)

    async def _serve(self, endpoint: call.Endpoint[Any], request: Request, until: float) -> Response:
        """Serve a request. What it holds is given back once its response has its turn to be sent."""
        principal: Principal = request.state.principal
        if endpoint.right is not None:
            check_right(principal, endpoint.right)
        held: AsyncExitStack = request.state.held
        length = bodies.announced_length(request.headers, self._limits)
        await held.enter_async_context(self._receiving.turn(principal, REQUEST_BYTES + length))
        body = await bodies.receive(request, length, self._limits)
        memory = Held(self._memory, principal, self._limits.read_bytes_max)
        held.callback(memory.give_back)
        own_bytes = needed = REQUEST_BYTES + self._limits.needed_bytes(body.size_bytes)
        while True:
            await memory.take(own_bytes, needed)
            try:
                # Only now it takes a slot, so neither who sends slowly nor who waits for memory keeps others waiting.
                async with slot(self._places, principal) as place:
                    return await self._served(endpoint, request, body, memory, place, until)
            except MoreMemory as more:
                needed = more.size_bytes
                let_go(more)
                memory.give_back()

    async def _served(
        self,
        endpoint: call.Endpoint[Any],
        request: Request,
        body: bodies.RequestBody,
        memory: Held,
        place: Slot,
        until: float,
    ) -> Response:
        principal: Principal = request.state.principal
        record: RequestRecord = request.state.record
        reach = Reach(principal)
        decode = partial(endpoint.decoded, names=reach)
        arguments = await self._workers.run(principal, body.size_bytes, partial(body.read, decode))
        if endpoint.is_about_all(principal, arguments):
            check_all(principal)
        record.threads.update(reach.named)
        it = Serving(
            # Deletions and copies have a bounded part of what they read in memory at a time.
            self._storage if endpoint.right == "administer" else self._storage.counting(memory.add),
            self._store,
            self._cache,
            principal,
            self._limits.response_bytes,
            self._limits.part_seconds,
            self._limits.decompressed_bytes_max,
            memory.add,
            lambda error: note(record, error).document(record.request_id),
        )
        with asking(place, until, record):
            result = await served(endpoint, arguments, reach.named, it, self._runner.arun)
        accepted = request.headers.get("accept-encoding", "")
        respond = partial(bodies.response, partial(endpoint.encoded, result), accepted)
        return await self._workers.run(principal, memory.read_bytes, respond)

    async def _about(self, request: Request) -> Response:
        about = About(WIRE_VERSION, self._limits, request.state.principal.owner_name)
        return _json(to_jsonable_python(about))

    async def _health(self, _request: Request) -> Response:
        return _json({"status": "ok"})

    async def _ready(self, _request: Request) -> Response:
        await self._readiness.check()
        return _json({"status": "ready"})

    async def _openapi(self, _request: Request) -> Response:
        return JSONResponse(self._described)

    @cached_property
    def _described(self) -> dict[str, Any]:
        return describe(ENDPOINTS)

    async def _metrics_text(self, request: Request) -> Response:
        check_all(request.state.principal)
        return PlainTextResponse(
            self._metrics.text(self._memory.waiting() + self._places.waiting()), media_type=METRICS_TYPE
        )


def _json(document: dict[str, Any]) -> Response:
    return JSONResponse(document, headers={"Cache-Control": "no-store"})


async def _unknown(request: Request, error: Any) -> Response:
    """Answer requests that the framework refuses: unknown paths and methods."""
    record = request.state.record
    says = f"there is no such endpoint, or it takes another method; see {_DESCRIPTION}"
    problem = ProblemError(error.status_code, says, headers=dict(error.headers or {}))
    return problem_response(record, note(record, problem))
