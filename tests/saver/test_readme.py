"""README is short and plain, its first screen is true, and its program runs as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.import_template import read_template
from langgraph.checkpoint.dynamodb._format.schema import TEMPLATE_COMMAND
from langgraph.checkpoint.dynamodb.version import IS_PUBLISHED
from tests.support.documents import ROOT, blocks, links, read, without_links

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

README = read("README.md")
FIRST_SCREEN = README.split("\n## ")[0]
(AGENT,) = blocks(README, "python")
COMMANDS = [shlex.split(line, comments=True) for text in blocks(README, "sh") for line in text.splitlines()]
ENDPOINT = "http://localhost:8000"
TABLE = "langgraph-checkpoints"


def test_the_first_screen_says_what_was_not_tried() -> None:
    assert len(FIRST_SCREEN.splitlines()) <= 30
    said = " ".join(FIRST_SCREEN.split())
    assert "tested on DynamoDB Local and moto; not yet run on AWS" in said
    assert ("The package is not on PyPI yet" in said) != IS_PUBLISHED


def test_every_figure_of_the_first_screen_is_on_the_page_that_it_leads_to() -> None:
    bullets = re.findall(r"^- (.*?)(?=\n- |\n\n)", FIRST_SCREEN, re.MULTILINE | re.DOTALL)
    assert len(bullets) == 3
    for bullet in bullets:
        pages = [read(path.partition("#")[0]) for path in links(bullet)]
        figures = re.findall(r"\d[\d,.]*\d|\d", without_links(bullet))
        assert figures
        assert pages
        assert [each for each in figures if not any(each in page for page in pages)] == []


def test_the_first_screen_shows_what_it_costs_not_to_use_it() -> None:
    (cost,) = [each for each in links(FIRST_SCREEN) if each.endswith("cost.md")]
    page = read(cost)
    figures = [
        each
        for row in re.findall(r"^\| \w.* \|$", FIRST_SCREEN, re.MULTILINE)
        for each in re.findall(r"\d[\d,.]*\d", row)
    ]
    assert len(figures) == 9
    assert [each for each in figures if f" {each} " not in page] == []


@pytest.fixture
def folder(engine: Engine, client: DynamoDBClient, tmp_path: Path) -> Iterator[Path]:
    """Give a folder with the agent, for an engine without its table."""
    assert ENDPOINT in AGENT
    (tmp_path / "agent.py").write_text(AGENT.replace(ENDPOINT, engine.endpoint_url))
    yield tmp_path
    client.delete_table(TableName=TABLE)


@pytest.mark.engines("dynamodb-local")
def test_the_agent_remembers_what_was_said(engine: Engine, folder: Path) -> None:
    runs = [each for each in COMMANDS if "agent.py" in each]
    said = []
    for command in runs:
        at = command.index("python")
        variables = dict(each.split("=") for each in command[:at])
        assert variables == {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
        ran = subprocess.run(  # noqa: S603  # README's own program.
            [sys.executable, *command[at + 1 :]],
            cwd=folder,
            env=engine.environment(),
            stdout=subprocess.PIPE,
            check=True,
        )
        said.append(ran.stdout.decode())
    assert said == ["You have said: Hello\n", "You have said: Hello, again\n"]
    assert said[-1].strip() in README


def test_its_commands_for_a_clone_exist() -> None:
    targets = [each[1:] for each in COMMANDS if each[0] == "make"]
    assert targets == [["demo"], ["test"]]
    for target in targets:
        subprocess.run(["make", "--dry-run", *target], cwd=ROOT, stdout=subprocess.PIPE, check=True)  # noqa: S603, S607


def test_its_commands_for_aws_fit_the_template() -> None:
    install, template, deploy, describe = COMMANDS[-4:]
    assert install == ["pip", "install", ".[aiobotocore]"]
    *printing, redirection, file = template
    assert (printing, redirection) == (shlex.split(TEMPLATE_COMMAND), ">")
    assert deploy[:3] == ["aws", "cloudformation", "deploy"]
    assert describe[:3] == ["aws", "cloudformation", "describe-stacks"]
    deployed, described = (dict(zip(each[3::2], each[4::2], strict=True)) for each in (deploy, describe))
    assert deployed["--template-file"] == file
    assert deployed["--capabilities"] == "CAPABILITY_IAM"
    assert described["--stack-name"] == deployed["--stack-name"]

    content = read_template(ROOT / "infra" / "table.yaml")
    assert content["Parameters"]["TableName"]["Default"] == TABLE
    assert described["--query"] == "Stacks[0].Outputs"
    assert re.findall(r"`(\w+Arn)`", README) == ["AgentPolicyArn"]
    assert "AgentPolicyArn" in content["Outputs"]


def test_every_page_is_reached_from_it() -> None:
    """A page that README does not name is named by one that it does name."""
    seen: set[Path] = set()
    unread = {ROOT / "README.md"}
    while unread:
        page = unread.pop()
        seen.add(page)
        linked = {each.partition("#")[0] for each in links(page.read_text(encoding="utf-8"))}
        pages = {
            (page.parent / each).resolve() for each in linked if each.endswith(".md") and "://" not in each
        }
        unread |= pages - seen
    assert {*(ROOT / "docs").glob("*.md")} - seen == set()
