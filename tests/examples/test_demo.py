"""What `make demo` says beside what it shows: what it would cost, and why it does without DynamoDB Local."""

import json
from pathlib import Path
from typing import NoReturn

import pytest

from examples import demo
from examples.demo_report import usage_table
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from tools.server import ServerUnavailableError


@pytest.fixture
def usage(tmp_path: Path) -> Path:
    """Give what two processes noted of their requests."""
    noted = [
        {"action": action, "call": call, "units": units}
        for action, call, units in (
            ("start", "PutItem", 3.0),
            ("start", "Query", 1.0),
            ("resume", "UpdateItem", 2.0),
        )
    ]
    path = tmp_path / "usage"
    path.write_text("\n".join(map(json.dumps, noted)))
    return path


def test_the_costs_are_in_dollars_too(usage: Path) -> None:
    text = usage_table(usage, {"start": 2, "resume": 1}, reports_capacity=True)
    header, _, start, resume, together = text.splitlines()
    dollars = [
        1_000 * (writes * WRITE_UNIT_DOLLARS + reads * READ_UNIT_DOLLARS)
        for writes, reads in ((3, 1), (2, 0), (5, 1))
    ]
    assert header.endswith("$ for 1,000 of them")
    assert start.split() == ["start", "2", "2", "3.0", "1.0", "1.5", f"{dollars[0]:.3f}"]
    assert resume.split()[-1] == f"{dollars[1]:.3f}"
    assert together.split() == ["together", "3", "3", "5.0", "1.0", "1.7", f"{dollars[2]:.3f}"]


def test_without_capacity_there_is_no_price(usage: Path) -> None:
    *_, together = usage_table(usage, {"start": 2, "resume": 1}, reports_capacity=False).splitlines()
    assert together.split() == ["together", "3", "3", "-", "-", "-", "-"]


def test_the_fallback_says_why_and_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(kind: str) -> NoReturn:
        raise ServerUnavailableError(f"{kind} needs Java.")

    monkeypatch.setattr(demo, "find", find)
    demo.say_why_not_dynamodb_local()
    said = capsys.readouterr().out
    assert said.startswith("dynamodb-local needs Java.\nThe demo goes on with moto's server")
