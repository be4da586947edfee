"""Lists: streams of documents, of which a tenant sees its own only, with cursors that nobody else can make or use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from langgraph.checkpoint.dynamodb.gateway.admission import principal_of
from langgraph.checkpoint.dynamodb.gateway.bodies import stream
from langgraph.checkpoint.dynamodb.gateway.cursors import Cursors
from langgraph.checkpoint.dynamodb.gateway.journal import note
from langgraph.checkpoint.dynamodb.gateway.principals import Principal
from langgraph.checkpoint.dynamodb.gateway.wire import List

_CURSOR = "cursor"


def opened(request: List, principal: Principal, cursors: Cursors) -> List:
    """The request as its operation is to have it: with the position in the place of the cursor.

    Raises:
        ProblemError: The cursor was not made for this principal and this request.
    """
    position = None if request.cursor is None else cursors.open(request.cursor, principal, request)
    # Threads of others do not count towards what a tenant asked for, so for one the limit holds behind the filter.
    limit = None if _is_filtered(request, principal) else request.limit
    return request.model_copy(update={_CURSOR: position, "limit": limit})


async def answer_list(
    connection: Request,
    request: List,
    documents: AsyncIterator[dict[str, Any]],
    cursors: Cursors,
    seconds: float,
) -> Response:
    """Return the answer that a list is, once its first document is there.

    Args:
        connection: Who asks, and in which encoding.
        request: The list as it was asked for.
        documents: Checkpoints, and at the end what has a position as its `cursor`.
        cursors: What seals that.
        seconds: How long each document may take.
    """
    principal = principal_of(connection)
    shown = _shown(request, principal, documents)
    # What fails at once is answered by its status.
    first = await anext(shown, None)

    async def rest() -> AsyncIterator[dict[str, Any]]:
        async with aclosing(shown):
            document = first
            try:
                while document is not None:
                    yield _sealed(document, principal, request, cursors)
                    document = await asyncio.wait_for(anext(shown, None), seconds)
            except Exception as error:  # noqa: BLE001 - the status is sent, so the error is the last document.
                record = connection.state.record
                yield {"problem": note(record, error).document(record.request_id)}

    return stream(connection, rest())


def _is_filtered(request: List, principal: Principal) -> bool:
    return request.thread_id is None and principal.tenant is not None


async def _shown(
    request: List, principal: Principal, documents: AsyncIterator[dict[str, Any]]
) -> AsyncGenerator[dict[str, Any], None]:
    """Leave out what is of other tenants."""
    if not _is_filtered(request, principal):
        async for document in documents:
            yield document
        return
    count = 0
    async for document in documents:
        # What is no checkpoint has nothing but a cursor; what else names no thread is an error, and shown to nobody.
        if set(document) <= {_CURSOR} or principal.owns(document["thread_id"]):
            yield document
            count += "thread_id" in document
        if request.limit is not None and count >= request.limit:
            return


def _sealed(
    document: dict[str, Any], principal: Principal, request: List, cursors: Cursors
) -> dict[str, Any]:
    position = document.get(_CURSOR)
    return document if position is None else document | {_CURSOR: cursors.seal(position, principal, request)}
