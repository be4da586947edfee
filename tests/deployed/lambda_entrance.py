"""The ways in to a function on Lambda, as AWS has them: HTTP becomes an event, within AWS's limits of size.

A request that is too large is refused before the function hears of it, and an answer that is too large is lost. Who has
signed a request is said in the event, as a function URL says it once it has verified the signature.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.deployed.lambda_environment import Environment
from tests.infra.rendering import Node

MB = 1 << 20
CLAIMS = {"sub": "agents", "tenant": "acme"}
ROLE = "arn:aws:sts::210987654321:assumed-role/agents/session"


class Entrance(ABC):
    """One way in: how large bodies, events and answers may be, in bytes, and what an event is like."""

    request_bytes_max: int
    event_bytes_max: int
    answer_bytes_max: int

    def __init__(self, environment: Environment) -> None:
        """Take what serves one event at a time.

        `lost` has what was too large, either way, and what the function failed at, which a client is not told.
        """
        self._environment = environment
        self._turn = threading.Lock()
        self.lost: list[str] = []

    @abstractmethod
    def event(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Node:
        """Make an event of a request."""

    def serve(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Answer a request: the status, the headers and the body."""
        event = self.event(method, path, headers, body)
        size = len(json.dumps(event))
        if len(body) > self.request_bytes_max or size > self.event_bytes_max:
            self.lost.append(f"a request of {len(body)} bytes, {size} as an event")
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {}, b"too large for the way in"
        with self._turn:
            self._environment.send(event)
            answer = self._environment.answer()
        size = len(json.dumps(answer))
        if "error" in answer or size > self.answer_bytes_max:
            self.lost.append(answer.get("error", f"an answer of {size} bytes"))
            return HTTPStatus.BAD_GATEWAY, {}, b"Internal Server Error"
        return _opened(answer["result"])

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Listen for the duration of the context; the address is given."""
        entrance = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, sent, content = entrance.serve(self.command, self.path, headers, body)
                self.send_response(status)
                for name, value in {**sent, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


def _opened(result: Node) -> tuple[int, dict[str, str], bytes]:
    body = result.get("body", "")
    content = base64.b64decode(body) if result["isBase64Encoded"] else body.encode()
    return result["statusCode"], dict(result.get("headers") or {}), content


class FunctionUrl(Entrance):
    """A function URL with IAM: 6 MB for an event, and for an answer, in which binary bodies are base64 text."""

    request_bytes_max = event_bytes_max = answer_bytes_max = 6 * MB
    role: str | None = ROLE

    def event(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Node:
        """Make an event of payload format 2.0."""
        signed = {} if self.role is None else {"authorizer": {"iam": {"userArn": self.role}}}
        return {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": "",
            "headers": headers,
            "requestContext": {
                **signed,
                "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"},
            },
            **_body(body),
        }


class HttpApi(FunctionUrl):
    """An HTTP API whose JWT authorizer has verified a token with these claims."""

    def event(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Node:
        """Make an event of payload format 2.0."""
        event = super().event(method, path, headers, body)
        event["requestContext"]["authorizer"] = {"jwt": {"claims": CLAIMS, "scopes": None}}
        return event


class LoadBalancer(Entrance):
    """A load balancer whose target is the function: 1 MB for a body, and for an answer."""

    request_bytes_max = answer_bytes_max = MB
    event_bytes_max = 6 * MB

    def event(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Node:
        """Make an event as a load balancer does."""
        return {
            "requestContext": {"elb": {"targetGroupArn": "arn:aws:elasticloadbalancing:a-target-group"}},
            "httpMethod": method,
            "path": path,
            "queryStringParameters": {},
            "headers": headers,
            **_body(body),
        }


def _body(body: bytes) -> Node:
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
