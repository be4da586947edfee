"""The server: documents and files to its own page, and to nobody else."""

import mimetypes
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError
from starlette.testclient import TestClient

from langgraph.checkpoint.dynamodb import DynamoDBSaver, errors
from langgraph.checkpoint.dynamodb.view import STATIC, server
from langgraph.checkpoint.dynamodb.view.responses import Responses
from langgraph.checkpoint.dynamodb.view.server import PageServer, make_app
from langgraph.checkpoint.dynamodb.view.thread_view import Session, ThreadView
from tests.support.checkpoints import store, thread_config

pytestmark = pytest.mark.engines("dynamodb-local")

PORT = 4711
TOKEN = "the-token"  # noqa: S105  # It opens a server of this process.
OWN = f"http://127.0.0.1:{PORT}"
PAGE = f"/{TOKEN}/"


@pytest.fixture
def page(saver: DynamoDBSaver) -> Iterator[TestClient]:
    """Give a client of the app, which calls it by the address that it is served at."""
    app = make_app(Responses(Session(saver), "thread-1"), port=PORT, token=TOKEN)
    with TestClient(app, base_url=OWN, raise_server_exceptions=False) as client:
        yield client


def test_the_page_and_its_files_are_served(page: TestClient) -> None:
    found = page.get(PAGE)
    assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in ("index.html", "app.js", "style.css"):
        assert page.get(PAGE + name).content == (STATIC / name).read_bytes()
    found = page.get(f"{PAGE}api/start")
    assert (found.headers["content-type"], found.json()["thread"]) == ("application/json", "thread-1")


def test_a_browser_runs_its_scripts_whatever_the_machine_takes_them_for(
    saver: DynamoDBSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the registry of Windows may have it; the files of other machines may lack it.
    known = mimetypes.MimeTypes(filenames=())
    known.add_type("text/plain", ".js")
    monkeypatch.setattr(mimetypes, "_db", known)
    app = make_app(Responses(Session(saver), "thread-1"), port=PORT, token=TOKEN)
    with TestClient(app, base_url=OWN) as client:
        assert client.get(f"{PAGE}app.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}api/start", f"{PAGE}nothing.js", "/", "/other/"])
def test_every_response_allows_nothing_from_elsewhere(page: TestClient, path: str) -> None:
    headers = page.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def is_refused(found: Any) -> bool:
    """Whether a request was refused as one that is not of the page, whatever it asked for."""
    return bool(found.status_code == 403 and "open the page by the address" in found.json()["detail"])


@pytest.mark.parametrize(
    "path", ["/", "/api/start", "/the-toke/", "/the-token", "/the-token-/", "//", "/%74/"]
)
def test_without_the_token_nothing_is_served(page: TestClient, path: str) -> None:
    assert is_refused(page.get(path))
    assert is_refused(page.post(path))


@pytest.mark.parametrize(
    "headers",
    [
        # Names that were made to lead here.
        {"host": "attacker.example"},
        {"host": f"attacker.example:{PORT}"},
        {"host": "127.0.0.1"},
        {"host": "localhost:80"},
        {"host": f"0.0.0.0:{PORT}"},
        {"host": f"127.0.0.1.attacker.example:{PORT}"},
        {"host": ""},
        # Pages of other origins.
        {"origin": "https://attacker.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_what_another_page_may_send_is_refused(page: TestClient, headers: dict[str, str]) -> None:
    assert is_refused(page.get(f"{PAGE}api/start", headers=headers))


def test_only_the_files_of_the_page_are_served_and_no_link(
    page: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "folder.js").mkdir()
    (tmp_path / "linked.js").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setattr(server, "STATIC", tmp_path)
    for name in ("secret.txt", "linked.js", "folder.js"):
        assert page.get(PAGE + name).status_code == 404


IN_CHECKPOINT = {"thread": "x", "ns": "", "checkpoint": "1"}


@pytest.mark.parametrize(
    ("name", "asked", "status"),
    [
        ("nothing", {}, 404),
        ("document", {}, 404),
        ("tree", {}, 400),
        ("tree", {"thread": "", "ns": ""}, 400),
        ("tree", {"thread": "x", "ns": "", "limit": "many"}, 400),
        ("tree", {"thread": "x", "ns": "", "limit": "5001"}, 400),
        ("tree", {"thread": "x", "ns": "", "limit": "0"}, 400),
        ("tree", {"thread": "x", "ns": "", "self": "x"}, 400),
        ("tree", {"thread": "x", "ns": "child"}, 404),
        ("state", IN_CHECKPOINT, 404),
        ("threads", {}, 400),
        ("threads", {"run": ""}, 400),
        ("search", {"thread": "x", "text": ""}, 400),
        ("search", {"thread": "x", "text": "x", "cursor": "y"}, 400),
        ("search", {"thread": "x", "text": "x", "cursor": "1" * 5_000}, 400),
        *(
            ("part", {**IN_CHECKPOINT, "path": path}, 400)
            for path in ("", "x", "{}", "[1.5]", "[true]", "[null]", "[[]]", "[" * 5_000)
        ),
    ],
)
def test_what_cannot_be_had_is_a_problem_in_words(
    page: TestClient, name: str, asked: dict[str, str], status: int
) -> None:
    found = page.get(f"{PAGE}api/{name}", params=asked)
    assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")
    assert found.json()["status"] == status
    assert found.json()["detail"]


def _aws(code: str) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "no"}}
    return ClientError(response, "Query")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.CheckpointerInputError("x"), 400),
        (errors.CheckpointerConfigurationError("x"), 502),
        (errors.CheckpointCorruptionError("x"), 502),
        (errors.CheckpointFormatError("x"), 502),
        (_aws("AccessDeniedException"), 502),
        (_aws("SomethingElse"), 502),
        (errors.CheckpointerUnavailableError("x"), 503),
        # Nobody has foreseen it, so it says nothing of itself.
        (RuntimeError("a secret"), 500),
    ],
)
def test_an_error_says_what_to_do(
    page: TestClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Responses, "document", fail)
    found = page.get(f"{PAGE}api/start")
    assert found.status_code == status
    assert "secret" not in found.text
    assert status == 500 or found.json()["status"] == status


# The whole server


@pytest.fixture
def served(saver: DynamoDBSaver) -> Iterator[PageServer]:
    """Give a server at a port of its own."""
    with PageServer(Responses(Session(saver)), 0) as served:
        running = threading.Thread(target=served.run)
        running.start()
        yield served
        served.end()
        running.join()


def test_an_invitation_leads_to_the_page_once(served: PageServer) -> None:
    found = httpx.get(served.invitation, trust_env=False, follow_redirects=True)
    assert (found.status_code, str(found.url)) == (200, served.address)
    assert is_refused(httpx.get(served.invitation, trust_env=False))
    assert is_refused(httpx.get(f"{served.invitation}api/start", trust_env=False))


_AWAY = (
    *("../server.py", "..%2fserver.py", "%2e%2e/server.py", "..\\server.py", "../static/../server.py"),
    *("/etc/passwd", "%2fetc%2fpasswd", "app.js%00.css", "INDEX.HTML", "api/../../server.py"),
)


def test_there_is_no_way_out_of_the_folder(served: PageServer) -> None:
    port, token = served.address.split(":")[2].split("/")[:2]
    for way in _AWAY:
        request = f"GET /{token}/{way} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        response = _raw(int(port), request)
        assert response.split()[1] in (b"403", b"404"), (way, response)
        assert b"application/problem+json" in response, way


def test_a_request_without_a_path_is_refused(served: PageServer) -> None:
    port = int(served.address.split(":")[2].split("/")[0])
    for target in ("OPTIONS *", "CONNECT attacker.example:80"):
        answer = _raw(port, f"{target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        assert answer.split()[1] == b"403", answer
        assert b"application/problem+json" in answer


def _raw(port: int, request: str) -> bytes:
    """The answer to a request as it stands, which no client has put right."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request.encode())
        answer = b""
        while more := connection.recv(65_536):
            answer += more
        return answer


# Finding threads


def test_threads_are_found_by_a_run(page: TestClient, saver: DynamoDBSaver, thread: str) -> None:
    store(saver, thread_config(thread), "1", {"text": "x"}, run_id=thread)
    assert page.get(f"{PAGE}api/threads", params={"run": thread}).json() == {"threads": [thread]}


def test_only_so_many_threads_are_kept(saver: DynamoDBSaver) -> None:
    session = Session(saver)

    def view_of(number: int) -> ThreadView:
        with session.opened(f"thread {number}") as view:
            return view

    first, *_, last = [view_of(number) for number in range(20)]
    assert view_of(19) is last
    assert view_of(0) is not first


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(page: TestClient, method: str) -> None:
    assert page.request(method, f"{PAGE}api/thread?thread=x").status_code == 405
    assert page.request(method, PAGE).status_code == 405
