"""What every command works with: asking, saying what a scan costs, printing."""

from __future__ import annotations

import contextlib

import pytest
from typer.testing import CliRunner

from langgraph.checkpoint.dynamodb._format.moments import in_epoch_seconds, stored_at
from langgraph.checkpoint.dynamodb.cli import CommandError
from langgraph.checkpoint.dynamodb.cli.app import app
from langgraph.checkpoint.dynamodb.cli.context import CommandContext, ConnectionArguments
from langgraph.checkpoint.dynamodb.cli.output import Output, moment
from tests.cli.conftest import Terminal


@pytest.mark.parametrize(("answer", "agrees"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_a_person_is_asked(answer: str, agrees: bool) -> None:
    with Terminal(answer) as terminal:
        context = CommandContext(ConnectionArguments("table"), Output(as_json=False))
        with contextlib.nullcontext() if agrees else pytest.raises(CommandError, match="nothing was changed"):
            context.confirm("Delete?")
    assert "Delete?" in terminal.shown()


def test_progress_is_for_a_terminal() -> None:
    with Terminal() as terminal, Output(as_json=False).progress("deleting", 3) as advance:
        advance(1)
    assert "deleting" in terminal.shown()


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
