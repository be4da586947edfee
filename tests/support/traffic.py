"""What a boto3 client sends, recorded by botocore's own hooks.

Nothing is replaced by a stub: all of it goes to the engine and is answered by it.
"""

from dataclasses import dataclass
from typing import Any

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
        events.register("before-parameter-build", self._before)

    @property
    def operations(self) -> list[str]:
        """The names of the operations that were called, in order."""
        return [request.operation for request in self.requests]

    def clear(self) -> None:
        """Forget what was recorded."""
        self.requests.clear()

    def _before(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.requests.append(Request(model.service_model.service_name, model.name, dict(params)))
