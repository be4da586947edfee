"""`view`: the page is served until Ctrl-C."""

from __future__ import annotations

import builtins
import json
import re
import socket
import sys
import threading
import webbrowser
from typing import Any

import httpx
import pytest

from langgraph.checkpoint.dynamodb.version import requirement
from langgraph.checkpoint.dynamodb.view import server
from langgraph.checkpoint.dynamodb.view.server import PageServer
from tests.cli.conftest import Run

pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def shared(table: str) -> str:
    """Give the table with threads that no test changes."""
    return table


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
def test_without_the_extra_it_says_what_to_install(
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
