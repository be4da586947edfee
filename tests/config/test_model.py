"""What a configuration may say: types, options, variables; and that no secret is ever shown."""

import logging
from typing import Any

import pytest
from pydantic import ValidationError

from langgraph.checkpoint.dynamodb import CheckpointerConfig, CheckpointerConfigurationError

SECRET = "hunter2"  # noqa: S105  # A secret that is to be looked for.


def _error(**section: Any) -> str:
    with pytest.raises(CheckpointerConfigurationError) as caught:
        CheckpointerConfig(**section)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_options_are_attributes_and_do_not_change() -> None:
    config = CheckpointerConfig(type="dynamodb", config={"table_name": "threads", "ttl_seconds": 60})
    assert (config.config.table_name, config.config.ttl_seconds) == ("threads", 60)
    with pytest.raises(ValidationError, match="frozen"):
        config.config.ttl_seconds = 3


# Mistakes


TYPES = "memory, sqlite, postgres, dynamodb, http"


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"type": SECRET}, f"type: is not a type of checkpointer; use one of {TYPES}"),
        ({"type": "DynamoDB"}, "type: is not a type of checkpointer; did you mean dynamodb? use one of "),
        ({"type": "dynamodb", "table_name": "t"}, "table_name: is an option of dynamodb; write it under"),
        ({"type": 3}, "type: input should be a valid string (What keeps "),
        ({"typ": "memory"}, "typ: is unknown here; did you mean type? use one of type, config"),
        ({"type": "memory", "config": {"size": 1}}, "config.size: is unknown here; this type has no options"),
        ({"type": "memory", "config": [1]}, "config: must be a mapping"),
        ({"type": "postgres", "config": SECRET}, "config: must be a mapping"),
        ({"type": "sqlite"}, "config.db_file: is missing: the path of"),
        ({"type": "postgres"}, "config.connection_string: is missing: a connection string"),
        ({"type": "dynamodb"}, "config.table_name: is missing: the name or ARN"),
        *(
            ({"type": kind, "config": config}, f"config.{says}")
            for kind, config, says in (
                ("http", {"url": "gateway"}, "url: must begin with http:// or https://"),
                ("sqlite", {"db_file": "x", "file": 1}, "file: is unknown here; did you mean"),
                ("sqlite", {"db_file": {1: 2}}, "db_file: input should be a valid string"),
                ("sqlite", {"db_file": ""}, "db_file: "),
                ("sqlite", {"db_file": "x", 3: 4}, "3: keys should be strings"),
                ("postgres", {"connection_string": {"url": SECRET}}, "connection_string: "),
                ("postgres", {"connection_string": "x", "url": SECRET}, "url: is unknown here"),
            )
        ),
        *(
            ({"type": "dynamodb", "config": {"table_name": "x", **config}}, f"config.{says}")
            for config, says in (
                ({"boto_config": {}}, "boto_config: is unknown here; it is client"),
                ({"encryption_key": SECRET}, "encryption_key: "),
                ({"encryption_key": {"key": SECRET}}, "encryption_key.key: is unknown here"),
                ({"encryption_key": {"file": "x", "encoding": SECRET}}, "encryption_key.encoding: "),
                ({"endpoint_url": f"ftp://ada:{SECRET}@host"}, "endpoint_url: "),
                ({"client_config": SECRET}, "client_config: "),
                ({"ttl_seconds": SECRET}, "ttl_seconds: "),
                ({"serde": SECRET}, "serde: "),
            )
        ),
    ],
)
def test_a_mistake_is_named_with_what_may_stand_there(section: dict[str, Any], says: str) -> None:
    error = _error(**section)
    assert error.startswith(says)
    assert SECRET not in error


def test_options_without_a_type_say_that_it_is_memory() -> None:
    assert _error(config={"table_name": "threads"}).splitlines()[1:] == [
        "  config.table_name: is unknown here; this type has no options",
        f"  the configuration: has no type, so it is memory; use one of {TYPES}",
    ]


# Variables


def test_variables_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGE", "test")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    for text, value in {
        "threads-${STAGE}": "threads-test",
        "${STAGE}${STAGE:-other}": "testtest",
        "${UNSET:-a-default}": "a-default",
        "${EMPTY:-a-default}": "a-default",
        "x${EMPTY}${UNSET:-}": "x",
        "$${STAGE}": "${STAGE}",
        "$STAGE $$ {STAGE}": "$STAGE $$ {STAGE}",
    }.items():
        assert CheckpointerConfig(type="sqlite", config={"db_file": text}).config.db_file == value


def test_a_variable_may_stand_for_any_value_and_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTL", "60")
    monkeypatch.setenv("SETUP", "yes")
    monkeypatch.setenv("TABLE", "${TTL}")
    monkeypatch.setenv("KIND", "dynamodb")
    section = {
        "type": "${KIND}",
        "config": {
            "table_name": "${TABLE}",
            "ttl_seconds": "${TTL}",
            "setup": "${SETUP}",
            "serde": {"allowed_msgpack_modules": ["${KIND}:Name"]},
        },
    }
    options = CheckpointerConfig.model_validate(section).config
    assert (options.table_name, options.ttl_seconds, options.setup) == ("${TTL}", 60, True)
    assert options.serde.allowed_msgpack_modules == ["dynamodb:Name"]


def test_variables_that_are_not_set_are_all_named() -> None:
    assert _error(type="sqlite", config={"db_file": "${NO_SUCH}", "other": ["${NEITHER_THIS}"]}).splitlines()[
        1:
    ] == [
        "  config.db_file: needs the environment variable NO_SUCH, which is not set; set it, or write a default as "
        "${NO_SUCH:-default}",
        "  config.other.0: needs the environment variable NEITHER_THIS, which is not set; set it, or write a default "
        "as ${NEITHER_THIS:-default}",
    ]


@pytest.mark.parametrize("text", [f"${{{SECRET}", f"${{1{SECRET}}}", f"${{NAME-{SECRET}}}"])
def test_a_variable_that_is_none_is_not_shown(text: str) -> None:
    error = _error(type="sqlite", config={"db_file": text})
    assert error.startswith("config.db_file: has a `${` that does not begin a variable")
    assert SECRET not in error


# Secrets


def test_no_secret_is_shown_by_what_is_configured(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("DATABASE_URL", f"postgresql://ada:{SECRET}@localhost/threads")
    config = CheckpointerConfig(type="postgres", config={"connection_string": "${DATABASE_URL}"})
    assert SECRET in config.config.connection_string.get_secret_value()
    shown = (repr(config), str(config), str(config.model_dump()), config.model_dump_json(), caplog.text)
    assert not [each for each in shown if SECRET in each]
