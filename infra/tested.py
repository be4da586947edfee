"""The page of what has been tested: a section for each place, made from the results of the last run there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol


class Outcome(Protocol):
    """One line of a log."""

    @property
    def check(self) -> str:
        """The name of what was tried."""

    @property
    def verdict(self) -> str:
        """Whether it is as it has to be."""

    @property
    def says(self) -> str:
        """What it came to, or why it was left out."""


def record(page: Path, section: str, results: Sequence[Outcome]) -> None:
    """Replace a section of the page, or add it at the end."""
    day = datetime.now(timezone.utc).date().isoformat()
    rows = [f"| {each.check} | {each.verdict} | {_cell(each.says)} |" for each in results]
    lines = [f"## {section}", "", f"Run on {day}.", "", "| what | verdict | |", "|---|---|---|", *rows, ""]
    new, text = "\n".join(lines), page.read_text(encoding="utf-8")
    old = re.search(rf"^## {re.escape(section)}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if old is None:
        text = f"{text.rstrip()}\n\n{new}"
    else:
        text = f"{text[: old.start()]}{new}{chr(10) if old.end() < len(text) else ''}{text[old.end() :]}"
    page.write_text(text, encoding="utf-8")


def _cell(text: str) -> str:
    """Return a text as a cell of a table, without what differs from run to run."""
    text = re.sub(r"smoke-[0-9a-f]{8}", "smoke-…", " ".join(text.split()))
    return text.replace("|", "\\|")
