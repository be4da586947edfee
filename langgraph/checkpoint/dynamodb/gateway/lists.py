"""Lists: streams of documents, of which a tenant sees its own only, with cursors that nobody else can make or use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from langgraph.checkpoint.dynamodb.gateway.admission import principal_of
from langgraph.checkpoint.dynamodb.gateway.bodies import stream
from langgraph.checkpoint.dynamodb.gateway.cursors import Cursors
from langgraph.checkpoint.dynamodb.gateway.journal import note
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.wire import List, ListPlain, Message

_CURSOR = "cursor"


async def answer_list(
    connection: Request,
    request: List,
    run: Callable[[List], AsyncIterator[dict[str, Any]]],
    cursors: Cursors,
    seconds: float,
) -> Response:
    """Return the answer that a list is, once its first document is there.

    Args:
        connection: Who asks, and in which encoding.
        request: The list as it was asked for.
        run: Gives its documents: checkpoints, and at the end one with the position to go on at as its `cursor`.
        cursors: What seals positions.
        seconds: How long each document may take.

    Raises:
        ProblemError: The cursor was not made for this principal and this request.
    """
    principal = principal_of(connection)
    position = None if request.cursor is None else cursors.open(request.cursor, principal, request)
    # Threads of others do not count towards what a tenant asked for, so for one the limit holds behind the filter.
    limit = None if _is_filtered(request, principal) else request.limit
    documents = run(request.model_copy(update={_CURSOR: position, "limit": limit}))
    if _is_filtered(request, principal):
        documents = _of_tenant(request.limit, principal, documents, int(position or 0))
    # What fails at once is answered by its status.
    first = await anext(documents, None)

    async def rest() -> AsyncIterator[dict[str, Any]]:
        document = first
        try:
            while document is not None:
                yield _sealed(document, principal, request, cursors)
                document = await asyncio.wait_for(anext(documents, None), seconds)
        except Exception as error:  # noqa: BLE001 - the status is sent, so the error is the last document.
            record = connection.state.record
            yield {"problem": note(record, error).document(record.request_id)}

    return stream(connection, rest())


async def answer_page(
    connection: Request,
    request: ListPlain,
    run: Callable[[ListPlain], Awaitable[dict[str, Any]]],
    cursors: Cursors,
) -> dict[str, Any]:
    """Return the document that a page of a list is.

    Raises:
        ProblemError: The cursor was not made for this principal and this request.
    """
    principal = principal_of(connection)
    position = None if request.cursor is None else cursors.open(request.cursor, principal, request)
    document = await run(request.model_copy(update={_CURSOR: position}))
    return _sealed(document, principal, request, cursors)


def _is_filtered(request: List, principal: Principal) -> bool:
    return request.thread_id is None and principal.tenant is not None


async def _of_tenant(
    limit: int | None, principal: Principal, documents: AsyncIterator[dict[str, Any]], position: int
) -> AsyncIterator[dict[str, Any]]:
    """Leave out what is of other tenants, and say where to go on once the tenant has what it asked for.

    The position in a list of all threads is the number of checkpoints before it. There is one only if the tenant has
    more: otherwise it would tell that others have.
    """
    left, end = limit, position
    async for document in documents:
        if set(document) <= {_CURSOR}:
            yield document
            return
        # What names no thread is an error, and shown to nobody.
        if principal.owns(document["thread_id"]):
            if left == 0:
                yield {_CURSOR: str(end)}
                return
            yield document
            left = None if left is None else left - 1
            end = position + 1
        position += 1


def _sealed(
    document: dict[str, Any], principal: Principal, request: Message, cursors: Cursors
) -> dict[str, Any]:
    position = document.get(_CURSOR)
    return document if position is None else document | {_CURSOR: cursors.seal(position, principal, request)}
