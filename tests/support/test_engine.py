"""The engines that everything else is tested on: what is said where one is missing, and that none is left behind."""

import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tools.dynamodb_local import HOME_VARIABLE
from tools.engine import DYNAMODB_LOCAL, ENDPOINT_VARIABLE, EXTERNAL, MOTO, find, find_best
from tools.server import Server, ServerUnavailableError

PROJECT_FOLDER = Path(__file__).parents[2]
HTTP_SERVER = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}")
BROKEN_SERVER = (sys.executable, "-c", "raise SystemExit('the disk is full')")
OWNER_OF_A_SERVER = f"""
import signal
from tools.server import Server
with Server("an http server", {HTTP_SERVER}).run() as address:
    print(address, flush=True)
    signal.pause()
"""
END_SECONDS_MAX = 30.0


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give an empty folder in which alone programs are looked for, and take away what names an engine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("JAVA_HOME", HOME_VARIABLE, ENDPOINT_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _accepts_connections(address: str) -> bool:
    url = urlsplit(address)
    try:
        socket.create_connection((url.hostname, url.port)).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("java", "variables", "said"),
    [
        (None, (), "needs Java 17 or newer, and none was found"),
        ("1.8.0_392", (), r"is Java 1\.8\.0_392: install a newer one"),
        ("17.0.1", (HOME_VARIABLE,), f"{HOME_VARIABLE} is .*no DynamoDBLocal.jar in it"),
    ],
)
def test_what_dynamodb_local_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, programs: Path, java: str | None, variables: Sequence[str], said: str
) -> None:
    if java is not None:
        program = programs / "java"
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{java}\"' >&2\n")
        program.chmod(0o755)
    for name in variables:
        monkeypatch.setenv(name, str(programs))
    with pytest.raises(ServerUnavailableError, match=said):
        find(DYNAMODB_LOCAL)


@pytest.mark.usefixtures("programs")
def test_moto_is_taken_where_there_is_nothing_else() -> None:
    assert find_best().kind == MOTO


def test_an_endpoint_in_the_environment_is_preferred_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Server("an http server", HTTP_SERVER).run() as address:
        monkeypatch.setenv(ENDPOINT_VARIABLE, address)
        best = find_best()
        with best.run() as engine:
            assert (engine.kind, engine.endpoint_url) == (EXTERNAL, address)
    with pytest.raises(ServerUnavailableError, match=f"Nothing answers at {address}"), best.run():
        pass


def test_a_server_that_does_not_start_is_reported_with_what_it_printed() -> None:
    server = Server("a server", BROKEN_SERVER)
    with (
        pytest.raises(
            ServerUnavailableError, match=r"a server did not start on port \d+. It printed:\nthe disk is full"
        ),
        server.run(),
    ):
        pass


def test_a_server_ends_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen(  # noqa: S603  # This interpreter, with a program of this file.
        [sys.executable, "-c", OWNER_OF_A_SERVER], stdout=subprocess.PIPE, text=True, cwd=PROJECT_FOLDER
    )
    with owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip()
        owner.kill()
    # The server is told by the kernel, after its owner is gone, so the end is waited for.
    deadline = time.monotonic() + END_SECONDS_MAX
    while _accepts_connections(address) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _accepts_connections(address)


# Programs that are interrupted, with what they print when it is time to
