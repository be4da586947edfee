"""Bodies: requests as they come in, within their limits, and answers as they go out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from anyio import to_thread
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from langgraph.checkpoint.dynamodb.gateway.compression import Inflow, Outflow, chosen_encoding, too_large
from langgraph.checkpoint.dynamodb.gateway.extents import check_items
from langgraph.checkpoint.dynamodb.gateway.limits import Limits
from langgraph.checkpoint.dynamodb.gateway.media import Media, media_of_answer, media_of_body
from langgraph.checkpoint.dynamodb.gateway.problems import ProblemError
from langgraph.checkpoint.dynamodb.gateway.wire import Message

# What is larger is decoded and compressed in a thread, so that the event loop goes on.
_THREADED_BYTES = 64 << 10
# What is smaller is not worth compressing.
_COMPRESSED_BYTES_MIN = 1 << 10
# So many mistakes of a request are named.
_MISTAKES_MAX = 5


async def read_message(request: Request, model: type[Message], limits: Limits) -> Message:
    """Read the message that a request's body is.

    Raises:
        ProblemError: It is none, or over a limit.
    """
    media = media_of_body(request.headers.get("content-type", ""))
    media_of_answer(request.headers.get("accept", ""), media)
    body = await _read(request, limits)
    if len(body) < _THREADED_BYTES:
        return _message(body, media, model, limits)
    return await to_thread.run_sync(_message, body, media, model, limits)


async def _read(request: Request, limits: Limits) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > limits.body_bytes_max:
        raise too_large(limits.body_bytes_max)
    encoding = request.headers.get("content-encoding", "")
    inflow = Inflow(encoding, limits.body_bytes_max, limits.decompressed_bytes_max)
    async for data in request.stream():
        inflow.add(data)
    return inflow.content()


def _message(body: bytes, media: Media, model: type[Message], limits: Limits) -> Message:
    document = media.document(body, limits)
    check_items(document, limits)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ProblemError(400, _mistakes(error)) from None


def _mistakes(error: ValidationError) -> str:
    # What was given may be a state, so it is not even asked for.
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = [
        f"{'.'.join(map(str, each['loc'])) or 'the body'}: {each['msg']}" for each in found[:_MISTAKES_MAX]
    ]
    return "; ".join(named) + (
        f"; and {len(found) - _MISTAKES_MAX} more" if len(found) > _MISTAKES_MAX else ""
    )


async def answer(request: Request, document: Any) -> Response:
    """Return the answer that a document is."""
    media = _media(request)
    body = media.encode(document)
    headers = {"Vary": "Accept, Accept-Encoding"}
    encoding = chosen_encoding(request.headers.get("accept-encoding", ""))
    if encoding is not None and len(body) >= _COMPRESSED_BYTES_MIN:
        headers["Content-Encoding"] = encoding
        body = await _compressed(Outflow(encoding), body, is_last=True)
    return Response(body, media_type=media.name, headers=headers)


def stream(request: Request, documents: AsyncIterator[Any]) -> Response:
    """Return the answer that a stream of documents is; each is made when the reader has taken the one before."""
    media = _media(request)
    headers = {"Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
    encoding = chosen_encoding(request.headers.get("accept-encoding", ""))
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    content = _pieces(media, None if encoding is None else Outflow(encoding), documents)
    return StreamingResponse(content, media_type=media.stream_name, headers=headers)


async def _pieces(
    media: Media, outflow: Outflow | None, documents: AsyncIterator[Any]
) -> AsyncIterator[bytes]:
    async for document in documents:
        piece = media.framed(media.encode(document))
        yield piece if outflow is None else await _compressed(outflow, piece, is_last=False)
    if outflow is not None:
        yield outflow.end()


async def _compressed(outflow: Outflow, data: bytes, *, is_last: bool) -> bytes:
    def compress() -> bytes:
        return outflow.piece(data) + (outflow.end() if is_last else b"")

    return compress() if len(data) < _THREADED_BYTES else await to_thread.run_sync(compress)


def _media(request: Request) -> Media:
    body = media_of_body(request.headers.get("content-type", ""))
    return media_of_answer(request.headers.get("accept", ""), body)
