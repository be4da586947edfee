"""One request and its response: arguments, headers and bodies, the meaning of errors, and when to send it again.

It does no I/O and does not wait: the transport does, blocking or on an event loop.
"""

import inspect
import json
import ssl
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from .. import errors
from .._format import items, labels, wire
from .._format.compression import zstd
from .._runtime.attempts import Attempts
from .._runtime.failures import THROTTLED
from .._runtime.steps import Call, Op
from ..gateway.call import ENDPOINTS, Done, Endpoint, Kind, mistakes_of
from ..gateway.serving import Serving

P = ParamSpec("P")

# Calls of the functions of the service


@dataclass
class Inside:
    """Changes names as the agent has them to those in the table, and notes them."""

    prefix: str
    named: list[str] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)

    def __call__(self, kind: Kind, name: Any) -> Any:
        """Return a name in the table."""
        if kind == "thread":
            name = self.prefix + name
            items.partition_of(name)
            self.named.append(name)
        elif kind in ("threads", "owner"):
            name = self.prefix + name
        elif kind in ("memories", "searched"):
            self.tenants.update(map(labels.name_of, name[:1]))
        elif kind == "nodes":
            self.tenants.update(name[:1])
        return name


@dataclass
class OutgoingCall:
    """A call with its arguments, as the transport of a client gets it."""

    endpoint: Endpoint[Any]
    arguments: BaseModel
    inside: Inside
    """Has taken the names that are sent."""
    sent_bytes: int = field(default=0, init=False)
    received_bytes: int = field(default=0, init=False)

    def body(self) -> bytes:
        """Return the body of the request."""
        content = encoded(self.arguments)
        self.sent_bytes = len(content)
        return content

    def result(self, content: bytes) -> Any:
        """Return the result in the body of a response."""
        self.received_bytes = len(content)
        found = self.endpoint.response.validate_json(content)
        return None if isinstance(found, Done) else found


def encoded(document: Any) -> bytes:
    """Return the JSON of a request, or of a part of one."""
    try:
        if isinstance(document, BaseModel):
            return document.__pydantic_serializer__.to_json(document, exclude_defaults=True)
        return to_json(document, bytes_mode="base64")
    except PydanticSerializationError as error:
        msg = f"an argument cannot be sent to the gateway: {error}; use valid Unicode"
        raise errors.CheckpointerInputError(msg) from error


def size_of(value: Any) -> int:
    """Return how many bytes a request, a response or a part of one has, about: those of its texts and bytes."""
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, (Mapping, BaseModel)) or is_dataclass(value):
        inner = value if isinstance(value, Mapping) else vars(value)
        return sum(map(size_of, inner.values()))
    return sum(map(size_of, value)) if isinstance(value, (list, tuple)) else 1


def call_to(
    function: Callable[Concatenate[Serving, P], Op[Any]], prefix: str, /, *args: P.args, **named: P.kwargs
) -> Call:
    """Return a call of a function of the service, of which only the signature is used."""
    endpoint, inside = ENDPOINTS[function], Inside(prefix)
    _, *given = inspect.signature(function).bind(None, *args, **named).arguments.items()
    try:
        model = endpoint.arguments.__pydantic_validator__.validate_python(dict(given), context=inside)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            original = each.get("ctx", {}).get("error")
            if isinstance(original, errors.CheckpointerError):
                raise original from None
        raise errors.CheckpointerInputError(mistakes_of(error)) from None
    return Call(endpoint.name, {"asked": OutgoingCall(endpoint, model, inside)})


def asked_in(call: Call) -> OutgoingCall | None:
    """Return a call's arguments; `None` for one that is not of a function."""
    asked: OutgoingCall | None = call.params.get("asked")
    return asked


# Responses

MEDIA_TYPE = "application/json"
ENCODING = "zstd"

_ZSTD_LEVEL = 3


@dataclass(frozen=True)
class RawResponse:
    """A response as it was received."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes
    """Compressed as its Content-Encoding says: with zstd, or not at all."""

    @property
    def content(self) -> bytes:
        """The decompressed body."""
        if self.headers.get("Content-Encoding", "").strip().lower() != ENCODING:
            return self.body
        try:
            return zstd.decompress(self.body)
        except zstd.ZstdError as error:
            # httpx raises the same for other bodies that are cut off.
            raise httpx.RemoteProtocolError(f"the compressed body is not complete ({error})") from error


def compressed(data: bytes) -> bytes:
    """Compress a body for the service."""
    return zstd.compress(data, _ZSTD_LEVEL)


# Errors: the gateway describes them by RFC 9457, with a type that ends in the name of a class of `errors.py`. Of what a
# proxy in front of it says, only the status is used.

# Statuses of a gateway, or of a proxy in front of it, that cannot serve a request at the moment.
_PASSING = frozenset({429, 502, 503, 504})
# API Gateway's status if Lambda has no room for an invocation. A gateway's own has a problem, and stays.
_PASSING_WITHOUT_PROBLEM = 500
_WORDS_MAX = 1000


class TurnedAwayError(Exception):
    """The gateway does not serve a request at the moment."""

    def __init__(self, failure: errors.CheckpointerError, after_seconds: float) -> None:
        """Take the error to raise if retries do not help, and how many seconds the gateway asks to wait.

        If the gateway's table throttles, a client waits by itself, as a saver on the table does.
        """
        super().__init__(str(failure))
        self.failure = failure
        self.after_seconds = 0.0 if failure.code in THROTTLED else after_seconds
        # By this, events count it as DynamoDB's own error.
        self.response = {"Error": {"Code": failure.code or ""}}


def failure_of(response: RawResponse, url: str, request_id: str) -> Exception:
    """Return the exception for an error response."""
    problem, status = _problem(response), response.status_code
    request_id = response.headers.get(wire.REQUEST_ID_HEADER) or request_id
    failure = _failure(status, problem, url, request_id)
    code = problem.get("code")
    failure.code = code if isinstance(code, str) else None
    failure.request_id = request_id
    if status in _PASSING or (status == _PASSING_WITHOUT_PROBLEM and not problem):
        return TurnedAwayError(failure, _after_seconds(response))
    return failure


def failure_in(problem: Mapping[str, Any]) -> errors.CheckpointerError:
    """Return the exception for a problem in a document, also for one that only a newer gateway knows."""
    return _named_error(problem) or errors.CheckpointerError(f"the gateway says: {_words(problem)}")


def _failure(status: int, problem: Mapping[str, Any], url: str, request_id: str) -> errors.CheckpointerError:
    phrase = httpx.codes.get_reason_phrase(status) or "(an unknown status)"
    says = f"{status} {_words(problem) or phrase}"
    if status == HTTPStatus.UNAUTHORIZED:
        msg = f"the gateway at {url} refused the credentials ({says}); pass auth=, or a token that has not expired"
        return errors.CheckpointerConfigurationError(msg)
    if status == HTTPStatus.FORBIDDEN:
        msg = f"the gateway at {url} does not allow this ({says}); check auth=, or ask its operator for the right"
        return errors.CheckpointerConfigurationError(msg)
    if 300 <= status < 400:
        msg = f"the gateway at {url} redirects ({says}), which this client does not follow; check url"
        return errors.CheckpointerConfigurationError(msg)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and not problem:
        msg = (
            f"a proxy in front of the gateway at {url} refuses a body of this size ({says}); let it accept the"
            " gateway's body_bytes_max, 64 MiB by default (nginx: client_max_body_size 64m), or keep less in the state"
        )
        return errors.CheckpointerConfigurationError(msg)
    named = _named_error(problem)
    if named is not None:
        if sys.version_info >= (3, 11):
            named.add_note(f"The gateway at {url} gave this response to request {request_id}.")
        return named
    remedy = (
        ""
        if problem
        else "; the gateway itself does not answer like this: check url, and any proxy in front of the gateway"
    )
    return errors.CheckpointerError(f"the gateway at {url} answered {says} (request id {request_id}){remedy}")


def _problem(response: RawResponse) -> Mapping[str, Any]:
    """Return the problem in a response's body; empty if there is none."""
    if "problem+json" not in response.headers.get("Content-Type", ""):
        return {}
    try:
        problem = json.loads(response.content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _named_error(problem: Mapping[str, Any]) -> errors.CheckpointerError | None:
    """Return the exception that a problem's type names, with its message; `None` if it names none of ours."""
    name = str(problem.get("type", "")).replace(":", "/").replace("#", "/").rpartition("/")[2]
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.CheckpointerError) and "detail" in problem:
        return kind(_words(problem))
    return None


def _words(problem: Mapping[str, Any]) -> str:
    return str(problem.get("detail") or problem.get("title") or "")[:_WORDS_MAX]


def _after_seconds(response: RawResponse) -> float:
    """Return how many seconds to wait before the next attempt, by the header, which has seconds or a date."""
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, (until - datetime.now(timezone.utc)).total_seconds())


# The request

_ABOUT = "about"
# Processes of a service share nothing but the table. Proxies send requests with the same value to the same process.
_THREAD = "X-Thread"
_THREAD_CHARACTERS = 16
_HEADERS = {"Accept-Encoding": ENCODING, "User-Agent": "langgraph-dynamodb"}
# The clocks of a service's processes differ by a little.
_UNSURE_SECONDS = 0.25
# `Date` has whole seconds.
_DATE_SECONDS = 1.0
# A smaller body is not worth compressing.
_COMPRESSED_BYTES_MIN = 1024


class ServiceClock:
    """The service's clock, as its responses report it."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the time to wait for a response, in seconds, and this machine's clock."""
        self._timeout = timeout
        self._clock = clock
        self._ahead_seconds: float | None = None

    def headers(self) -> Mapping[str, str]:
        """Return the header with the deadline of a request that is sent now; none before the first response."""
        if self._ahead_seconds is None:
            return {}
        waits_seconds = max(self._timeout - _UNSURE_SECONDS, _DATE_SECONDS)
        return {wire.DEADLINE_HEADER: f"{self._clock() + self._ahead_seconds + waits_seconds:.3f}"}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Set the clock by the headers of a response."""
        with suppress(ValueError, TypeError, OverflowError):
            # The response took a while, and `Date` leaves out the part of a second. So the service's clock is ahead by
            # this or by more, and of many responses the one that says the most is the closest.
            ahead_seconds = parsedate_to_datetime(headers.get("Date", "")).timestamp() - self._clock()
            known = self._ahead_seconds
            was_set_back = known is not None and ahead_seconds < known - _DATE_SECONDS - self._timeout
            if known is None or was_set_back or ahead_seconds > known:
                self._ahead_seconds = ahead_seconds


class Exchange:
    """One call of an endpoint, with all its attempts."""

    def __init__(self, url: str, call: Call, retry_seconds: float, clock: ServiceClock) -> None:
        """Take the gateway's address and clock, the call, and for how many seconds to start attempts."""
        self._url = url
        self._clock = clock
        self._retry_seconds = 0.0 if call.is_sent_once else retry_seconds
        # One id for all attempts, by which the logs of the gateway and of proxies can be searched.
        self.request_id = uuid.uuid4().hex
        headers = {**_HEADERS, wire.REQUEST_ID_HEADER: self.request_id}
        self._asked = asked_in(call)
        self._request: dict[str, Any] = {"method": "GET", "url": f"{url}/{_ABOUT}", "headers": headers}
        if self._asked is not None:
            content = self._asked.body()
            headers["Content-Type"] = MEDIA_TYPE
            headers |= _affinity(self._asked.inside.named)
            if len(content) >= _COMPRESSED_BYTES_MIN:
                content = compressed(content)
                headers["Content-Encoding"] = ENCODING
            path = self._asked.endpoint.path
            self._request |= {"method": "POST", "url": f"{url}{path}", "content": content}

    def request(self) -> dict[str, Any]:
        """Return the keyword arguments of httpx's `build_request`, for an attempt that starts now."""
        # Attempts start here, not in the constructor: a request that waited long for its turn gets as many retries.
        headers = {**self._request["headers"], **self._clock.headers()}
        return {**self._request, "headers": headers}

    @cached_property
    def _attempts(self) -> Attempts:
        return Attempts(self._retry_seconds, _is_transient, lambda error: str(self._told(error)))

    def result(self, response: RawResponse) -> Any:
        """Return what a response says; raise the exception for an error response."""
        self._check(response)
        content = response.content
        try:
            return json.loads(content) if self._asked is None else self._asked.result(content)
        except (ValueError, RecursionError) as error:
            raise errors.CheckpointerError(
                f"the response of the gateway at {self._url} cannot be read: it is not one of this release; check url,"
                " and any proxy in front of the gateway"
            ) from error

    def _check(self, response: RawResponse) -> None:
        """Raise the exception for a response that is none of the gateway's."""
        self._clock.learn(response.headers)
        if response.status_code != HTTPStatus.OK:
            raise failure_of(response, self._url, self.request_id)
        media_type = response.headers.get("Content-Type", "")
        if media_type.partition(";")[0].strip().lower() != MEDIA_TYPE:
            msg = (
                f"the server at {self._url} is not a gateway of this release: it sent {media_type or 'no media type'};"
                " check url, and any proxy in front of the gateway"
            )
            raise errors.CheckpointerConfigurationError(msg)

    def seconds_to_next(self, error: Exception) -> float:
        """Return how many seconds to wait after a failed attempt, or raise the caller's exception."""
        after_seconds = error.after_seconds if isinstance(error, TurnedAwayError) else 0.0
        wait = self._attempts.seconds_to_next(error, after_seconds)
        if wait is None:
            told = self._told(error)
            if isinstance(told, errors.CheckpointerError):
                told.attempts = self._attempts.number
                told.request_id = told.request_id or self.request_id
            raise told from (None if told is error else error)
        return wait

    def _told(self, error: Exception) -> Exception:
        """Return the exception that the caller gets for one of ours or of httpx."""
        if isinstance(error, TurnedAwayError):
            return error.failure
        if isinstance(error, httpx.RequestError):
            return errors.CheckpointerError(
                f"no response from the gateway at {self._url} ({type(error).__name__}: {error}); check url, that the"
                " gateway runs and lets this machine in (DNS, security groups, TLS certificate), and the proxies in"
                " the environment"
            )
        return error


def _affinity(thread_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the header by which a proxy sends requests of a thread to one process."""
    if not thread_ids:
        return {}
    return {_THREAD: sha256(thread_ids[0].encode("utf-8", "replace")).hexdigest()[:_THREAD_CHARACTERS]}


def _is_transient(error: Exception) -> bool:
    """Tell whether the same request may succeed later."""
    if isinstance(error, TurnedAwayError):
        return True
    ours = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
    return (
        isinstance(error, httpx.TransportError)
        and not isinstance(error, ours)
        and not _is_of_certificate(error)
    )


def _is_of_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
