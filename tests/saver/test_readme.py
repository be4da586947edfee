"""README does what it says: its programs run, in their order, and its options are those of the constructor."""

from __future__ import annotations

import contextlib
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from tests.support.checkpoints import Conversation, stored_values, thread_config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [
    shlex.split(line, comments=True)
    for language, text in BLOCKS
    if language == "sh"
    for line in text.splitlines()
]
(AGENT_FILE,) = [text for language, text in BLOCKS if language == "yaml"]
ENDPOINT = "http://localhost:8000"
TABLE = "langgraph-checkpoints"

# The engine holds one table of the name that README gives, for all regions.
pytestmark = pytest.mark.engines("dynamodb-local")


@pytest.fixture
def first_hour(
    engine: Engine, client: DynamoDBClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[str]]:
    """Give README's programs, on an engine without a table; where none is named they find it in the environment."""
    profile = tmp_path / "config"
    key, secret = engine.access_key_id, engine.secret_access_key
    profile.write_text(f"[profile agents]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint_url)
    monkeypatch.setattr(sys, "argv", ["agent.py"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.yaml").write_text(AGENT_FILE)
    yield [text.replace(ENDPOINT, engine.endpoint_url) for text in PYTHON]
    client.delete_table(TableName=TABLE)


def test_the_first_program_remembers_what_was_said(
    engine: Engine, first_hour: list[str], tmp_path: Path
) -> None:
    assert ENDPOINT in PYTHON[0]
    (command,) = [each for each in COMMANDS if "agent.py" in each]
    variables = {
        name: value for name, _, value in (each.partition("=") for each in command[: command.index("python")])
    }
    assert variables == {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    (tmp_path / "agent.py").write_text(first_hour[0])
    said = [
        subprocess.run(  # noqa: S603  # README's own program.
            [sys.executable, "agent.py", word],
            cwd=tmp_path,
            env=engine.environment(),
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.decode()
        for word in ("Hello", "again")
    ]
    assert said == ["You have said: Hello\n", "You have said: Hello, again\n"]


def test_every_program_runs(first_hour: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    opened = contextlib.ExitStack()
    for text in first_hour:
        exec(compile(text, "README.md", "exec"), names)  # noqa: S102  # README's own programs.
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

    old, new = InMemorySaver(), names["saver"]
    conversation = Conversation(old, "moved")
    conversation.put(text="first")
    old.put_writes(conversation.put(text="second"), [("text", "third"), ("__interrupt__", "?")], "task")
    names["move"](old, new, ["moved"])
    assert capsys.readouterr().out == "moved moved\n"
    moved, original = ([*each.list(thread_config("moved"))] for each in (new, old))
    assert [each.pending_writes for each in moved] == [each.pending_writes for each in original]
    assert [each.parent_config for each in moved] == [each.parent_config for each in original]
    assert stored_values(new, thread_config("moved")) == {"text": "second"}
    opened.close()


def test_the_options_are_those_of_the_constructor() -> None:
    rows = re.findall(r"^\| (.*?) \|", README.split("## Options")[1].split("\n## ")[0], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(inspect.signature(DynamoDBSaver).parameters)
