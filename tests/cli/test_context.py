"""What every command works with: a table, asking, printing, and stored values as people and scripts see them."""

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner

from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer, Stored, as_json
from langgraph.checkpoint.dynamodb._format.moments import stored_at
from langgraph.checkpoint.dynamodb.cli import CommandError
from langgraph.checkpoint.dynamodb.cli.app import app
from langgraph.checkpoint.dynamodb.cli.context import CommandContext, ConnectionArguments
from langgraph.checkpoint.dynamodb.cli.output import Output, brief, moment
from langgraph.checkpoint.dynamodb.errors import CheckpointerConfigurationError
from tests.cli.conftest import Screen

PREFIX = "LANGGRAPH_CHECKPOINTER_"


def options_of(connection: ConnectionArguments) -> Any:
    return connection.configuration().config


def test_the_environment_is_enough_and_options_go_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}CONFIG__TABLE_NAME", "of-the-environment")
    monkeypatch.setenv(f"{PREFIX}CONFIG__REGION_NAME", "eu-west-1")
    assert options_of(ConnectionArguments()).table_name == "of-the-environment"
    found = options_of(ConnectionArguments("of-the-option"))
    assert (found.table_name, found.region_name) == ("of-the-option", "eu-west-1")


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


@pytest.mark.parametrize(("answer", "agrees"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_a_person_is_asked(terminal: Callable[..., Screen], answer: str, agrees: bool) -> None:
    screen = terminal(answer)
    context = CommandContext(ConnectionArguments("table"), Output(as_json=False))
    with contextlib.nullcontext() if agrees else pytest.raises(CommandError, match="nothing was changed"):
        context.confirm("Delete?")
    assert "Delete?" in screen.getvalue()


def test_progress_is_for_a_terminal(terminal: Callable[..., Screen]) -> None:
    screen = terminal()
    with Output(as_json=False).progress("deleting", 3) as advance:
        advance(1)
    assert "deleting" in screen.getvalue()


def test_an_error_names_the_table_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_CHECKPOINTER_CONFIG__TABLE_NAME", "agents")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    result = CliRunner().invoke(app, ["history", "ada"])
    assert "no AWS region for table agents; pass --region" in result.output


def test_times() -> None:
    assert moment(stored_at("1ef00000-0000-6000-8000-000000000000")) == "2024-04-21 16:55:47"


# Stored values


@pytest.mark.parametrize("calls", [None, "x", [1], [{}]])
def test_a_message_of_any_shape_is_shown(calls: Any) -> None:
    shown = brief(
        Stored("langchain_core.messages.ai.AIMessage", {"tool_calls": calls, "content": [{"a": 1}]})
    )
    assert shown.startswith('message: [{"a": 1}]')


@pytest.mark.parametrize(
    ("name", "kind"), [("HumanMessage", "human"), ("AIMessageChunk", "ai"), ("ToolMessage", "tool")]
)
@pytest.mark.parametrize("path", [("langchain_core", "messages"), ("langchain", "schema", "messages")])
def test_messages_in_json_are_messages(path: Sequence[str], name: str, kind: str) -> None:
    fields = {"content": "hello", "id": "1"}
    stored = {"lc": 1, "type": "constructor", "id": [*path, name], "kwargs": fields}
    message = LookingSerializer().loads_typed(("json", json.dumps(stored).encode()))
    assert message.is_message
    assert as_json(message) == {"type": kind, **fields}
    assert brief(message) == f"{kind}: hello"
