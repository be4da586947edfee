"""docs/adopting.md does what it says: its programs and commands run, in their order, and its agents remember."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.saver.conftest import RunBlock
from tests.support.documents import blocks, read

DOCUMENT = read("docs/adopting.md")
FORGETFUL, REMEMBERING = blocks(DOCUMENT, "python")
IN_DYNAMODB, IN_SQLITE = blocks(DOCUMENT, "yaml")
SETTING_UP, SAYING, MOVING, MOVING_BACK = blocks(DOCUMENT, "sh")

# The engine holds one table of the name that the document gives.
pytestmark = pytest.mark.engines("dynamodb-local")


def test_an_agent_gets_a_memory(run_block: RunBlock, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(FORGETFUL)
    assert (
        run_block(SAYING.partition("langgraph-dynamodb")[0]) == "You have said: Hello\nYou have said: again\n"
    )
    run_block(SETTING_UP)
    agent.write_text(REMEMBERING)
    (tmp_path / "agent.yaml").write_text(IN_DYNAMODB)
    first, second, *shown = run_block(SAYING).splitlines()
    assert (first, second) == ("You have said: Hello", "You have said: Hello, again")
    assert any("Hello, again" in line for line in shown)


def test_an_agent_moves_with_its_threads(run_block: RunBlock, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(REMEMBERING)
    file = tmp_path / "agent.yaml"
    file.write_text(IN_SQLITE)
    run_block("python agent.py ada Hello")
    run_block(SETTING_UP)
    assert "would move: 3 checkpoints of 1 thread;" in run_block(MOVING)
    file.write_text(IN_DYNAMODB)
    assert run_block("python agent.py ada again") == "You have said: Hello, again\n"
    run_block(MOVING_BACK)
    file.write_text(IN_SQLITE.replace("threads.db", "back.db"))
    assert run_block("python agent.py ada still") == "You have said: Hello, again, still\n"


def test_only_the_lines_of_the_configuration_and_the_compilation_differ() -> None:
    kept = [line for line in FORGETFUL.splitlines() if line.strip() and "graph" not in line]
    assert [line for line in kept if line not in REMEMBERING] == []
