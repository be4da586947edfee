"""The options of the type `http`: those of the constructor, as they stand in a file."""

from pathlib import Path
from typing import Any

import certifi
import pytest

from langgraph.checkpoint.dynamodb import (
    CacheConfig,
    CheckpointerConfig,
    CheckpointerConfigurationError,
    StoreConfig,
    create_checkpointer,
)
from langgraph.checkpoint.dynamodb._runtime.steps import Call
from langgraph.checkpoint.dynamodb.http import HttpCheckpointSaver
from tests.support.http_stand_in import Answer, http_stand_in

URL = "https://gateway.example"
PRIVATE = "that-nobody-may-see"


def _error(**options: Any) -> str:
    with pytest.raises(CheckpointerConfigurationError) as caught, create_checkpointer(_section(**options)):
        pass
    assert PRIVATE not in str(caught.value)
    return str(caught.value)


def _section(**options: Any) -> dict[str, Any]:
    return {"type": "http", "config": {"url": URL, **options}}


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("token-1\n")
    with http_stand_in() as gateway:
        with create_checkpointer(_section(url=gateway.address, auth={"token_file": str(file)})) as saver:
            assert isinstance(saver, HttpCheckpointSaver)
            saver.transport.send(Call("put", {}))
            file.write_text("token-2\n")
            gateway.script = [Answer(401, b"", {})]
            saver.transport.send(Call("put", {}))
        shown = [each.headers["Authorization"] for each in gateway.asked]
    assert shown == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


@pytest.mark.parametrize("kind", [CheckpointerConfig, StoreConfig, CacheConfig])
def test_a_key_is_the_services(kind: Any) -> None:
    with pytest.raises(
        CheckpointerConfigurationError, match=r"config\.encryption_key: .* give the key to the service"
    ):
        kind.load(_section(encryption_key={"environment": "AGENTS_KEY"}))


def test_secrets_are_not_shown() -> None:
    section = _section(auth={"token": PRIVATE}, headers={"X": PRIVATE}, proxy=f"http://me:{PRIVATE}@proxy:1")
    config = CheckpointerConfig.load(section)
    assert PRIVATE not in f"{config!r} {config.model_dump()} {config.model_dump_json()}"
    with create_checkpointer(section) as saver:
        assert isinstance(saver, HttpCheckpointSaver)


def test_a_file_of_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.pem").write_bytes(Path(certifi.where()).read_bytes())
    with create_checkpointer(_section(ca_file="~/own.pem")):
        pass
    assert "ca_file: names a file that cannot be used" in _error(ca_file=str(tmp_path / "none.pem"))
    (tmp_path / "empty.pem").write_text("")
    assert "ca_file: names a file that cannot be used" in _error(ca_file=str(tmp_path / "empty.pem"))

    with create_checkpointer(_section(ca_file=certifi.where())):
        pass


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": "gateway.example"}, "config.url: "),
        ({"auth": {}}, "config.auth: give exactly one of token and token_file"),
        ({"auth": {"token": PRIVATE, "token_file": "x"}}, "give exactly one of"),
        ({"headers": {"X": f"{PRIVATE}\n"}}, "config: client_options has a header 'X'"),
        ({"proxy": f"user:{PRIVATE}@proxy.example:8080"}, "config.proxy: is not the address of a proxy"),
    ],
)
def test_what_cannot_be_used(options: dict[str, Any], says: str) -> None:
    assert says in _error(**options)


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with create_checkpointer(_section(auth={"token_file": str(tmp_path / "none")})) as saver:
        assert isinstance(saver, HttpCheckpointSaver)
        with pytest.raises(ValueError, match=r"auth\.token_file names the file .*none, which cannot be read"):
            saver.transport.send(Call("put", {}))
