"""The options of the type `dynamodb`: those of the constructor, as they stand in a file; and keys to encrypt with."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from moto import mock_aws

from langgraph.checkpoint.dynamodb import (
    CheckpointerConfig,
    CheckpointerConfigurationError,
    CheckpointerInputError,
    DynamoDBSaver,
    create_checkpointer,
)
from langgraph.checkpoint.dynamodb.config.dynamodb import DynamoDBOptions
from langgraph.checkpoint.dynamodb.observe import Event, Events

KEY = "0123456789abcdef"
SEALING = EncryptedSerializer.from_pycryptodome_aes(key=KEY.encode())


def _make(**options: Any) -> DynamoDBSaver:
    with create_checkpointer({"type": "dynamodb", "config": {"table_name": "threads", **options}}) as saver:
        assert isinstance(saver, DynamoDBSaver)
        return saver


def _error(**options: Any) -> str:
    with pytest.raises(CheckpointerConfigurationError) as caught:
        _make(**options)
    return str(caught.value)


# Objects


def make_session() -> boto3.Session:
    """Make what a configuration refers to by its name."""
    return boto3.Session(region_name="eu-west-1")


class OwnSerializer(JsonPlusSerializer):
    """A serializer of somebody's own."""


own_serializer = OwnSerializer()
_TEXT = "just a text"


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a name under which this module can be imported."""
    monkeypatch.setitem(sys.modules, "own_objects", sys.modules[__name__])
    return "own_objects"


def test_objects_are_named_made_or_given(module: str) -> None:
    for serde in (f"{module}:own_serializer", f"{module}:OwnSerializer", own_serializer, OwnSerializer):
        assert isinstance(_make(serde=serde).serde, OwnSerializer)
    options = DynamoDBOptions(
        table_name="x", session=f"{module}:make_session", client_config="botocore.config:Config"
    )
    assert options.session is make_session
    assert options.client_config is Config
    _make(session=f"{module}:make_session", client_config=Config(read_timeout=3))


def receive(event: Event) -> None:
    """Receive an event, under a name that a configuration has."""
    _received.append(event.operation)


class Receiver:
    """A class of objects that receive events."""

    def __call__(self, event: Event) -> None:
        """Receive an event."""
        receive(event)


_received: list[str] = []


@pytest.mark.parametrize(
    "on_event", ["receive", "Receiver", pytest.param(receive, id="function"), Receiver(), Events(receive)]
)
def test_events_go_to_a_function_or_to_the_object_of_a_class(module: str, on_event: Any) -> None:
    named = f"{module}:{on_event}" if isinstance(on_event, str) else on_event
    _received.clear()
    with pytest.raises(CheckpointerInputError):
        _make(on_event=named).delete_thread("")
    assert _received == ["delete_thread"]


def test_options_of_the_serializer() -> None:
    serde: Any = _make(serde={}).serde
    assert not serde.pickle_fallback
    serde = _make(serde={"pickle_fallback": True, "allowed_msgpack_modules": "a:B, c.d:E"}).serde
    assert serde.pickle_fallback
    assert serde._allowed_msgpack_modules == {("a", "B"), ("c.d", "E")}  # noqa: SLF001


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"serde": "own_objects"}, "serde: give it as module:name (The serializer, by"),
        ({"serde": "no_such_module:x"}, "serde: it cannot be imported: No module named 'no_such_module'"),
        ({"serde": "own_objects:no_such"}, "serde: it cannot be imported: module "),
        ({"serde": "own objects:x"}, "serde: it cannot be imported: invalid format"),
        ({"serde": "own_objects:_TEXT"}, "serde: names a value of type str; name an object"),
        ({"serde": {"allowed_msgpack_modules": "B"}}, "serde.allowed_msgpack_modules.0: string should match"),
        ({"on_event": "own_objects:_TEXT"}, "on_event: names a value of type str; name an object"),
        ({"on_event": "own_objects:own_serializer"}, "on_event: is a "),
        ({"session": "own_objects:own_serializer"}, "session: is a "),
        ({"session": make_session, "client": boto3}, "client: is a builtins.module; give boto3.client"),
        ({"client_config": own_serializer}, "client_config: is a "),
        ({"client_config": {"read_timeout": 3}}, "client_config: give an object, or name one as module:name"),
        ({"ttl_seconds": True}, "ttl_seconds: give a number (Seconds after which"),
        ({"ttl_seconds": 40_000_000_000}, "ttl_seconds: input should be less than or equal to 31622400000"),
        ({"endpoint_url": "http://ada:hunter2@127.0.0.1:1"}, "endpoint_url: has a user or a password in it"),
        ({"owner_key": {"environment": "ABSENT"}}, "owner_key: names the environment variable ABSENT"),
        ({"encryption_key": {}}, "encryption_key: give exactly one of environment, file and secret_arn"),
        ({"encryption_key": {"environment": "K"}, "serde": SEALING}, "encryption_key: has no effect on a"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], says: str) -> None:
    assert _error(**options).startswith(f"config.{says}")
    assert "hunter2" not in _error(**options)


# Keys


@pytest.mark.parametrize(
    ("written", "encoding"),
    [
        (KEY.encode(), "text"),
        (KEY.encode() + b"\n", "text"),
        (KEY.encode() + b"\r\n", "text"),
        (base64.b64encode(KEY.encode()) + b"\n", "base64"),
        (KEY.encode().hex().encode(), "hex"),
    ],
)
def test_a_key_of_a_file(tmp_path: Path, written: bytes, encoding: str) -> None:
    (tmp_path / "key").write_bytes(written)
    assert _has_the_key(_key(file=str(tmp_path / "key"), encoding=encoding))


def _key(**where: str) -> EncryptedSerializer:
    serde = _make(encryption_key=where).serde
    assert isinstance(serde, EncryptedSerializer)
    return serde


def _has_the_key(serde: EncryptedSerializer) -> bool:
    return bool(serde.loads_typed(SEALING.dumps_typed("a value")) == "a value")


def test_a_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    assert _has_the_key(_key(environment="THE_KEY"))
    # The serializer is the one that is configured.
    serde = _make(encryption_key={"environment": "THE_KEY"}, serde=own_serializer).serde
    assert isinstance(serde, EncryptedSerializer)
    assert serde.serde is own_serializer


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give a client of a Secrets Manager that lives in this process."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("secretsmanager", region_name="eu-west-1")


@pytest.mark.parametrize(
    "secret", [{"SecretString": KEY}, {"SecretBinary": KEY.encode()}], ids=["text", "binary"]
)
def test_a_key_of_secrets_manager(secrets: Any, secret: dict[str, Any]) -> None:
    arn = secrets.create_secret(Name="agents-key", **secret)["ARN"]
    assert _has_the_key(_key(secret_arn=arn))
    # The session that is configured is the one whose credentials read it.
    serde = _make(encryption_key={"secret_arn": arn}, session=make_session).serde
    assert isinstance(serde, EncryptedSerializer)


def test_a_secret_that_is_not_there(secrets: Any) -> None:
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:none"
    error = _error(encryption_key={"secret_arn": arn})
    assert error.startswith(f"config.encryption_key: names the secret {arn}, which cannot be read: ")
    assert "ResourceNotFoundException" in error


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"environment": "NO_SUCH_KEY"}, "names the environment variable NO_SUCH_KEY, which is not set"),
        ({"file": "/none"}, "names the file /none, which cannot be read: No such file or directory"),
        ({"environment": "SHORT"}, "names a key of 7 bytes (text); a key for AES has 16, 24 or 32"),
        ({"environment": "SHORT", "encoding": "hex"}, "names something that is not hex"),
        ({"environment": "SHORT", "encoding": "base64"}, "names something that is not base64"),
    ],
    ids=str,
)
def test_keys_that_are_none(where: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "hunter2")
    assert _error(encryption_key=where) == f"config.encryption_key: {says}"


def test_a_cipher_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setitem(sys.modules, "Crypto.Cipher", None)
    assert _error(encryption_key={"environment": "THE_KEY"}) == (
        "config.encryption_key: needs pycryptodome: pip install pycryptodome"
    )


def test_nothing_is_read_before_all_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(Path, "read_bytes", opened.append)
    assert _error(encryption_key={"file": "key"}, ttl_seconds=0).startswith("config.ttl_seconds: ")
    CheckpointerConfig(type="dynamodb", config={"table_name": "x", "encryption_key": {"file": "key"}})
    assert not opened
