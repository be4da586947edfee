"""An agent on ECS: a small HTTP service that can be killed at any moment and goes on where it was.

    GET  /health               200 while the process serves
    POST /threads/<thread id>  {"id": "<message id>", "text": "..."}: the reply; safe to send again with the same id
    GET  /threads/<thread id>  the conversation

A client that lost the connection, or was told 503, sends the same request again, to whichever task answers. The
message id tells the service that it has the message already; what a killed task left unfinished is finished, not begun
again. Two tasks never run one thread at a time, or the later one would undo what the other had answered. A message that
cannot be answered, however often it is tried, gets 422, and later messages of its thread are served.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from agent import AttemptFailedError, MessageFailedError, build_agent, converse, reply_to
from botocore.exceptions import BotoCoreError, ClientError

from langgraph.checkpoint.dynamodb import CheckpointerError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import EmbeddedMetrics
from langgraph.store.dynamodb import DynamoDBStore

BODY_BYTES_MAX = 1_000_000

# Writes what each operation took, and whether it failed, to the task's log, of which CloudWatch makes metrics.
metrics = EmbeddedMetrics()
table_name = os.environ["LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME"]
ttl = os.environ.get("LANGGRAPH_CHECKPOINTER_CONFIG__TTL_SECONDS")
saver = DynamoDBSaver(table_name, ttl_seconds=None if ttl is None else int(ttl), on_event=metrics)
store = DynamoDBStore(table_name, on_event=metrics)
agent = build_agent(saver, store)


class RequestError(Exception):
    """The request cannot be served; the arguments are the status and the reason."""


def answer(thread_id: str, message_id: str, text: str) -> dict[str, Any]:
    """Answer one message.

    Args:
        thread_id: The conversation.
        message_id: The client's own id of the message.
        text: What the person says.

    Returns:
        The reply, and which process took which step of it.
    """
    state = converse(agent, thread_id, message_id, text)
    return {"reply": reply_to(state, message_id), "steps": state["steps"]}


def history(thread_id: str) -> list[dict[str, str]]:
    """List the messages of a thread.

    Args:
        thread_id: The conversation.

    Returns:
        Who said what, oldest first.
    """
    state = agent.get_state({"configurable": {"thread_id": thread_id}}).values
    return [{"from": message.type, "text": str(message.content)} for message in state.get("messages", [])]


class Handler(BaseHTTPRequestHandler):
    """Turns HTTP into calls of the functions above."""

    # A client that sends nothing must not hold a thread, nor the process after SIGTERM: well below StopTimeout.
    timeout = 10

    def do_GET(self) -> None:
        """Serve the health check and the conversations."""
        if self.path == "/health":
            self._send(HTTPStatus.OK, {"status": "ok"})
        else:
            self._serve(lambda thread_id: {"messages": history(thread_id)})

    def do_POST(self) -> None:
        """Serve a message."""
        self._serve(lambda thread_id: answer(thread_id, *self._body()))

    def _serve(self, serve: Callable[[str], dict[str, Any]]) -> None:
        try:
            self._send(HTTPStatus.OK, serve(self._thread_id()))
        except RequestError as error:
            status, reason = error.args
            self._send(status, {"error": reason})
        except MessageFailedError as error:
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)})
        except (AttemptFailedError, CheckpointerError, BotoCoreError, ClientError) as error:
            # Nothing is lost: what was stored before stays, and the same request continues from there.
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, {"error": f"{error}; send the request again"})

    def _thread_id(self) -> str:
        prefix, _, thread_id = self.path.rpartition("/")
        if prefix != "/threads" or not thread_id:
            raise RequestError(HTTPStatus.NOT_FOUND, "POST or GET /threads/<thread id>, or GET /health")
        return unquote(thread_id)

    def _body(self) -> tuple[str, str]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            raise RequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Content-Length has to be at most {BODY_BYTES_MAX}"
            )
        try:
            body = json.loads(self.rfile.read(int(length)))
            message_id, text = body["id"], body["text"]
        except (ValueError, KeyError, TypeError):
            message_id = text = None
        if not isinstance(message_id, str) or not isinstance(text, str) or not message_id:
            raise RequestError(HTTPStatus.BAD_REQUEST, 'the body is {"id": "<message id>", "text": "..."}')
        return message_id, text

    def _send(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log to standard output, which the task definition sends to CloudWatch."""
        sys.stdout.write(f"{self.address_string()} {format % args}\n")
        sys.stdout.flush()


def main() -> None:
    """Serve until SIGTERM, which is how ECS asks a task to end; requests under way are answered first."""
    address = (os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8080")))  # noqa: S104  # A container's.
    # Otherwise the first client would wait while modules are loaded and connections are made.
    saver.warm_up()
    store.warm_up()
    with ThreadingHTTPServer(address, Handler) as server:
        server.daemon_threads = False
        # `shutdown` waits for the loop that this very thread runs, so it needs another one.
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"serving on port {server.server_port}", flush=True)  # noqa: T201  # Tells who started it the port.
        server.serve_forever()
    saver.close()
    store.close()


if __name__ == "__main__":
    main()
