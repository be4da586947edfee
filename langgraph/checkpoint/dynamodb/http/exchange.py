"""One request and its response: the headers and body, the meaning of the response, and when to send it again.

It does no I/O and does not wait: the transport does, blocking or on an event loop.
"""

from __future__ import annotations

import json
import ssl
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from .._runtime.attempts import Attempts
from .._runtime.steps import Call
from ..errors import CheckpointerConfigurationError, CheckpointerError
from ..gateway.call import asked_in
from . import documents
from .documents import Reply
from .problems import REQUEST_ID, TurnedAwayError, failure_of

_ABOUT = "about"
# Processes of a service share nothing but the table. Proxies send requests with the same value to the same process.
_THREAD = "X-Thread"
_THREAD_CHARACTERS = 16
_HEADERS = {"Accept-Encoding": documents.ENCODING, "User-Agent": "langgraph-dynamodb"}
# Until when the client waits, by the service's clock. The service does not carry out a request that arrives later.
DEADLINE = "X-Deadline"
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
        return {DEADLINE: f"{self._clock() + self._ahead_seconds + waits_seconds:.3f}"}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Set the clock by the headers of a response."""
        with suppress(ValueError, TypeError):
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
        headers = {**_HEADERS, REQUEST_ID: self.request_id}
        self._asked = asked_in(call)
        self._request: dict[str, Any] = {"method": "GET", "url": f"{url}/{_ABOUT}", "headers": headers}
        if self._asked is not None:
            content = self._asked.body()
            headers["Content-Type"] = documents.MEDIA_TYPE
            headers |= _affinity(self._asked.inside.named)
            if len(content) >= _COMPRESSED_BYTES_MIN:
                content = documents.compressed(content)
                headers["Content-Encoding"] = documents.ENCODING
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

    def answer(self, response: Reply) -> Any:
        """Return what a response says; raise the exception for an error response."""
        self._check(response)
        content = response.content
        try:
            return json.loads(content) if self._asked is None else self._asked.result(content)
        except (ValueError, RecursionError) as error:
            raise documents.BadDocumentError("it is not one of this release") from error

    def _check(self, response: Reply) -> None:
        """Raise the exception for a response that is none of the gateway's."""
        self._clock.learn(response.headers)
        if response.status_code != HTTPStatus.OK:
            raise failure_of(response, self._url, self.request_id)
        media_type = response.headers.get("Content-Type", "")
        if media_type.partition(";")[0].strip().lower() != documents.MEDIA_TYPE:
            msg = (
                f"the server at {self._url} is not a gateway of this release: it sent {media_type or 'no media type'};"
                " check url, and any proxy in front of the gateway"
            )
            raise CheckpointerConfigurationError(msg)

    def seconds_to_next(self, error: Exception) -> float:
        """Return how many seconds to wait after a failed attempt, or raise the caller's exception."""
        after_seconds = error.after_seconds if isinstance(error, TurnedAwayError) else 0.0
        wait = self._attempts.seconds_to_next(error, after_seconds)
        if wait is None:
            told = self._told(error)
            raise told from (None if told is error else error)
        return wait

    def _told(self, error: Exception) -> Exception:
        """Return the exception that the caller gets for one of ours or of httpx."""
        import httpx  # noqa: PLC0415 - it is loaded by now.

        if isinstance(error, TurnedAwayError):
            return error.failure
        if isinstance(error, documents.CutOffError):
            return CheckpointerError(
                f"the answer of the gateway at {self._url} broke off: {error}; retry the call"
            )
        if isinstance(error, documents.BadDocumentError):
            return CheckpointerError(f"the answer of the gateway at {self._url} cannot be read: {error}")
        if isinstance(error, httpx.RequestError):
            return CheckpointerError(
                f"no answer from the gateway at {self._url} ({type(error).__name__}: {error}); check url, that the"
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
    import httpx  # noqa: PLC0415 - it is loaded by now.

    if isinstance(error, (TurnedAwayError, documents.CutOffError)):
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
