"""The way in to a function on Lambda, an HTTP API: HTTP becomes an event, within AWS's limits of size.

A request that is too large is refused before the function hears of it, and an answer that is too large is lost.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from http import HTTPStatus

from tests.deployed.lambda_environment import Environment
from tests.infra.rendering import Node
from tests.support.http_stand_in import Answer, Asked, http_stand_in

# Of an event, and of an answer, in which binary bodies are base64 text.
BYTES_MAX = 6 << 20


def event_of(
    method: str, path: str, headers: dict[str, str], body: bytes, authorizer: Node | None = None
) -> Node:
    """Make an event of a request, in payload format 2.0, with what an authorizer found out."""
    found = {} if authorizer is None else {"authorizer": authorizer}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            **found,
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"},
        },
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


class Entrance:
    """An HTTP API in front of a function."""

    def __init__(self, environment: Environment, authorizer: Node | None = None) -> None:
        """Take what serves one event at a time, and what each event is to say of its sender.

        `lost` has what was too large, either way, and what the function failed at, which a client is not told.
        """
        self._environment = environment
        self._authorizer = authorizer
        self._turn = threading.Lock()
        self.lost: list[str] = []

    def serve(self, asked: Asked) -> Answer:
        """Answer a request."""
        headers = {name.lower(): value for name, value in asked.headers.items()}
        event = event_of(asked.method, asked.path, headers, asked.body, self._authorizer)
        size = len(json.dumps(event))
        if size > BYTES_MAX:
            self.lost.append(f"a request of {len(asked.body)} bytes, {size} as an event")
            return Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"too large for the way in")
        with self._turn:
            self._environment.send(event)
            answer = self._environment.answer()
        size = len(json.dumps(answer))
        if "error" in answer or size > BYTES_MAX:
            self.lost.append(answer.get("error", f"an answer of {size} bytes"))
            return Answer(HTTPStatus.BAD_GATEWAY, b"Internal Server Error")
        result = answer["result"]
        body = result.get("body", "")
        content = base64.b64decode(body) if result["isBase64Encoded"] else body.encode()
        sent = {name: value for name, value in result["headers"].items() if name != "content-length"}
        return Answer(result["statusCode"], content, sent)

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Listen for the duration of the context; the address is given."""
        with http_stand_in(otherwise=self.serve) as server:
            yield server.address
