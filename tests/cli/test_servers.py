"""`gateway`: the service as a process, from its first line to SIGTERM; and `view`: the page until Ctrl-C."""

import builtins
import json
import logging
import re
import signal
import socket
import sys
import threading
import webbrowser
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.cli import servers
from langgraph.checkpoint.dynamodb.cli.servers import listen
from langgraph.checkpoint.dynamodb.version import requirement
from langgraph.checkpoint.dynamodb.view import server
from langgraph.checkpoint.dynamodb.view.server import PageServer
from tests.cli.conftest import Run
from tests.support.gateway_service import gateway_process
from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")


def test_it_serves_until_it_is_told_to_end_and_logs_no_state(
    shared: str, saver: DynamoDBSaver, thread: str, engine: Engine
) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    assert saver.get_tuple(config) is not None
    words = ("gateway", "--port", "0", "--table", shared, "--endpoint-url", engine.endpoint_url, "--insecure")
    with gateway_process(*words) as (address, process, said), httpx.Client(base_url=address) as client:
        answer = client.post(
            "/checkpoints/delete-thread", json={"thread_id": thread}, headers={"X-Request-Id": "mine-1"}
        )
        assert answer.json() == {}
        assert answer.headers["x-request-id"] == "mine-1"
        process.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in said]
        assert process.wait() in (0, -signal.SIGTERM)
    mine = [line for line in lines if line.get("request_id") == "mine-1"]
    assert [line["endpoint"] for line in mine] == ["checkpoints/delete-thread"]
    assert thread not in json.dumps(lines)
    assert saver.get_tuple(config) is None
    assert lines[-2]["message"] == "Application shutdown complete."


def test_what_it_logs_are_lines_of_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, as far as that does not serve."""
    handlers: list[logging.Handler] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **options: handlers.extend(options["handlers"]))
    served: list[list[socket.socket]] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda _server, sockets: served.append(sockets))
    output = SimpleNamespace(note=print)
    context: Any = SimpleNamespace(output=output, options=SimpleNamespace(table_name="threads"))
    servers.serve(context, Starlette(), "127.0.0.1", 0)
    assert len(served) == 1
    assert re.match(r"serving table threads at http://127\.0\.0\.1:\d+", capsys.readouterr().out)
    assert handlers[0].formatter is not None
    for message, error in (({"endpoint": "put"}, None), ("started", None), ("failed", ValueError("state"))):
        failure = None if error is None else (type(error), error, None)
        record = logging.LogRecord("gateway", logging.INFO, "", 0, message, None, failure)
        line = json.loads(handlers[0].formatter.format(record))
        assert (line["level"], line["logger"]) == ("info", "gateway")
        assert line.get("endpoint") == (message["endpoint"] if isinstance(message, dict) else None)
        assert line.get("message") == (None if isinstance(message, dict) else message)
        assert line.get("error") == (None if error is None else "ValueError")
        assert "state" not in json.dumps(line)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])  # noqa: S104
def test_insecure_is_for_this_machine_only(run: Run, host: str) -> None:
    run("gateway", "--table", "threads", "--insecure", "--host", host).fails(2, "--insecure is for 127.0.0.1")


def test_a_file_for_the_gateway_alone_is_enough_beside_a_table(
    run_at: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []
    monkeypatch.setattr(servers, "serve", lambda *arguments: served.append(arguments[1:]))
    file = tmp_path / "gateway.yaml"
    file.write_text(f"gateway: {{principals: {{bearer: {{a: {{sha256: ['{'0' * 64}']}}}}}}}}")
    ended = run_at("gateway", "--table", "threads", "--config", str(file), "--host", "0.0.0.0")  # noqa: S104
    assert ended.code == 0, ended.err
    assert [each[1:] for each in served] == [("0.0.0.0", 8000)]  # noqa: S104


def test_without_the_extra_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.checkpoint.dynamodb.gateway.settings", None)
    run("gateway", "--table", "threads", "--insecure").fails(4, f"pip install {requirement('gateway')}")


async def _application(scope: object, receive: object, send: object) -> None:
    """Never called: nothing serves."""


def test_whoever_connects_before_the_server_is_up_waits_for_it_and_for_nothing_else() -> None:
    with (
        closing(listen(uvicorn.Config(_application, port=0))) as listener,
        socket.create_connection(listener.getsockname(), timeout=5),
    ):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# `view`


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give what a browser that is opened finds, which then ends the server."""
    found: list[str] = []
    servers: list[PageServer] = []
    make = PageServer.__init__

    def init(self: PageServer, *arguments: Any) -> None:
        make(self, *arguments)
        servers.append(self)

    def look(address: str) -> None:
        page = httpx.get(address, trust_env=False, follow_redirects=True)
        found.append(str(page.url))
        found.append(httpx.get(f"{page.url}api/start", trust_env=False).text)
        found.append(address)
        servers[0].end()

    def browse(address: str) -> bool:
        threading.Thread(target=look, args=(address,)).start()
        return True

    monkeypatch.setattr(PageServer, "__init__", init)
    monkeypatch.setattr(webbrowser, "open", browse)
    return found


def test_the_page_is_served_and_opened(run: Run, opened: list[str]) -> None:
    ended = run("view", "chat")
    assert ended.code == 0
    address, start, invitation = opened
    assert invitation != address
    assert ended.out == f"{address}\n"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", address)
    assert json.loads(start)["thread"] == "chat"
    assert "Ctrl-C" in ended.err


def test_no_browser_is_opened_if_none_is_wanted(
    run: Run, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PageServer, "run", lambda _: None)
    ended = run("view", "--no-browser")
    assert (ended.code, opened) == (0, [])


def test_a_port_that_is_taken_is_named(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        run("view", "--no-browser", "--port", str(port)).fails(2, f"port {port} cannot be used")


@pytest.mark.parametrize(("missing", "code"), [("starlette", 4), ("hmac", None)])
def test_without_the_extra_the_page_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str, code: int | None
) -> None:
    real = builtins.__import__

    def import_(module: str, *rest: Any) -> Any:
        if server.__name__.endswith(f".{module}"):
            raise ModuleNotFoundError(name=missing)
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", import_)
    monkeypatch.delitem(sys.modules, server.__name__)
    if code is None:
        with pytest.raises(ModuleNotFoundError):
            run("view")
    else:
        run("view").fails(code, f"pip install {requirement('view')}")
