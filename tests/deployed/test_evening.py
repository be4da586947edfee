"""`make evening`: its steps in their order, and a report of them, with a fake `make` and a real gateway."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra import evening as program
from tests.gateway.conftest import always
from tests.support.checkpoints import all_items
from tests.support.gateway_service import gateway_service

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from langgraph.checkpoint.dynamodb import DynamoDBSaver

pytestmark = pytest.mark.engines("dynamodb-local")
# Stands for make: says what it was asked, with the gateway's token, and fails at one target.
MAKE = """\
import os, sys
target, variables = sys.argv[2], sys.argv[3:]
if target == "deploy-gateway":
    print(os.environ["GATEWAY_TOKEN"], open(variables[-1].partition("=")[2]).read())
print("made", target, *[each for each in variables if not each.startswith("PRINCIPALS")])
if target == "{left_out}":
    print("left out   0.1 s  restored: this endpoint restores no tables")
sys.exit(2 if target == "{failing}" else 0)
"""
Said = tuple[int, str, str]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """Give what runs the program; it returns the status, what was printed, and the report."""

    def run(address: str, failing: str = "", left_out: str = "") -> Said:
        make, file = tmp_path / "make.py", tmp_path / "reports" / "evening.md"
        make.write_text(MAKE.format(failing=failing, left_out=left_out), encoding="utf-8")
        words = [
            "--make",
            f"{sys.executable} {make}",
            "--gateway",
            address,
            "--report",
            str(file),
            "checkpoints-evening",
        ]
        monkeypatch.setattr("sys.argv", ["a program", *words])
        monkeypatch.setattr(program, "AGENTS", 10)
        return program.main(), capsys.readouterr().out, file.read_text(encoding="utf-8")

    return run


def rows(report: str) -> dict[str, str]:
    """The outcome of each step, as a report has it."""
    cells = [
        line.split(" | ") for line in report.splitlines() if line.startswith("| ") and "step" not in line
    ]
    return {step.removeprefix("| "): outcome for step, outcome, *_ in cells}


def test_an_evening_takes_all_steps_and_reports_them(
    run: Callable[..., Said],
    make_saver: Callable[..., DynamoDBSaver],
    client: DynamoDBClient,
    table_name: str,
) -> None:
    with gateway_service(make_saver()) as address:
        status, printed, report = run(address)
    assert status == 0, printed
    steps = ["preflight", "deploy", "smoke", "deploy-gateway", "agents", "restore"]
    assert rows(report) == dict.fromkeys(steps, "ok")
    assert "10 of 10 agents came to their end" in report
    assert "made deploy STACK=checkpoints-evening" in report
    assert "made smoke STACK=checkpoints-evening SMOKE=--only restored" in report
    # The principal is the one whose token the agents have, and nobody reads it in the report.
    assert '<token> {"bearer": {"evening": {"sha256": ["' in report
    assert all_items(client, table_name) == []


def test_what_fails_is_in_the_report_with_what_depends_on_it_left_out(
    run: Callable[..., Said], make_saver: Callable[..., DynamoDBSaver]
) -> None:
    with gateway_service(make_saver(), authenticate=always(None)) as address:
        status, _, report = run(address, "preflight")
        assert status == 1
        assert rows(report)["agents"] == rows(report)["preflight"] == "problem"
        assert "0 of 10 agents came to their end" in report
        assert "10 CheckpointerConfigurationError" in report
        # What smoke did not try has not been shown.
        assert rows(run(address, left_out="smoke")[2])["restore"] == "left out"
        _, _, report = run(address, "deploy")
    assert {step for step, outcome in rows(report).items() if outcome == "left out"} == {
        *("smoke", "deploy-gateway", "agents", "restore")
    }
