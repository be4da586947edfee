"""What a boto3 client sends: recorded, broken or held back by botocore's own hooks.

Nothing is replaced by a stub: what is not broken goes to the engine and is answered by it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import EndpointConnectionError
from botocore.hooks import BaseEventHooks


@dataclass(frozen=True)
class Request:
    """One API call: the service, the operation's name in the API, and its parameters."""

    service: str
    operation: str
    params: dict[str, Any]


class Traffic:
    """Every API call that passes the hooks of a client, or of every client of a session."""

    def __init__(self, events: BaseEventHooks) -> None:
        """Listen to hooks.

        Args:
            events: `client.meta.events`, or `session.events` before the session makes its clients.
        """
        self.requests: list[Request] = []
        self._broken: int | None = None
        self._response_is_lost = False
        self._lock = threading.Lock()
        self._own = threading.local()
        events.register("before-parameter-build", self._before)
        events.register("after-call", self._after)

    @property
    def operations(self) -> list[str]:
        """The names of the operations that were called, in order."""
        return [request.operation for request in self.requests]

    def clear(self) -> None:
        """Forget what was recorded, and break nothing."""
        self.requests.clear()
        self._broken = None

    def break_request(self, number: int, *, response_is_lost: bool = False) -> None:
        """Forget what was recorded, and let one request fail as a connection does.

        Args:
            number: Which of the requests that come, from 0.
            response_is_lost: Whether the engine still carries it out.
        """
        self.clear()
        self._broken, self._response_is_lost = number, response_is_lost

    def _before(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        with self._lock:
            self._own.number = len(self.requests)
            self.requests.append(Request(model.service_model.service_name, model.name, dict(params)))
        if self._own.number == self._broken and not self._response_is_lost:
            raise EndpointConnectionError(endpoint_url="the test broke this request")

    def _after(self, **_: Any) -> None:
        if self._own.number == self._broken and self._response_is_lost:
            raise EndpointConnectionError(endpoint_url="the test lost this response")
