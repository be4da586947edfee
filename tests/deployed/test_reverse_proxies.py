"""nginx and Caddy in front of the gateway, configured by the files in infra/proxy: what they let through."""

import contextlib
import os
import shutil
import ssl
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, DynamoDBSaver
from langgraph.checkpoint.dynamodb.gateway import Principal
from langgraph.checkpoint.dynamodb.gateway.authentication import BearerTokens
from langgraph.checkpoint.dynamodb.gateway.serving import RIGHTS
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.conftest import lacks
from tests.infra.rendering import INFRA
from tests.support.certificates import write_certificate
from tests.support.checkpoints import Conversation, noise, stored_values
from tests.support.gateway_service import gateway_service
from tools.server import Server

pytestmark = pytest.mark.engines("dynamodb-local")

_AGENT = "agent-1"
_GUARDED: dict[str, Any] = {
    "authenticate": BearerTokens({Principal(_AGENT, rights=RIGHTS): [sha256(_AGENT.encode()).hexdigest()]})
}
# Lines of a configuration, each with what takes its place. FOLDER and PORT are known when the proxy starts.
Changes: TypeAlias = dict[str, str]
_NGINX: Changes = {
    "listen 443 ssl": "listen 127.0.0.1:PORT ssl",
    "gateway.example.com": "localhost",
    "/etc/ssl/gateway.pem": "FOLDER/gateway.pem",
    "/etc/ssl/gateway.key": "FOLDER/gateway.pem",
}
# Of its own accord Caddy would ask an authority for a certificate.
_CADDY: Changes = {
    "gateway.example.com {": "localhost:PORT {\n\tbind 127.0.0.1\n\ttls FOLDER/gateway.pem FOLDER/gateway.pem"
}
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
# Around the configuration. Started by root, nginx would work as somebody who cannot read this folder.
_AROUND = {
    "nginx": (
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid FOLDER/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {''.join(f'{each}_temp_path FOLDER/{each};' for each in _TEMPORARY)}",
        "}",
    ),
    "caddy": ("{\n\tadmin off\n\tauto_https off\n}", ""),
}
_STARTED_BY = {
    "nginx": "nginx -p FOLDER -c FOLDER/started",
    "caddy": "HOME=FOLDER caddy run --adapter caddyfile --config FOLDER/started",
}
Through: TypeAlias = Callable[..., "contextlib.AbstractContextManager[HttpCheckpointSaver]"]


@pytest.fixture
def through(tmp_path: Path) -> Through:
    """Give a function that runs a proxy in front of a gateway; it gives a saver that reaches it by TLS."""

    @contextlib.contextmanager
    def run(name: str, gateway: str, changes: Changes | None = None) -> Iterator[HttpCheckpointSaver]:
        if shutil.which(name) is None:
            lacks(f"{name} is not installed: apt-get install {name}")
        certificate = write_certificate(tmp_path / "gateway.pem")
        file = INFRA / "proxy" / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]
        text = file.read_text(encoding="utf-8")
        given = {"127.0.0.1:8000": gateway.removeprefix("http://"), **(changes or {})}
        for old, new in (given | {"nginx": _NGINX, "caddy": _CADDY}[name]).items():
            assert old in text
            text = text.replace(old, new)
        before, after = _AROUND[name]
        written = "\n".join((before, text, after)).replace("FOLDER", f"{tmp_path}")
        (tmp_path / "written").write_text(written)
        start = f"cd FOLDER && sed s/PORT/{{port}}/ written > started && exec env {_STARTED_BY[name]}"
        server = Server(name, ("sh", "-c", start.replace("FOLDER", f"{tmp_path}")))
        trusted = {"verify": ssl.create_default_context(cafile=certificate)}
        with server.run() as address:
            url = address.replace("http://127.0.0.1", "https://localhost")
            with HttpCheckpointSaver(url, auth=_AGENT, client_options=trusted) as saver:
                yield saver

    return run


@pytest.mark.search
@pytest.mark.parametrize("proxy", _STARTED_BY)
def test_everything_goes_through(
    proxy: str, through: Through, make_saver: Callable[..., DynamoDBSaver]
) -> None:
    with gateway_service(make_saver(), **_GUARDED) as gateway, through(proxy, gateway) as remote:
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
    through: Through, make_saver: Callable[..., DynamoDBSaver]
) -> None:
    with (
        gateway_service(make_saver(), **_GUARDED) as gateway,
        through("nginx", gateway, {"client_max_body_size 64m;": ""}) as remote,
        pytest.raises(CheckpointerConfigurationError, match=r"413.*client_max_body_size 64m"),
    ):
        Conversation(remote, "thread-1").put(large=noise(3_000_000))


# As it is installed, nginx says nothing of whom it passes on.
_SILENT: Changes = {
    line: ""
    for line in (INFRA / "proxy" / "nginx.conf").read_text(encoding="utf-8").splitlines()
    if line.strip().startswith(("proxy_set_header", "proxy_http_version"))
}


@pytest.mark.parametrize(
    ("proxy", "changes"), [("nginx", {}), ("nginx", _SILENT), ("caddy", {})], ids=["nginx", "silent", "caddy"]
)
def test_an_insecure_gateway_serves_nobody_through_a_proxy(
    proxy: str, changes: Changes, through: Through, make_saver: Callable[..., DynamoDBSaver]
) -> None:
    with (
        gateway_service(make_saver()) as gateway,
        through(proxy, gateway, changes) as remote,
        pytest.raises(CheckpointerConfigurationError, match="came through a proxy"),
    ):
        remote.get_tuple({"configurable": {"thread_id": "thread-1"}})
