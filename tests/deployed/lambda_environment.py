"""An execution environment of Lambda: one process that runs a handler, for one event at a time; and the way in to it.

That is an HTTP API: HTTP becomes an event, within AWS's limits of size. A request that is too large is refused before
the function hears of it, and an answer that is too large is lost.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus

from tests.deployed import lambda_runtime
from tests.infra.rendering import Node
from tests.support.http_stand_in import Answer, Asked, http_stand_in


class Environment:
    """A process that runs `lambda_runtime`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take over the process."""
        self._process = process

    @classmethod
    @contextlib.contextmanager
    def running(cls, handler: str, variables: Mapping[str, str], *modules: str) -> Iterator[Environment]:
        """Run a handler for the duration of the context, after these modules were imported."""
        with subprocess.Popen(  # noqa: S603  # Our own program, in the interpreter of the tests.
            [sys.executable, lambda_runtime.__file__, handler, *modules],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield cls(process)
            finally:
                process.kill()

    def send(self, event: Node) -> None:
        """Begin an invocation."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(event) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Node:
        """Wait for the invocation to end; the answer is its result or its error, and None if the process ended too."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline() or "null")

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the process for the duration of the context, as Lambda does between two invocations."""
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)


# Of an event, and of an answer, in which binary bodies are base64 text.
BYTES_MAX = 6 << 20


def event_of(method: str, path: str, headers: dict[str, str], body: bytes) -> Node:
    """Make an event of a request, in payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.7"}
        },
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


class Entrance:
    """An HTTP API in front of a function."""

    def __init__(self, environment: Environment) -> None:
        """Take what serves one event at a time.

        `lost` has what was too large, either way, and what the function failed at, which a client is not told.
        """
        self._environment = environment
        self._turn = threading.Lock()
        self.lost: list[str] = []

    def serve(self, asked: Asked) -> Answer:
        """Answer a request."""
        headers = {name.lower(): value for name, value in asked.headers.items()}
        event = event_of(asked.method, asked.path, headers, asked.body)
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
