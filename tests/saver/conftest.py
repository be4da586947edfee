"""What the documents' commands run in."""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

ENDPOINT = "http://localhost:8000"
TABLE = "langgraph-checkpoints"
# Their commands have to say where the table is, and who asks.
SAID = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION")
# What they install and start is there already.
PREPARING = ("pip", "docker")

RunBlock = Callable[[str], str]


@pytest.fixture
def run_block(
    engine: Engine,
    client: DynamoDBClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[RunBlock]:
    """Give what runs a block of commands as a shell would, in an empty folder, and returns what they print.

    The engine holds one table of the name that the documents give, so a test that takes this is for one engine.
    """
    # Environments without the command line run other tests of this folder.
    from typer.testing import CliRunner  # noqa: PLC0415

    from langgraph.checkpoint.dynamodb.cli.app import app  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    for each in SAID:
        monkeypatch.delenv(each)

    def run(block: str) -> str:
        said = ""
        for line in block.replace(ENDPOINT, engine.endpoint_url).splitlines():
            program, *words = shlex.split(line, comments=True)
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
