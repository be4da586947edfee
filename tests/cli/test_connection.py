"""Where a command finds its table: by its options, by a file, by the environment, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from langgraph.checkpoint.dynamodb.cli.context import ConnectionArguments
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError

PREFIX = "LANGGRAPH_CHECKPOINTER_"


def options_of(connection: ConnectionArguments) -> Any:
    return connection.configuration().config


def test_the_environment_is_enough_and_options_go_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}CONFIG__TABLE_NAME", "of-the-environment")
    monkeypatch.setenv(f"{PREFIX}CONFIG__REGION_NAME", "eu-west-1")
    assert options_of(ConnectionArguments()).table_name == "of-the-environment"
    found = options_of(ConnectionArguments("of-the-option"))
    assert (found.table_name, found.region_name) == ("of-the-option", "eu-west-1")


def test_an_option_that_cannot_be_used_is_told_from_what_it_goes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"{PREFIX}CONFIG__ENDPOINT_URL", "http://localhost:1")
    monkeypatch.setenv(f"{PREFIX}CONFIG__TTL_SECONDS", "0")
    with pytest.raises(CheckpointerConfigurationError) as caught:
        ConnectionArguments("a-table", "localhost:8000").configuration()
    assert "  --endpoint-url: must begin with http:" in str(caught.value)
    assert f"  environment variable {PREFIX}CONFIG__TTL_SECONDS: " in str(caught.value)


def test_a_configured_backend_without_tables_is_left_aside_for_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"{PREFIX}TYPE", "sqlite")
    monkeypatch.setenv(f"{PREFIX}CONFIG__DB_FILE", "agents.db")
    assert options_of(ConnectionArguments("a-table")).table_name == "a-table"
    with pytest.raises(CheckpointerConfigurationError, match="type sqlite is configured"):
        ConnectionArguments().configuration()


@pytest.mark.parametrize("text", ["checkpointer: dynamodb", "checkpointer: {type: dynamodb, config: [1]}"])
def test_a_file_of_another_shape_is_refused_with_its_key(tmp_path: Path, text: str) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(text)
    with pytest.raises(CheckpointerConfigurationError, match=r"agent\.yaml, checkpointer"):
        ConnectionArguments("a-table", config=file).configuration()


def test_a_profile_makes_the_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile = tmp_path / "config"
    profile.write_text("[profile agents]\nregion = eu-west-3\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))
    session = options_of(ConnectionArguments("a-table", profile_name="agents")).session
    assert isinstance(session, boto3.session.Session)
    assert session.profile_name == "agents"
