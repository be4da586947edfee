"""docs/using.md is right: the programs run, in their order."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.documents import blocks, read

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

ENDPOINT = "http://localhost:8000"
TABLE = "langgraph-checkpoints"


@pytest.fixture
def programs(
    engine: Engine, client: DynamoDBClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[str]]:
    """Give README's agent and the programs that continue it; those without an endpoint find it in the environment."""
    profile = tmp_path / "config"
    key, secret = engine.access_key_id, engine.secret_access_key
    profile.write_text(f"[profile agents]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.endpoint_url)
    monkeypatch.setattr(sys, "argv", ["agent.py"])
    (agent,) = blocks(read("README.md"), "python")
    yield [agent.replace(ENDPOINT, engine.endpoint_url), *blocks(read("docs/using.md"), "python")]
    client.delete_table(TableName=TABLE)


# The engine holds one table of the name that the documents give, for all regions.
@pytest.mark.engines("dynamodb-local")
def test_every_program_runs(programs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    opened = contextlib.ExitStack()
    for text in programs:
        exec(compile(text, "using.md", "exec"), names)  # noqa: S102  # Our own document's programs.
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
    opened.close()
