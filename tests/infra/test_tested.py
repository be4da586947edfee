"""The page of what has been tested: each run replaces its own section and no other."""

from __future__ import annotations

from pathlib import Path

from infra.smoke import LEFT_OUT, OK, Result
from infra.tested import record
from tests.infra.conftest import page_verdicts

PAGE = "# Tested\n\nWhat this is.\n"


def test_a_run_replaces_its_section_and_no_other(tmp_path: Path) -> None:
    page = tmp_path / "tested.md"
    page.write_text(PAGE)
    record(page, "Stacks on AWS", [Result("table", LEFT_OUT, "nobody gave it")])
    record(page, "Stacks on MiniStack", [Result("tenant", OK, "made")])
    others = page.read_text().partition("## Stacks on MiniStack")[2]
    record(page, "Stacks on AWS", [Result("table", OK, "made"), Result("tenant", OK, "made")])
    text = page.read_text()
    assert text.startswith(PAGE)
    assert text.endswith(others)
    assert "nobody gave it" not in text
    assert page_verdicts("Stacks on AWS", page) == {"table": OK, "tenant": OK}
    assert page_verdicts("Stacks on MiniStack", page) == {"tenant": OK}
    # The same run leaves the same page.
    record(page, "Stacks on AWS", [Result("table", OK, "made"), Result("tenant", OK, "made")])
    assert page.read_text() == text


def test_whatever_was_said_is_one_cell(tmp_path: Path) -> None:
    page = tmp_path / "tested.md"
    page.write_text(PAGE)
    record(page, "AWS", [Result("table", OK, "smoke-0123abcd failed:\n a | b")])
    assert "| table | ok | smoke-\u2026 failed: a \\| b |\n" in page.read_text()
