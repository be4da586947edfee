"""The documents and `--help` say the same, and `--help` says all."""

import re
from typing import Any

import pytest
from typer.main import get_command

from langgraph.checkpoint.dynamodb.cli import Exit
from langgraph.checkpoint.dynamodb.cli.app import LazyCommand, app
from tests.cli.conftest import Run
from tests.support.documents import ROOT

GROUP: Any = get_command(app)
# The commands of `memories` have two words.
LISTED: dict[str, Any] = {
    f"{name} {inner}".rstrip(): command
    for name, group in GROUP.commands.items()
    for inner, command in getattr(group, "commands", {"": group}).items()
}
COMMANDS: dict[str, Any] = {
    name: command.loaded() if isinstance(command, LazyCommand) else command
    for name, command in LISTED.items()
}
SHARED = {"--table", "--endpoint-url", "--region", "--profile", "--config", "--json", "--help"}
PRINTING = ("template", "docs")


def rows(document: str, heading: str) -> dict[str, str]:
    """The first and the second column of the table below a heading."""
    text = (ROOT / document).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = re.findall(r"^\| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    return {first.strip("`"): second for first, second in table[1:]}


def test_the_document_names_every_command() -> None:
    named = " ".join(rows("docs/command-line.md", "Commands").values())
    assert sorted(re.findall("`(.+?)`", named)) == sorted(COMMANDS)


def test_a_list_has_a_command_as_its_own_help_has_it() -> None:
    said = {name: command.help.split("\n")[0] for name, command in COMMANDS.items()}
    assert {name: command.help for name, command in LISTED.items()} == said
    assert {name for name, command in LISTED.items() if not isinstance(command, LazyCommand)} == set(PRINTING)


def test_the_exit_codes_are_documented() -> None:
    documented = rows("docs/command-line.md", "For scripts")
    assert documented == {str(code.value): code.meaning for code in Exit}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete(name: str, run_at: Run) -> None:
    ended = run_at(*name.split(), "--help")
    assert ended.code == 0
    shown = " ".join(ended.out.split())
    # A list of the commands has room for a line.
    assert len(COMMANDS[name].help.split("\n")[0]) <= 66
    for parameter in COMMANDS[name].params:
        assert parameter.help, f"{name} {parameter.name} has no help"
        assert " ".join(parameter.help.split()) in shown
    if name not in PRINTING:
        assert all(each in shown for each in SHARED)


def test_what_changes_something_can_be_tried_dry_and_agreed_to() -> None:
    threads = ("import", "copy", "prune", "delete", "migrate", "directory")
    options = {
        name: {each for one in command.params for each in one.opts} for name, command in COMMANDS.items()
    }
    for name in (*threads, "memories delete", "memories import"):
        assert {"--yes", "--dry-run"} <= options[name]
