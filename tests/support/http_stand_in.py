"""A server in place of another one, whose answers are said beforehand: for what a client makes of bad ones."""

import contextlib
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MEDIA_TYPE = "application/json"


@dataclass(frozen=True)
class Answer:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": MEDIA_TYPE})
    # What is sent of the body before the connection is cut; None is all of it, and no cut.
    cut_after: int | None = None
    delay_seconds: float = 0.0


# The connection is cut without a word, before the request is read or after.
UNREAD = Answer(status=0)
DROPPED = Answer(status=-1)

ABOUT = Answer(body=b'{"wire_version": 3}', headers={"Content-Type": "application/json"})


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def document(self) -> Any:
        """What it says."""
        return json.loads(self.body)


def _as_the_gateway(asked: Asked) -> Answer:
    """Give a request its own document back, or what the gateway says of itself."""
    return Answer(body=asked.body) if asked.body else ABOUT


@dataclass
class StandIn:
    """What the server answers, and what it was asked."""

    address: str
    # For each request to come, in turn; then what `otherwise` says.
    script: list[Answer] = field(default_factory=list)
    always: Answer | None = None
    otherwise: Callable[[Asked], Answer] = _as_the_gateway
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_answer(self) -> Answer | None:
        """Say how to answer the next request; None where that is for `otherwise`."""
        with self._lock:
            return self.always or (self.script.pop(0) if self.script else None)


def document(content: Any, **options: Any) -> Answer:
    """Answer with a document."""
    return Answer(body=json.dumps(content).encode(), **options)


def problem(status: int, kind: str, detail: str | None, **headers: str) -> Answer:
    """Answer with a problem body."""
    content = {"type": f"urn:langgraph-dynamodb:error:{kind}", "title": "A title", "status": status}
    if detail is not None:
        content["detail"] = detail
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(content).encode(), {"Content-Type": "application/problem+json", **named})


class _Server(ThreadingHTTPServer):
    """The server, which does not wait for clients that keep their connections."""

    daemon_threads = True

    def __init__(self, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        port = self.server_address[1]
        self.stand_in = StandIn(f"http://127.0.0.1:{port}")
        if certificate is not None:
            self.stand_in.address = f"https://localhost:{port}"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that has gone away, or trusts nobody."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            raise


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        self.server.stand_in.connections += 1
        super().setup()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        stand_in = self.server.stand_in
        answer = stand_in.next_answer()
        if answer != UNREAD:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            stand_in.asked.append(Asked(self.command, self.path, self.headers, body))
            answer = answer or stand_in.otherwise(stand_in.asked[-1])
        if answer in (UNREAD, DROPPED):
            self.close_connection = True
        else:
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        if answer.delay_seconds:
            time.sleep(answer.delay_seconds)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut_after])
        self.close_connection = answer.cut_after is not None

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def http_stand_in(
    certificate: Path | None = None, otherwise: Callable[[Asked], Answer] = _as_the_gateway
) -> Iterator[StandIn]:
    """Run such a server; with TLS where there is a file with a key and a certificate."""
    with _Server(certificate) as server:
        server.stand_in.otherwise = otherwise
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.stand_in
        finally:
            server.shutdown()
            thread.join()
