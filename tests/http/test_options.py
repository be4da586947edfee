"""The client's options: what cannot be used is refused before anything is opened, without a secret in the words."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from langgraph.checkpoint.dynamodb import CheckpointerConfigurationError, CheckpointerInputError
from langgraph.checkpoint.dynamodb.http import HttpCache, HttpCheckpointSaver
from langgraph.checkpoint.dynamodb.http.transport import GatewayTransport
from tests.support.checkpoints import checkpoint_of, thread_config
from tests.support.http_stand_in import StandIn
from tests.support.options import PRIVATE, URL


@pytest.mark.parametrize(
    ("url", "auth", "says"),
    [
        ("http://gateway.example", PRIVATE, "url is http://gateway.example, where everybody"),
        ("http://10.0.0.1", lambda: PRIVATE, "use https, or pass allow_http=True"),
    ],
)
def test_credentials_are_not_sent_in_clear_to_another_machine(url: str, auth: Any, says: str) -> None:
    """`tests/config/test_constructors.py` tries each option alone."""
    with pytest.raises(CheckpointerInputError, match=re.escape(says)) as caught:
        GatewayTransport(url, auth=auth)
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        # A token may go to this machine.
        *({"url": f"http://{host}", "auth": PRIVATE} for host in ("agent.localhost", "[::1]:8080")),
        {"url": "http://gateway.internal", "auth": None},
        *(
            {"client_options": {"proxy": proxy}}
            for proxy in (
                f"http://me:{PRIVATE}@proxy.example:8080/",
                "https://[::1]:3128",
                "socks5://proxy.example",
                httpx.URL("http://proxy.example"),
                httpx.Proxy("http://proxy.example"),
                None,
            )
        ),
    ],
)
def test_what_can_be_used_is_taken(options: dict[str, Any]) -> None:
    GatewayTransport(**{"url": URL, **options}).close()


def test_what_httpx_is_told_besides(gateway: StandIn, ask: Callable[..., Any]) -> None:
    ask(gateway.address, client_options={"headers": {"X-Team": "support"}, "trust_env": False})
    assert gateway.asked[0].headers["X-Team"] == "support"


def test_a_proxy_of_the_environment_is_used(
    gateway: StandIn, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", gateway.address)
    ask("http://gateway.example")
    assert [each.path for each in gateway.asked] == ["http://gateway.example/checkpoints/put-writes"]


class OwnCipher(EncryptedSerializer):
    """Encrypts in a way of its own."""


@pytest.mark.parametrize("kind", [HttpCheckpointSaver, HttpCache])
@pytest.mark.parametrize("serializer", [EncryptedSerializer, OwnCipher])
def test_a_serializer_that_encrypts_is_refused(kind: Any, serializer: type[EncryptedSerializer]) -> None:
    serde = serializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    says = f"serde is a {serializer.__name__}.* as encryption_key of its checkpointer"
    with pytest.raises(CheckpointerConfigurationError, match=says):
        kind(URL, serde=serde)


def test_a_cipher_that_comes_later_is_refused_before_anything_is_sent(gateway: StandIn) -> None:
    with HttpCheckpointSaver(gateway.address) as saver:
        saver.serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
        with pytest.raises(CheckpointerConfigurationError, match="a client of the gateway cannot encrypt"):
            saver.put(thread_config(), checkpoint_of("1", {"x": "secret"}), {}, {"x": 1})
    assert gateway.asked == []
