"""The application: the saver's endpoints, and those for operators and load balancers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from langgraph.checkpoint.dynamodb._format.limits import ATTEMPTS_MAX
from langgraph.checkpoint.dynamodb._format.wire import WIRE_VERSION
from langgraph.checkpoint.dynamodb._operations.threads import PinnedEpochError
from langgraph.checkpoint.dynamodb._runtime.steps import Op
from langgraph.checkpoint.dynamodb.errors import CheckpointNotFoundError, ThreadBusyError
from langgraph.checkpoint.dynamodb.gateway import bodies, memories, metrics, nodes, operations, wire
from langgraph.checkpoint.dynamodb.gateway.access_log import AccessLog, answer, let_go, note
from langgraph.checkpoint.dynamodb.gateway.admission import Admission, principal_of
from langgraph.checkpoint.dynamodb.gateway.asking import (
    Trail,
    asked_units,
    asking,
    patient,
    seconds_left,
    sleep,
)
from langgraph.checkpoint.dynamodb.gateway.authentication import Authenticate
from langgraph.checkpoint.dynamodb.gateway.deltas import check_deltas
from langgraph.checkpoint.dynamodb.gateway.endpoints import Endpoint, describe
from langgraph.checkpoint.dynamodb.gateway.joining import Joining
from langgraph.checkpoint.dynamodb.gateway.limits import PART_SECONDS, Limits
from langgraph.checkpoint.dynamodb.gateway.memories import Memories, store_storage
from langgraph.checkpoint.dynamodb.gateway.nodes import Nodes, cache_storage
from langgraph.checkpoint.dynamodb.gateway.opaque import opaque_storage
from langgraph.checkpoint.dynamodb.gateway.operations import Operations
from langgraph.checkpoint.dynamodb.gateway.ownership import Admitted, admitted
from langgraph.checkpoint.dynamodb.gateway.principals import Principal, check_request, check_right, threads_of
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError, forbidden
from langgraph.checkpoint.dynamodb.gateway.readiness import Readiness
from langgraph.checkpoint.dynamodb.gateway.shares import REQUEST_BYTES, Held, MoreMemory, Shares, Slot, slot
from langgraph.checkpoint.dynamodb.saver import DynamoDBSaver

ENDPOINTS = (*operations.ENDPOINTS, *memories.ENDPOINTS, *nodes.ENDPOINTS)
_DESCRIPTION = "/openapi.json"
_OPEN_PATHS = ("/health", "/ready", _DESCRIPTION)


def create_gateway(
    saver: DynamoDBSaver,
    *,
    authenticate: Authenticate,
    limits: Limits | None = None,
    plain_json: bool = False,
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
        authenticate: An async function that returns a request's `Principal`, or None for the answer 401. For
            development, `anybody_on_this_machine`.
        limits: The limits of one request, one tenant and one principal.
        plain_json: Whether readers may have values as plain JSON.
        audit_key: A secret. With it, the access log has a keyed digest of each thread's id, and the ids of AWS's
            requests. All processes of one service need the same.

    Returns:
        An ASGI application.

    Raises:
        CheckpointerConfigurationError: The saver's serializer encrypts in another way than LangGraph's own.
    """
    service = _Service(saver, limits or Limits(), plain_json=plain_json, audit_key=audit_key)
    return service.application(authenticate)


class _Service:
    """The state that the endpoints share."""

    def __init__(
        self, saver: DynamoDBSaver, limits: Limits, *, plain_json: bool, audit_key: bytes | None
    ) -> None:
        self._saver = saver
        self._audit_key = audit_key
        self._limits = limits
        self._plain_json = plain_json
        self._storage = opaque_storage(saver)
        retry_seconds = self._storage.table.retry_seconds
        self._runner = saver.runner.asking(patient(saver.transport, retry_seconds), sleep)
        self._store = store_storage(saver, limits.search_bytes_max)
        self._cache = cache_storage(saver)
        self._joining = Joining()
        self._readiness = Readiness(saver)
        self._metrics = metrics.Metrics()
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

    async def _serve_in_time(self, endpoint: Endpoint, request: Request) -> Response:
        return await asyncio.wait_for(self._serve(endpoint, request), self._limits.request_seconds_max)

    async def _serve(self, endpoint: Endpoint, request: Request) -> Response:
        """Serve a request. What it holds is given back once its answer has its turn to be sent."""
        principal = principal_of(request)
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
                    return await self._served(endpoint, request, body, memory, place)
            except MoreMemory as more:
                needed = more.size_bytes
                let_go(more)
                memory.give_back()

    async def _served(
        self, endpoint: Endpoint, request: Request, body: bodies.RequestBody, memory: Held, place: Slot
    ) -> Response:
        principal = principal_of(request)
        # Not decoded, if nobody waits for it any more.
        seconds_left(request.headers)
        message = await body.message(endpoint.model, self._workers, principal)
        memory.add(check_deltas(message, self._limits))
        self._check_plain(message)
        check_request(principal, message)
        trail: Trail | None = request.state.record.trail
        if trail is not None:
            trail.add_threads(filter(None, threads_of(message)))
        seconds = min(seconds_left(request.headers), self._limits.request_seconds_max)
        units = asked_units(request.headers, principal)
        # What goes on after the request's end does not end with it.
        until = math.inf if endpoint.is_joined else seconds
        with asking(place, until, request.headers, units, trail):
            running = self._answered(endpoint, message, principal, seconds, memory)
            # A deletion that waits for another one must not begin after its client has given up and asked again.
            document = await asyncio.wait_for(running, seconds)
        if isinstance(document.get("problem"), Exception):
            record = request.state.record
            document["problem"] = note(record, document["problem"]).document(record.request_id)
        if units is not None:
            document = units.added_to(document)
        accepted = request.headers.get("accept-encoding", "")
        return await bodies.answer(
            body.media, accepted, document, self._workers, principal, memory.read_bytes
        )

    async def _answered(
        self, endpoint: Endpoint, message: wire.Message, principal: Principal, seconds: float, held: Held
    ) -> dict[str, Any]:
        """Run the operation of an endpoint and return the answer's document.

        Raises:
            CheckpointNotFoundError: The endpoint needs a thread that does not exist.
            ThreadBusyError: The thread was deleted or pruned at every attempt.
        """
        if endpoint not in operations.ENDPOINTS:
            labelled: Memories | Nodes = Memories(self._store, principal, held, self._limits)
            if endpoint in nodes.ENDPOINTS:
                labelled = Nodes(self._cache, principal, held, self._limits)
            return await self._run(endpoint, partial(getattr(labelled, endpoint.operation), message))
        for _ in range(ATTEMPTS_MAX):
            admitted = await self._admitted(message, principal)
            if admitted is None and endpoint.absent is None:
                raise CheckpointNotFoundError("the thread has no checkpoint to copy; check its id")
            if admitted is None:
                return dict(endpoint.absent or {})
            storage = replace(self._storage, owner=principal.owner_name, pinned=admitted.pinned)
            if endpoint.right != "administer":
                # Deletions and copies have a bounded part of what they read in memory at a time.
                storage = storage.counting(held.add)
            serving = Operations(storage, self._limits, principal.prefix)
            operation = partial(getattr(serving, endpoint.operation), admitted.request)
            try:
                if not endpoint.is_joined:
                    return await self._run(endpoint, operation)
                key = json.dumps(
                    [principal.name, principal.tenant, principal.owner, endpoint.name, message.model_dump()]
                )
                part = min(PART_SECONDS, seconds / 4)
                done = await self._joining.done(key, partial(self._run, endpoint, operation), part)
            except PinnedEpochError:
                continue
            return {"done": done}
        raise ThreadBusyError(
            "the thread was deleted or pruned at every attempt; try again when that has ended"
        )

    async def _admitted(self, message: wire.Message, principal: Principal) -> Admitted | None:
        """Return a request as far as the threads that it names exist, if its principal is bound to an owner."""
        if principal.owner_name is None:
            return Admitted(message)
        # It may create the thread, so it has the same deadline as what follows.
        checking = admitted(self._storage, principal.owner_name, message)
        return await self._runner.arun(checking, "check_owner")

    async def _run(self, endpoint: Endpoint, operation: Callable[[], Op[dict[str, Any]]]) -> dict[str, Any]:
        return await self._runner.arun(operation(), endpoint.operation)

    def _check_plain(self, message: wire.Message) -> None:
        if getattr(message, "plain", False) and not self._plain_json:
            raise forbidden("this service does not show values as JSON; its operator sets plain_json")

    async def _about(self, request: Request) -> Response:
        return _json(
            {
                "wire_version": WIRE_VERSION,
                "features": list(wire.FEATURES),
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
        return describe(ENDPOINTS)

    async def _metrics_text(self, request: Request) -> Response:
        principal = principal_of(request)
        check_right(principal, "administer")
        if (principal.tenant, principal.owner) != (None, None):
            raise forbidden(
                "metrics are about all tenants, and these credentials are for one tenant or owner"
            )
        return PlainTextResponse(
            self._metrics.text(self._memory.waiting() + self._places.waiting()), media_type=metrics.MEDIA_TYPE
        )


def _json(document: dict[str, Any]) -> Response:
    return JSONResponse(document, headers={"Cache-Control": "no-store"})


async def _unknown(request: Request, error: Any) -> Response:
    """Answer requests that the framework refuses: unknown paths and methods."""
    record = request.state.record
    says = f"there is no such endpoint, or it takes another method; see {_DESCRIPTION}"
    problem = ProblemError(error.status_code, says, headers=dict(error.headers or {}))
    return answer(record, note(record, problem))
