"""A server in place of DynamoDB's endpoint, whose answers are said beforehand."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DROPPED = (0, "")


@dataclass
class Scripted:
    """What the server answers, and what it was asked."""

    address: str
    # A status and an error's code for each request to come, in turn; then every query finds nothing.
    script: list[tuple[int, str]] = field(default_factory=list)
    always: tuple[int, str] | None = None
    requests: list[str] = field(default_factory=list)
    # What an error says beside its code.
    details: dict[str, Any] = field(default_factory=lambda: {"message": "as scripted"})

    def next_answer(self, operation: str) -> tuple[int, str]:
        """Note a request, and say how to answer it."""
        self.requests.append(operation)
        return self.always or (self.script.pop(0) if self.script else (200, ""))


@contextlib.contextmanager
def scripted_server() -> Iterator[Scripted]:
    """Run such a server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the body of an answer waits for 40 ms until its headers are confirmed.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, code = scripted.next_answer(self.headers["X-Amz-Target"].partition(".")[2])
            if (status, code) == DROPPED:
                self.close_connection = True
                return
            error = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **scripted.details}
            body = json.dumps({"Items": [], "Count": 0} if status == 200 else error).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scripted = Scripted(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield scripted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
