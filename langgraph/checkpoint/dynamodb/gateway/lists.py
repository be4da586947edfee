"""Lists: streams of documents. A tenant sees only its own threads, and cursors are sealed for one principal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from langgraph.checkpoint.dynamodb.gateway.access_log import note
from langgraph.checkpoint.dynamodb.gateway.admission import principal_of
from langgraph.checkpoint.dynamodb.gateway.bodies import stream
from langgraph.checkpoint.dynamodb.gateway.cursors import Cursors
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
    """Return the response for a list, once its first document is there.

    Args:
        connection: The HTTP request: its principal, and the encoding of the answer.
        request: The message that the client sent.
        run: Yields the list's documents: checkpoints, and at the end one with the position of the next page as
            `cursor`.
        cursors: Seals and opens positions.
        seconds: How long each document may take.

    Raises:
        ProblemError: The cursor was not made for this principal and this request.
    """
    principal = principal_of(connection)
    position = None if request.cursor is None else cursors.open(request.cursor, principal, request)
    # Checkpoints of other tenants must not use up the limit, so for a tenant it is applied after the filter.
    limit = None if _is_filtered(request, principal) else request.limit
    documents = run(request.model_copy(update={_CURSOR: position, "limit": limit}))
    if _is_filtered(request, principal):
        documents = _of_tenant(request.limit, principal, documents, int(position or 0))
    # An error before the first document can still be answered with its own status.
    first = await asyncio.wait_for(anext(documents, None), seconds)

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
    """Return the document of one page of a list.

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
    """Leave out other tenants' checkpoints, and yield a cursor once the tenant has as many as it asked for.

    The position in a list of all threads is the number of checkpoints before it. There is a cursor only if the tenant
    has more: otherwise it would reveal that other tenants have some.
    """
    left, end = limit, position
    async for document in documents:
        if _CURSOR in document:
            yield document
            return
        # A document that names no thread is an error, and nobody sees it.
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
