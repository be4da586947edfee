"""The application: the saver's endpoints, and those for operators and load balancers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError, CheckpointNotFoundError
from langgraph.checkpoint.dynamodb.gateway import bodies, deadlines, lists, media, metrics, wire
from langgraph.checkpoint.dynamodb.gateway.access_log import AccessLog, answer, note
from langgraph.checkpoint.dynamodb.gateway.admission import Admission, principal_of
from langgraph.checkpoint.dynamodb.gateway.audit import followed
from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate, anybody_on_this_machine
from langgraph.checkpoint.dynamodb.gateway.concurrency import Concurrency
from langgraph.checkpoint.dynamodb.gateway.cursors import Cursors
from langgraph.checkpoint.dynamodb.gateway.description import describe
from langgraph.checkpoint.dynamodb.gateway.endpoints import ENDPOINTS, Endpoint
from langgraph.checkpoint.dynamodb.gateway.holding import Holding
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.operations import Operations
from langgraph.checkpoint.dynamodb.gateway.ownership import admitted
from langgraph.checkpoint.dynamodb.gateway.principals import Principal, check_right, check_threads
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError, forbidden
from langgraph.checkpoint.dynamodb.gateway.rates import Rates
from langgraph.checkpoint.dynamodb.gateway.readiness import Readiness
from langgraph.checkpoint.dynamodb.gateway.table_requests import check_labels, visible_to
from langgraph.checkpoint.dynamodb.gateway.units import Units, asked_units, counted, counting
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

_DESCRIPTION = "/openapi.json"
_OPEN_PATHS = ("/health", "/ready", _DESCRIPTION)
_UNGUARDED = (
    "the gateway needs authenticate=, or in its configuration one of bearer, jwt and iam; with insecure anybody on this"
    " machine may do anything"
)
# Well below the timeouts of clients and of API Gateway: the last checkpoint, or thread, that is begun takes longer.
_PART_SECONDS = 8.0


def create_gateway(
    saver: DynamoDBSaver,
    *,
    authenticate: Authenticate | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
    cursor_key: bytes | None = None,
    open_metrics: bool = False,
    plain_json: bool = False,
    audit_key: bytes | None = None,
) -> Starlette:
    """Return the service through which agents without AWS access store their threads.

    Example:
        ```python
        from langgraph.checkpoint.dynamodb import DynamoDBSaver
        from langgraph.checkpoint.dynamodb.gateway import Principal, create_gateway
        from langgraph.checkpoint.dynamodb.gateway.bearer import BearerTokens

        # printf %s "$TOKEN" | sha256sum
        hashes = {Principal("acme-agents", tenant="acme"): ["9f86d081884c7d65..."]}
        app = create_gateway(DynamoDBSaver("langgraph-checkpoints"), authenticate=BearerTokens(hashes))
        ```

    Args:
        saver: The saver whose table is served. Its serializer is not used. It is closed when the application ends.
        authenticate: An async function that returns a request's `Principal`, or None for the answer 401.
        insecure: Instead of authenticating, let anybody on this machine do anything. For development.
        limits: The limits of one request, one tenant and one principal.
        cursor_key: A secret of 16 bytes or more that signs cursors. All processes of one service need the same. Without
            one, each process makes its own, and a cursor is valid only for the process that issued it.
        open_metrics: Whether `/metrics` needs no credentials; otherwise it needs the right to administer all tenants.
        plain_json: Whether to decode unencrypted checkpoints, and serve them as plain JSON.
        audit_key: A secret. With it, the access log has a keyed digest of each thread's id, and the ids of AWS's
            requests. All processes of one service need the same.

    Returns:
        An ASGI application.

    Raises:
        CheckpointerConfigurationError: Neither `authenticate` nor `insecure` is set, or both are, or the key is too
            short.
    """
    if (authenticate is None) is not insecure:
        raise CheckpointerConfigurationError(
            "give authenticate= or insecure, not both" if insecure else _UNGUARDED
        )
    if cursor_key is not None and len(cursor_key) < 16:
        msg = "cursor_key is too short; give 16 random bytes or more"
        raise CheckpointerConfigurationError(msg)
    service = _Service(
        saver,
        limits or Limits(),
        Cursors(cursor_key or secrets.token_bytes(32)),
        open_metrics=open_metrics,
        plain_json=plain_json,
        audit_key=audit_key,
    )
    return service.application(authenticate or anybody_on_this_machine)


class _Service:
    """The state that the endpoints share."""

    def __init__(
        self,
        saver: DynamoDBSaver,
        limits: Limits,
        cursors: Cursors,
        *,
        open_metrics: bool,
        plain_json: bool,
        audit_key: bytes | None,
    ) -> None:
        self._saver = saver
        self._audit_key = audit_key
        self._limits = limits
        self._rates = Rates(limits)
        self._cursors = cursors
        self._open_metrics = open_metrics
        self._endpoints = [each for each in ENDPOINTS if plain_json or not each.is_plain]
        self._operations = Operations(
            saver.storage,
            saver.runner.wrapped(lambda asend: followed(counted(asend))),
            limits=limits,
            answer_bytes=limits.body_bytes_max // 2,
            part_seconds=min(_PART_SECONDS, limits.request_seconds_max / 4),
        )
        self._readiness = Readiness(saver)
        self._metrics = metrics.Metrics()
        self._places = Concurrency(limits)
        self._holding = Holding(limits)
        self._decoder = bodies.Decoder(limits)

    def application(self, authenticate: Authenticate) -> Starlette:
        routes = [
            Route("/about", self._about),
            Route("/health", self._health),
            Route("/ready", self._ready),
            Route("/metrics", self._metrics_text),
            Route(_DESCRIPTION, self._openapi),
        ]
        routes += [
            Route(f"/checkpoints/{each.name}", partial(self._serve_in_time, each), methods=["POST"])
            for each in self._endpoints
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
                    Admission,
                    authenticate=authenticate,
                    limits=self._limits,
                    rates=self._rates,
                    holding=self._holding,
                    open_paths=(*_OPEN_PATHS, "/metrics") if self._open_metrics else _OPEN_PATHS,
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

    async def _serve_in_time(self, endpoint: Endpoint, request: Request) -> Response:
        return await asyncio.wait_for(self._serve(endpoint, request), self._limits.request_seconds_max)

    async def _serve(self, endpoint: Endpoint, request: Request) -> Response:
        principal = principal_of(request)
        check_right(principal, endpoint.right)
        with self._holding.request(principal) as held:
            # Received before the request takes a place, so a slow sender keeps nobody else waiting.
            body = await bodies.receive(request, self._limits, held)
            async with self._places.place(principal):
                message = await self._decoder.message(body, endpoint.model, held)
                check_threads(principal, endpoint, message)
                check_labels(principal, message)
                if principal.owner_name is not None:
                    # It may create the thread, so it has the same deadline as what follows.
                    seconds = self._seconds_left(request)
                    admission = admitted(self._saver.storage, principal.owner_name, endpoint, message)
                    checking = self._saver.runner.arun(admission, "check_owner")
                    known = await asyncio.wait_for(checking, seconds)
                    if known is None:
                        return await _absent(endpoint, request)
                    message = known
                seconds = self._seconds_left(request)
                units = asked_units(request, principal)
                if not isinstance(message, wire.List):
                    if isinstance(message, wire.ListPlain):
                        running = lists.answer_page(
                            request, message, self._operations.list_plain, self._cursors
                        )
                    else:
                        running = self._operations.run(endpoint, message)
                    # A deletion that waits for another one must not begin after its client has given up and asked
                    # again.
                    with counting(units):
                        document = await asyncio.wait_for(running, seconds)
                    if isinstance(message, wire.Query) and message.IndexName is not None:
                        listed = document["response"]["Items"]
                        document["response"]["Items"] = visible_to(principal, listed)
                    if units is not None:
                        document = units.added_to(document)
                    return await bodies.answer(request, document, media.JSON if endpoint.is_plain else None)

            def listing(asked: wire.List) -> AsyncIterator[dict[str, Any]]:
                return self._in_turns(principal, self._operations.list(asked, principal.prefix), units)

            return await lists.answer_list(request, message, listing, self._cursors, seconds)

    def _seconds_left(self, request: Request) -> float:
        return min(deadlines.seconds_left(request.headers), self._limits.request_seconds_max)

    async def _in_turns(
        self, principal: Principal, documents: AsyncIterator[dict[str, Any]], units: Units | None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield documents, each made in a place of its own: no place is held while the client reads."""
        while True:
            async with self._places.place(principal):
                with counting(units):
                    document = await anext(documents, None)
            if document is None:
                return
            yield document if units is None or "cursor" not in document else units.added_to(document)

    async def _about(self, request: Request) -> Response:
        return _json(
            {
                "wire_version": wire.VERSION,
                "table_name": self._saver.storage.table.name,
                "limits": self._limits.model_dump(),
                "owner": principal_of(request).owner_name,
            }
        )

    async def _health(self, _request: Request) -> Response:
        return _json({"status": "ok"})

    async def _ready(self, _request: Request) -> Response:
        await self._readiness.check()
        return _json({"status": "ready"})

    async def _openapi(self, _request: Request) -> Response:
        return JSONResponse(self._described)

    @cached_property
    def _described(self) -> dict[str, Any]:
        return describe(self._endpoints, open_metrics=self._open_metrics)

    async def _metrics_text(self, request: Request) -> Response:
        if not self._open_metrics:
            principal = principal_of(request)
            check_right(principal, "administer")
            if (principal.tenant, principal.owner) != (None, None):
                raise forbidden(
                    "metrics are about all tenants, and these credentials are for one tenant or owner"
                )
        return PlainTextResponse(self._metrics.text(self._places.waiting()), media_type=metrics.MEDIA_TYPE)


async def _absent(endpoint: Endpoint, request: Request) -> Response:
    """Answer a request for a thread that does not exist.

    Raises:
        CheckpointNotFoundError: The endpoint needs the thread.
    """
    if endpoint.absent is None:
        raise CheckpointNotFoundError("the thread has no checkpoint to copy; check its id")
    if endpoint.model is not wire.List:
        return await bodies.answer(request, endpoint.absent, media.JSON if endpoint.is_plain else None)
    document = endpoint.absent

    async def documents() -> AsyncIterator[Any]:
        yield document

    return bodies.stream(request, documents())


def _json(document: dict[str, Any]) -> Response:
    return JSONResponse(document, headers={"Cache-Control": "no-store"})


async def _unknown(request: Request, error: Any) -> Response:
    """Answer requests that the framework refuses: unknown paths and methods."""
    record = request.state.record
    says = f"there is no such endpoint, or it takes another method; see {_DESCRIPTION}"
    problem = ProblemError(error.status_code, says, headers=dict(error.headers or {}))
    return answer(record, note(record, problem))
