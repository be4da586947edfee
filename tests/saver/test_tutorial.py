"""docs/tutorial.md does what it says: its commands run in their order, and print what it quotes."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from langgraph.checkpoint.dynamodb.cli.shipped import parse_template
from tests.saver.conftest import RunBlock
from tests.support.documents import ROOT, blocks, read
from tests.support.local_stack import PARAMETERS
from tools.engine import Engine

DOCUMENT = read("docs/tutorial.md")
(AGENT,) = blocks(DOCUMENT, "python")
SETTING_UP, REMEMBERING, WAITING, LOOKING, ON_AWS = blocks(DOCUMENT, "sh")
REMEMBERED, DECIDED = blocks(DOCUMENT, "text")
AWS_CLI = ROOT / ".venv-infra" / "bin" / "aws"


@pytest.mark.engines("dynamodb-local")
def test_the_agent_remembers_waits_and_is_looked_into(run_block: RunBlock, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    run_block(SETTING_UP)
    assert run_block(REMEMBERING) == REMEMBERED
    assert run_block(WAITING) == DECIDED
    shown = run_block(LOOKING)
    assert all(each in shown for each in ("ada", "bob", "You decided: yes, the early one"))


@pytest.mark.engines("moto")
def test_the_agent_runs_on_the_table_of_the_template(
    engine: Engine, run_block: RunBlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not AWS_CLI.exists():
        pytest.skip("the AWS CLI is not installed: make infra-check installs it")
    unset, template, deploy, describe, run = ON_AWS.splitlines()
    assert unset == "unset AWS_ENDPOINT_URL_DYNAMODB AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY"
    # The emulator stands for AWS, and takes any credentials.
    for name, value in {**engine.environment(), "AWS_ENDPOINT_URL": engine.endpoint_url}.items():
        monkeypatch.setenv(name, value)
    printing, _, file = template.partition(" > ")
    template_text = run_block(printing)
    (tmp_path / file).write_text(template_text)
    (tmp_path / "agent.py").write_text(AGENT)
    # moto's CloudFormation does not take the template with its defaults.
    given = ["--parameter-overrides", *(f"{name}={value}" for name, value in PARAMETERS.items())]
    _aws(deploy, tmp_path, *given)
    # moto shows no outputs of a stack that a change set made.
    _aws(describe, tmp_path)
    assert "AgentPolicyArn" in parse_template(template_text)["Outputs"]
    assert run_block(run) == "You have said: Hello\n"


def _aws(line: str, folder: Path, *more: str) -> str:
    """Run a line of the page that calls the AWS CLI."""
    program, *words = shlex.split(line)
    assert program == "aws"
    command = [str(AWS_CLI), *words, *more]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # The page's own commands.
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
