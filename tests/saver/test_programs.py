"""The programs and commands of README, docs/tutorial.md, docs/using.md and the pages beside it run in their order."""

from __future__ import annotations

import contextlib
import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.documents import ROOT, blocks, read
from tests.support.local_stack import PARAMETERS
from tools.engine import Engine

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

README, TUTORIAL, USING = (read(each) for each in ("README.md", "docs/tutorial.md", "docs/using.md"))
(README_AGENT,), (TUTORIAL_AGENT,) = (blocks(each, "python") for each in (README, TUTORIAL))
SETTING_UP, REMEMBERING, WAITING, LOOKING, ON_AWS = blocks(TUTORIAL, "sh")
REMEMBERED, DECIDED = blocks(TUTORIAL, "text")
ENDPOINT = "http://localhost:8000"
TABLE = "langgraph-checkpoints"
# The tutorial's commands have to say where the table is, and who asks.
SAID = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION")
# Programs that take arguments.
PROGRAMS = ("conversation", "many_users", "progress", "workflow", "remote_agent")
# What they install and start is there already.
PREPARING = ("pip", "docker")

RunBlock = Callable[[str], str]


@pytest.fixture
def folder(client: DynamoDBClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give an empty folder to be in. The table that the programs make is deleted afterwards.

    The engine holds one table of the name that the documents give, so a test that takes this is for one engine.
    """
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for table in {TABLE, "other-table"} & {*client.list_tables()["TableNames"]}:
        client.delete_table(TableName=table)


@pytest.fixture
def run_block(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunBlock:
    """Give what runs a block of commands as a shell would, and returns what they print."""
    # Environments without the command line run other tests of this folder.
    from typer.testing import CliRunner  # noqa: PLC0415

    from langgraph.checkpoint.dynamodb.cli.app import app  # noqa: PLC0415

    del folder

    def run(block: str) -> str:
        said = ""
        for line in block.replace(ENDPOINT, engine.endpoint_url).splitlines():
            words = shlex.split(line, comments=True)
            variables = [each.partition("=") for each in words if re.match("[A-Z_]+=", each)]
            for name, _, value in variables:
                monkeypatch.setenv(name, value)
            program, *words = words if words[0] == "export" else words[len(variables) :]
            if program == "python":
                monkeypatch.setattr(sys, "argv", words)
                runpy.run_path(words[0])
                said += capsys.readouterr().out
            elif program == "langgraph-dynamodb":
                result = CliRunner().invoke(app, words, catch_exceptions=False)
                assert result.exit_code == 0, result.output
                said += result.stdout
            else:
                assert program in ("export", *PREPARING)
        return said

    return run


@pytest.mark.engines("dynamodb-local")
def test_readmes_agent_remembers_what_was_said(engine: Engine, run_block: RunBlock, folder: Path) -> None:
    (folder / "agent.py").write_text(README_AGENT.replace(ENDPOINT, engine.endpoint_url))
    (commands,) = [each for each in blocks(README, "sh") if "agent.py" in each]
    assert run_block(commands) == "You have said: Hello\nYou have said: Hello, again\n"


@pytest.mark.engines("dynamodb-local")
def test_the_tutorials_agent_remembers_waits_and_is_looked_into(
    run_block: RunBlock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in SAID:
        monkeypatch.delenv(each)
    (folder / "agent.py").write_text(TUTORIAL_AGENT)
    run_block(SETTING_UP)
    assert run_block(REMEMBERING) == REMEMBERED
    assert run_block(WAITING) == DECIDED
    shown = run_block(LOOKING)
    assert all(each in shown for each in ("ada", "bob", "You decided: yes, the early one"))


@pytest.mark.parametrize("program", ["tutorial", *PROGRAMS])
def test_a_program_that_lacks_an_argument_says_its_usage(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "examples" / f"{program}.py"
    if program == "tutorial":
        path = tmp_path / "agent.py"
        path.write_text(TUTORIAL_AGENT)
    monkeypatch.setattr(sys, "argv", [path.name, "ada"])
    with pytest.raises(SystemExit, match=r"^usage: python "):
        runpy.run_path(str(path), run_name="__main__")


@pytest.mark.engines("moto")
def test_the_tutorials_agent_runs_on_the_table_of_the_template(
    engine: Engine, run_block: RunBlock, folder: Path, aws_cli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unset, template, deploy, describe, run = ON_AWS.splitlines()
    assert unset == "unset AWS_ENDPOINT_URL_DYNAMODB AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY"
    # The emulator stands for AWS, and takes any credentials.
    for name, value in {**engine.environment(), "AWS_ENDPOINT_URL": engine.endpoint_url}.items():
        monkeypatch.setenv(name, value)
    printing, _, file = template.partition(" > ")
    (folder / file).write_text(run_block(printing))
    (folder / "agent.py").write_text(TUTORIAL_AGENT)
    # moto's CloudFormation does not take the template with its defaults, and shows no outputs of its stack.
    given = ["--parameter-overrides", *(f"{name}={value}" for name, value in PARAMETERS.items())]
    for line, more in ((deploy, given), (describe, [])):
        program, *words = shlex.split(line)
        assert program == "aws"
        subprocess.run([aws_cli, *words, *more], stdout=subprocess.PIPE, check=True)  # noqa: S603  # The page's own.
    assert run_block(run) == "You have said: Hello\n"
    # README says the same.
    assert README.count(f"{deploy}\n{describe}\n") == 1


@pytest.mark.engines("dynamodb-local")
@pytest.mark.usefixtures("folder")
def test_the_programs_of_docs_using_continue_readmes(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "config"
    key, secret = engine.access_key_id, engine.secret_access_key
    profile.write_text(f"[profile agents]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))
    # For those that give no endpoint.
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint_url)
    monkeypatch.setattr(sys, "argv", ["agent.py"])
    names: dict[str, Any] = {}
    with contextlib.ExitStack() as opened:
        for text in (README_AGENT.replace(ENDPOINT, engine.endpoint_url), *blocks(USING, "python")):
            exec(compile(text, "using.md", "exec"), names)  # noqa: S102  # Our own documents' programs.
            opened.callback(names["saver"].close)
            if "handler" in names:
                handler, loop = names.pop("handler"), names["loop"]
                answers = [handler({"thread_id": "of-lambda", "text": word}, None) for word in ("one", "two")]
                assert answers == ["You have said: one", "You have said: one, two"]
                loop.run_until_complete(names["saver"].aclose())
                loop.close()
    said, *listed = capsys.readouterr().out.splitlines()
    assert said == "You have said: Hello"
    assert [each.split()[0] for each in listed] == ["4", "3", "2"]


@pytest.mark.engines("dynamodb-local")
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", ["configuration", "encrypt", "memory", "retention", "threads"])
def test_the_programs_of_a_page_run(
    page: str, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint_url)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "0123456789abcdef")
    monkeypatch.setattr(sys, "argv", ["agent.py"])
    configured = {"type": "dynamodb", "config": {"table_name": TABLE}}
    (tmp_path / "agent.yaml").write_text(json.dumps({"checkpointer": configured}))
    names: dict[str, Any] = {"embed": lambda texts: [[1.0] * 1536 for _ in texts]}
    programs = [each for each in blocks(read(f"docs/{page}.md"), "python") if "gateway.example" not in each]
    assert programs
    for text in (README_AGENT.replace(ENDPOINT, engine.endpoint_url), *programs):
        # There is no model here.
        program = text.replace('"openai:text-embedding-3-small"', "embed")
        exec(compile(program, page, "exec"), names)  # noqa: S102  # Our own documents' programs.
