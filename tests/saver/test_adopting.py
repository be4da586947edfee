"""docs/adopting.md does what it says: its programs and commands run, in their order, and its agents remember."""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from langgraph.checkpoint.dynamodb.cli.app import app
from tests.support.documents import blocks, read

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

DOCUMENT = read("docs/adopting.md")
FORGETFUL, REMEMBERING = blocks(DOCUMENT, "python")
IN_DYNAMODB, IN_SQLITE = blocks(DOCUMENT, "yaml")
SETTING_UP, SAYING, MOVING, MOVING_BACK = blocks(DOCUMENT, "sh")
ENDPOINT = "http://localhost:8000"
TABLE = "langgraph-checkpoints"
# What they install and start is there already.
PREPARING = ("pip", "docker")

# The engine holds one table of the name that the document gives.
pytestmark = pytest.mark.engines("dynamodb-local")

Run = Callable[[str], str]


@pytest.fixture
def run(
    engine: Engine,
    client: DynamoDBClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Run]:
    """Give what runs a block of commands as a shell would, in an empty folder, and returns what they print."""
    monkeypatch.chdir(tmp_path)

    def run(block: str) -> str:
        said = ""
        for line in block.replace(ENDPOINT, engine.endpoint_url).splitlines():
            program, *words = shlex.split(line)
            if program == "export":
                for name, _, value in (word.partition("=") for word in words):
                    monkeypatch.setenv(name, value)
            elif program == "python":
                monkeypatch.setattr(sys, "argv", words)
                runpy.run_path(words[0])
                said += capsys.readouterr().out
            elif program == "langgraph-dynamodb":
                result = CliRunner().invoke(app, words, catch_exceptions=False)
                assert result.exit_code == 0, result.output
                said += result.stdout
            else:
                assert program in PREPARING
        return said

    yield run
    if TABLE in client.list_tables()["TableNames"]:
        client.delete_table(TableName=TABLE)


def test_an_agent_gets_a_memory(run: Run, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(FORGETFUL)
    assert run(SAYING.partition("langgraph-dynamodb")[0]) == "You have said: Hello\nYou have said: again\n"
    run(SETTING_UP)
    agent.write_text(REMEMBERING)
    (tmp_path / "agent.yaml").write_text(IN_DYNAMODB)
    first, second, *shown = run(SAYING).splitlines()
    assert (first, second) == ("You have said: Hello", "You have said: Hello, again")
    assert any("Hello, again" in line for line in shown)


def test_an_agent_moves_with_its_threads(run: Run, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(REMEMBERING)
    file = tmp_path / "agent.yaml"
    file.write_text(IN_SQLITE)
    run("python agent.py ada Hello")
    run(SETTING_UP)
    assert "would move: 3 checkpoints of 1 thread;" in run(MOVING)
    file.write_text(IN_DYNAMODB)
    assert run("python agent.py ada again") == "You have said: Hello, again\n"
    run(MOVING_BACK)
    file.write_text(IN_SQLITE.replace("threads.db", "back.db"))
    assert run("python agent.py ada still") == "You have said: Hello, again, still\n"


def test_only_the_lines_of_the_configuration_and_the_compilation_differ() -> None:
    kept = [line for line in FORGETFUL.splitlines() if line.strip() and "graph" not in line]
    assert [line for line in kept if line not in REMEMBERING] == []
