"""Problems: the responses to failed requests, as RFC 9457 defines them.

`type` names the class of errors.py that the client raises again. `detail` is that error's message, which names no
state. Unforeseen errors have no detail: the log has their traceback, under the request's id, and never a body.
"""

import asyncio
import math
import random
from http import HTTPStatus
from typing import Any

from langgraph.store.base import InvalidNamespaceError

from .. import errors
from .._format.codec import UnreadableError
from .._runtime.failures import error_code, is_transient, throttling

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:langgraph-dynamodb:error:"
# Long enough for an overload to pass, and short enough for a turn of a conversation.
_PAUSE_SECONDS = 1
# How much longer, at random, each client is told to wait, so that not all come back at once.
_SPREAD_SECONDS = 2
# If the gateway cannot use its table, the message names the account's roles: that is for the log only.
_UNUSABLE = "the gateway cannot use its table; its log says why, under this request_id"

_rng = random.SystemRandom()

# A problem with one thread is no failure of the service, which serves all others. A fault of ours is: alarms tell it.
_STATUSES: dict[type[errors.CheckpointerError], HTTPStatus] = {
    errors.CheckpointerInputError: HTTPStatus.BAD_REQUEST,
    errors.CheckpointSerializationError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.CheckpointNotFoundError: HTTPStatus.NOT_FOUND,
    errors.CheckpointCorruptionError: HTTPStatus.CONFLICT,
    errors.CheckpointFormatError: HTTPStatus.CONFLICT,
    errors.ThreadBusyError: HTTPStatus.CONFLICT,
    errors.ThreadLockLostError: HTTPStatus.CONFLICT,
    errors.SearchLimitError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.BrokenRuleError: HTTPStatus.INTERNAL_SERVER_ERROR,
}


class ProblemError(Exception):
    """Ends a request with a problem.

    Args:
        status: The status of the response.
        detail: What is wrong and how to fix it, without anything of a thread's state.
        kind: The class of errors.py that the client raises.
        retry_seconds: After how many seconds at the earliest trying again may help.
        headers: Headers that the status requires.
        code: The code of DynamoDB's error, if that is why.
    """

    def __init__(
        self,
        status: int,
        detail: str | None,
        kind: type[errors.CheckpointerError] = errors.CheckpointerInputError,
        *,
        retry_seconds: float | None = None,
        headers: dict[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        """Store the contents of the response."""
        super().__init__(detail)
        self.status = int(status)
        self.detail = detail
        self.kind = kind
        self.headers = dict(headers or {})
        self._code = code
        if retry_seconds is not None:
            spread = _rng.randint(0, _SPREAD_SECONDS)
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_seconds)) + spread)

    def document(self, request_id: str) -> dict[str, Any]:
        """Return the body of the response."""
        document = {
            "type": TYPE_PREFIX + self.kind.__name__,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "request_id": request_id,
        }
        if self._code is not None:
            document["code"] = self._code
        if self.detail is not None:
            # The detail may quote the client's text, and half a surrogate pair is not valid UTF-8.
            document["detail"] = self.detail.encode("utf-8", "replace").decode()
        return document


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that answers an error."""
    from langgraph.store.dynamodb.similarity import DimensionsError  # noqa: PLC0415 - a client does not load it.

    if isinstance(error, ProblemError):
        return error
    if isinstance(error, InvalidNamespaceError):
        return ProblemError(400, str(error))
    if isinstance(error, (UnreadableError, DimensionsError)):
        # It names what the request is about. The client has another key than who stored it, or the service has none; or
        # the client embeds by another model.
        return ProblemError(409, str(error), errors.CheckpointerConfigurationError)
    if isinstance(error, errors.CheckpointerConfigurationError):
        return ProblemError(500, _UNUSABLE, errors.CheckpointerConfigurationError)
    if isinstance(error, errors.CheckpointerUnavailableError) or is_transient(error):
        return no_response(error)
    for kind, status in _STATUSES.items():
        if isinstance(error, kind):
            return ProblemError(status, str(error), kind)
    if isinstance(error, errors.CheckpointerError):
        return _unavailable(str(error))
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return ProblemError(504, "the request took too long; you may send it again", errors.CheckpointerError)
    return ProblemError(500, None, errors.CheckpointerError)


def no_response(error: Exception) -> ProblemError:
    """Return the problem for a request that the table did not answer, or throttled."""
    # The saver's error comes from that of its last attempt, unless only a part of a batch was left.
    source = error.__cause__ if isinstance(error.__cause__, Exception) else error
    code, cause = error_code(source), throttling(source)
    detail = (
        "the gateway's table does not answer; send the request again"
        if cause is None
        else f"DynamoDB throttles the gateway's table: {cause}"
    )
    return _unavailable(detail, errors.CheckpointerUnavailableError, code or None)


def _unavailable(
    detail: str, kind: type[errors.CheckpointerError] = errors.CheckpointerError, code: str | None = None
) -> ProblemError:
    return ProblemError(503, detail, kind, retry_seconds=_PAUSE_SECONDS, code=code)


def overloaded() -> ProblemError:
    """Return the problem for a request that the process has no room for now."""
    return _unavailable("the gateway has as many requests as it can serve; send yours again")


def unauthenticated() -> ProblemError:
    """Return the problem for missing or refused credentials. Only the log says which of the two."""
    return ProblemError(
        401,
        "credentials are missing, expired or not accepted",
        errors.CheckpointerConfigurationError,
        headers={"WWW-Authenticate": "Bearer"},
    )


def forbidden(detail: str) -> ProblemError:
    """Return the problem for a request that its principal may not make."""
    return ProblemError(403, detail, errors.CheckpointerConfigurationError)
