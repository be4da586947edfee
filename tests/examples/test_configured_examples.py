"""The examples that a YAML file configures run, and one of them on each of the four backends by that file alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples import conversation, many_users, progress
from langgraph.checkpoint.dynamodb import CheckpointerConfig
from tests.support.documents import ROOT
from tests.support.programs import ran
from tools.server import end_process

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tools.engine import Engine

pytestmark = pytest.mark.engines("dynamodb-local")

FILE = ROOT / "examples" / "agent.yaml"
TABLE = "examples"


@pytest.fixture(autouse=True)
def _on_the_engine(engine: Engine, client: DynamoDBClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let boto3 find the engine as it would find AWS; the examples make their table themselves."""
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TABLE_NAME", TABLE)
    yield
    if TABLE in client.list_tables()["TableNames"]:
        client.delete_table(TableName=TABLE)


def _switched_to(kind: str) -> str:
    """What the file says when another of its sections is in use."""
    blocks = FILE.read_text(encoding="utf-8").split("\n\n")
    for number, block in enumerate(blocks[1:], 1):
        plain = re.sub(r"^# ", "", block, flags=re.MULTILINE)
        is_used = f"type: {kind}" in plain
        blocks[number] = plain if is_used else re.sub(r"^", "# ", plain, flags=re.MULTILINE)
    return "\n\n".join(blocks)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "dynamodb"])
def test_one_file_switches_the_agent_between_the_backends(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DB_FILE", str(tmp_path / "threads.db"))
    if kind == "postgres":
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    file = tmp_path / "agent.yaml"
    file.write_text(_switched_to(kind))
    assert CheckpointerConfig.load(file).type == kind
    for text in ("Hello", "again"):
        conversation.main(str(file), "ada", text)
    remembered = "again" if kind == "memory" else "Hello, again"
    assert capsys.readouterr().out == f"You have said: Hello\nYou have said: {remembered}\n"


def test_a_conversation_goes_on_in_another_process() -> None:
    conversation.main(str(FILE), "grace", "Hello")
    again = ran(sys.executable, "-m", "examples.conversation", FILE, "grace", "again", cwd=ROOT)
    assert again.stdout == "You have said: Hello, again\n"


@pytest.mark.search
def test_a_workflow_goes_on_where_it_was_killed() -> None:
    command = [sys.executable, "-m", "examples.workflow", str(FILE), "order-1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        begun = [process.stdout.readline(), process.stdout.readline()]
        process.kill()
    assert begun == ["reserve: after nothing\n", "charge: after reserve\n"]
    assert ran(*command, cwd=ROOT).stdout.splitlines() == [
        "charge: after reserve",
        "pack: after reserve, charge",
        "ship: after reserve, charge, pack",
        "order-1 is done: reserve, charge, pack, ship",
    ]


async def test_many_users_do_not_see_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    await many_users.main(str(FILE), "25")
    assert capsys.readouterr().out == "25 of 25 users were answered by what they had said themselves.\n"


@pytest.mark.search
def test_progress_is_seen_from_another_process(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "examples.progress", str(FILE), "run", "report-1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            progress.main(str(FILE), "watch", "report-1")
            said, _ = process.communicate(timeout=60)
        finally:
            end_process(process)
    assert said == "10 pages are written.\n"
    seen = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()]
    assert (seen[0], seen[-1]) == (0, 10)
    assert seen == sorted(seen)
    assert len(seen) > 3
