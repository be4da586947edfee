"""Error responses: the exception that the agent gets for each, and its message.

The gateway describes errors by RFC 9457, with a type that ends in the name of a class of `errors.py`. A proxy in front
of it, such as a load balancer, responds in its own format, of which only the status is used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from .. import errors
from ..errors import CheckpointerConfigurationError, CheckpointerError

if TYPE_CHECKING:
    from .documents import Reply

REQUEST_ID = "X-Request-Id"

# Statuses of a gateway, or of a proxy in front of it, that cannot serve a request at the moment.
_PASSING = frozenset({429, 502, 503, 504})
# API Gateway's status if Lambda has no room for an invocation. A gateway's own has a problem, and stays.
_PASSING_WITHOUT_PROBLEM = 500
_WORDS_MAX = 1000


class TurnedAwayError(Exception):
    """The gateway does not serve a request at the moment."""

    def __init__(self, failure: CheckpointerError, problem: Mapping[str, Any], after_seconds: float) -> None:
        """Take the error to raise if retries do not help, the problem, and how many seconds the gateway asks to wait.

        If the gateway's table throttles, a client waits by itself, as a saver on the table does.
        """
        super().__init__(str(failure))
        self.failure = failure
        is_throttled = problem.get("throttled") is True
        self.after_seconds = 0.0 if is_throttled else after_seconds
        # By this, events count it as DynamoDB's own error.
        self.response = {"Error": {"Code": "ThrottlingException"}} if is_throttled else {}


def failure_of(response: Reply, url: str, request_id: str) -> Exception:
    """Return the exception for an error response.

    Args:
        response: The response.
        url: The gateway's address.
        request_id: The request's id.
    """
    failure = _failure(response, url, request_id)
    problem, status = _problem(response), response.status_code
    if status in _PASSING or (status == _PASSING_WITHOUT_PROBLEM and not problem):
        return TurnedAwayError(failure, problem, _after_seconds(response))
    return failure


def failure_in(problem: Mapping[str, Any]) -> CheckpointerError:
    """Return the exception for a problem in a document, also for one that only a newer gateway knows."""
    return _named_error(problem) or CheckpointerError(f"the gateway says: {_words(problem)}")


def _failure(response: Reply, url: str, request_id: str) -> CheckpointerError:
    import httpx  # noqa: PLC0415 - it is loaded by now.

    problem, status = _problem(response), response.status_code
    phrase = httpx.codes.get_reason_phrase(status) or "(an unknown status)"
    says = f"{status} {_words(problem) or phrase}"
    if status == HTTPStatus.UNAUTHORIZED:
        msg = f"the gateway at {url} refused the credentials ({says}); pass auth=, or a token that has not expired"
        return CheckpointerConfigurationError(msg)
    if status == HTTPStatus.FORBIDDEN:
        msg = f"the gateway at {url} does not allow this ({says}); check auth=, or ask its operator for the right"
        return CheckpointerConfigurationError(msg)
    if 300 <= status < 400:
        msg = f"the gateway at {url} redirects ({says}), which this client does not follow; check url"
        return CheckpointerConfigurationError(msg)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and not problem:
        msg = (
            f"a proxy in front of the gateway at {url} refuses a body of this size ({says}); let it accept the"
            " gateway's body_bytes_max, 64 MiB by default (nginx: client_max_body_size 64m), or keep less in the state"
        )
        return CheckpointerConfigurationError(msg)
    request_id = response.headers.get(REQUEST_ID) or request_id
    named = _named_error(problem)
    if named is not None:
        if sys.version_info >= (3, 11):
            named.add_note(f"The gateway at {url} gave this answer to request {request_id}.")
        return named
    remedy = (
        ""
        if problem
        else "; the gateway itself does not answer like this: check url, and any proxy in front of the gateway"
    )
    return CheckpointerError(f"the gateway at {url} answered {says} (request id {request_id}){remedy}")


def _problem(response: Reply) -> Mapping[str, Any]:
    """Return the problem in a response's body; empty if there is none."""
    if "problem+json" not in response.headers.get("Content-Type", ""):
        return {}
    try:
        problem = json.loads(response.content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _named_error(problem: Mapping[str, Any]) -> CheckpointerError | None:
    """Return the exception that a problem's type names, with its message; `None` if it names none of ours."""
    name = str(problem.get("type", "")).replace(":", "/").replace("#", "/").rpartition("/")[2]
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, CheckpointerError) and "detail" in problem:
        return kind(_words(problem))
    return None


def _words(problem: Mapping[str, Any]) -> str:
    return str(problem.get("detail") or problem.get("title") or "")[:_WORDS_MAX]


def _after_seconds(response: Reply) -> float:
    """Return how many seconds to wait before the next attempt, by the header, which has seconds or a date."""
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, (until.astimezone(timezone.utc) - datetime.now(timezone.utc)).total_seconds())
