"""nginx and Caddy in front of the gateway, configured by the files in infra/proxy: what they let through."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.authentication import BearerTokens
from langgraph.checkpoint.dynamodb.gateway.principals import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import REQUIRE_LOCAL_VARIABLE
from tests.infra.rendering import INFRA
from tests.support.certificates import write_certificate
from tests.support.checkpoints import Conversation, noise, stored_values
from tests.support.gateway_service import gateway_service

pytestmark = pytest.mark.engines("dynamodb-local")

_AGENT = "agent-1"
_GUARDED: dict[str, Any] = {
    "authenticate": BearerTokens({Principal(_AGENT, rights=RIGHTS): [sha256(_AGENT.encode()).hexdigest()]}),
}
_START_SECONDS = 60.0

Change = tuple[str, str]
"""A line of a configuration, and what takes its place."""


@contextlib.contextmanager
def _nginx(folder: Path, port: int, gateway: str, *changes: Change) -> Iterator[None]:
    pem = folder / "gateway.pem"
    server = _changed(
        INFRA / "proxy" / "nginx.conf",
        ("127.0.0.1:8000", gateway.removeprefix("http://")),
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("gateway.example.com", "localhost"),
        ("/etc/ssl/gateway.pem", f"{pem}"),
        ("/etc/ssl/gateway.key", f"{pem}"),
        *changes,
    )
    (folder / "gateway.conf").write_text(server)
    temporary = "".join(
        f"{each}_temp_path {folder}/{each};" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # Started by root, nginx would work as somebody who cannot read this folder.
    (folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid {folder}/pid; error_log stderr; events {{}}"
        f" http {{ access_log off; {temporary} include {folder}/gateway.conf; }}"
    )
    with _running(["nginx", "-p", f"{folder}", "-c", f"{folder}/nginx.conf"], folder, port):
        yield


@contextlib.contextmanager
def _caddy(folder: Path, port: int, gateway: str, *changes: Change) -> Iterator[None]:
    pem = folder / "gateway.pem"
    site = _changed(
        INFRA / "proxy" / "Caddyfile",
        ("127.0.0.1:8000", gateway.removeprefix("http://")),
        # Of its own accord it would ask an authority for a certificate.
        ("gateway.example.com {", f"localhost:{port} {{\n\tbind 127.0.0.1\n\ttls {pem} {pem}"),
        *changes,
    )
    options = "{\n\tadmin off\n\tauto_https off\n}\n"
    (folder / "Caddyfile").write_text(options + site)
    arguments = ["caddy", "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile"]
    with _running(arguments, folder, port):
        yield


PROXIES = {"nginx": _nginx, "caddy": _caddy}


def _changed(file: Path, *changes: Change) -> str:
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@contextlib.contextmanager
def _running(arguments: list[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(  # noqa: S603  # One of the two proxies.
            arguments, stdout=log, stderr=log, env={**os.environ, "HOME": f"{folder}"}
        )
        try:
            ends = time.monotonic() + _START_SECONDS
            while not _listens(port):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < ends
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(timeout=_START_SECONDS)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@pytest.fixture(params=PROXIES)
def proxy(request: pytest.FixtureRequest) -> str:
    """Give the name of a proxy that is installed."""
    name = str(request.param)
    _skip_without(name)
    return name


@pytest.fixture
def nginx() -> str:
    """Give nginx's name, if it is installed."""
    _skip_without("nginx")
    return "nginx"


def _skip_without(name: str) -> None:
    if shutil.which(name) is None:
        says = f"{name} is not installed: apt-get install {name}"
        pytest.fail(says) if os.environ.get(REQUIRE_LOCAL_VARIABLE) == "1" else pytest.skip(says)


@pytest.fixture
def port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found: int = free.getsockname()[1]
        return found


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Give a file with a key and its certificate."""
    return write_certificate(tmp_path / "gateway.pem")


@pytest.fixture
def remote(certificate: Path, port: int) -> Iterator[HttpCheckpointSaver]:
    """Give a saver that reaches the gateway through the proxy, by TLS."""
    trusted = {"verify": ssl.create_default_context(cafile=certificate)}
    url = f"https://localhost:{port}"
    with HttpCheckpointSaver(url, auth=_AGENT, client_options=trusted) as saver:
        yield saver


@pytest.mark.search
def test_everything_goes_through(
    proxy: str,
    port: int,
    remote: HttpCheckpointSaver,
    make_saver: Callable[..., DynamoDBSaver],
    tmp_path: Path,
) -> None:
    with gateway_service(make_saver(), **_GUARDED) as gateway, PROXIES[proxy](tmp_path, port, gateway):
        talk = Conversation(remote, "thread-1")
        # Of this the client sends parts, each as large as a body may be.
        talk.put(text=0, large=noise(10_000_000))
        for number in (1, 2):
            talk.put(text=number)
            remote.put_writes(talk.config, [("large", noise(1_000_000, number))], "task-1")
        direct = make_saver()
        assert stored_values(direct, talk.config)["large"] == noise(10_000_000)
        assert stored_values(remote, talk.config) == stored_values(direct, talk.config)
        listed = list(remote.list({"configurable": {"thread_id": "thread-1"}}))
        assert [each.checkpoint["channel_values"]["text"] for each in listed] == [2, 1, 0]
        remote.copy_thread("thread-1", "thread-2")
        remote.delete_thread("thread-1")
        assert len(list(direct.list({"configurable": {"thread_id": "thread-2"}}))) == 3


def test_nginx_that_takes_smaller_bodies_is_named_with_what_to_change(
    nginx: str,
    port: int,
    remote: HttpCheckpointSaver,
    make_saver: Callable[..., DynamoDBSaver],
    tmp_path: Path,
) -> None:
    smaller = ("client_max_body_size 64m;", "")
    with (
        gateway_service(make_saver(), **_GUARDED) as gateway,
        PROXIES[nginx](tmp_path, port, gateway, smaller),
        pytest.raises(CheckpointerConfigurationError, match=r"413.*client_max_body_size 64m"),
    ):
        Conversation(remote, "thread-1").put(large=noise(3_000_000))


def test_an_insecure_gateway_serves_nobody_through_a_proxy(
    proxy: str,
    port: int,
    remote: HttpCheckpointSaver,
    make_saver: Callable[..., DynamoDBSaver],
    tmp_path: Path,
) -> None:
    with (
        gateway_service(make_saver()) as gateway,
        PROXIES[proxy](tmp_path, port, gateway),
        pytest.raises(CheckpointerConfigurationError, match="came through a proxy"),
    ):
        remote.get_tuple({"configurable": {"thread_id": "thread-1"}})


def test_nginx_as_it_is_installed_does_not_open_an_insecure_gateway(
    nginx: str,
    port: int,
    remote: HttpCheckpointSaver,
    make_saver: Callable[..., DynamoDBSaver],
    tmp_path: Path,
) -> None:
    lines = [
        line
        for line in (INFRA / "proxy" / "nginx.conf").read_text().splitlines()
        if line.strip().startswith(("proxy_set_header", "proxy_http_version"))
    ]
    without = [(line, "") for line in lines]
    with (
        gateway_service(make_saver()) as gateway,
        PROXIES[nginx](tmp_path, port, gateway, *without),
        pytest.raises(CheckpointerConfigurationError, match="came through a proxy"),
    ):
        remote.get_tuple({"configurable": {"thread_id": "thread-1"}})
