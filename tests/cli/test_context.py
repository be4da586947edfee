"""What every command works with: asking, printing, and stored values as people and scripts see them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from langgraph.checkpoint.dynamodb._format.inert import LookingSerializer, Stored, as_json
from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds, stored_at
from langgraph.checkpoint.dynamodb.cli import CommandError
from langgraph.checkpoint.dynamodb.cli.app import app
from langgraph.checkpoint.dynamodb.cli.context import CommandContext, ConnectionArguments
from langgraph.checkpoint.dynamodb.cli.output import Output, brief, moment, readable
from tests.cli.conftest import Screen


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
    # The first id of a thread of LangGraph.js.
    assert moment(stored_at("1ef00000-0000-6000-ffff-000000000000")) == "2024-04-21 16:55:47"
    assert [stored_at(each) for each in (None, "1", "00000000-0000-4000-8000-000000000000")] == [None] * 3
    assert moment(in_epoch_seconds(0)) == "1970-01-01 00:00:00"
    assert in_epoch_seconds(10**20) is None
    assert in_epoch_seconds(None) is None


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


def test_what_a_terminal_would_obey_is_spelled() -> None:
    assert readable("a\x1b]0;title\x07\r\n\tb\ud800") == "a\\u001b]0;title\\u0007\\u000d\n\tb\\ud800"
