"""What docs/operations.md computes is what comes out."""

from __future__ import annotations

import re

from langgraph.checkpoint.dynamodb._format.pricing import (
    GB_BYTES,
    READ_UNIT_DOLLARS,
    STORED_GB_MONTH_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from tests.infra.rendering import INFRA

DOCUMENT = (INFRA.parent / "docs" / "operations.md").read_text(encoding="utf-8")


def _numbers(row: str) -> list[int]:
    """The numbers of a row's second cell."""
    (cells,) = re.findall(rf"^\| {row}.*?\| (.*?) \|", DOCUMENT, re.MULTILINE)
    return [int(each.replace(",", "")) for each in re.findall(r"[\d,]+\d", cells)]


def test_what_conversations_cost_follows_from_their_units() -> None:
    [writes], [reads], [stored] = (
        _numbers("write units"),
        _numbers("read units"),
        _numbers("stored, per month"),
    )
    deleting = _numbers("deleting it")
    conversation = writes * WRITE_UNIT_DOLLARS + reads * READ_UNIT_DOLLARS
    gigabytes = 10_000 * stored / GB_BYTES
    for figure in (
        f"= ${writes * WRITE_UNIT_DOLLARS:.7f} |",
        f"= ${reads * READ_UNIT_DOLLARS:.7f} |",
        f"**${conversation:.4f}**",
        f"= ${stored / GB_BYTES * STORED_GB_MONTH_DOLLARS:.5f} |",
        f"= ${deleting[0] * WRITE_UNIT_DOLLARS + deleting[1] * READ_UNIT_DOLLARS:.5f} |",
        f"10,000 such conversations a month cost about ${10_000 * conversation:.2f} in requests",
        f"come to {gigabytes:.1f} GiB, another ${gigabytes * STORED_GB_MONTH_DOLLARS:.2f};",
    ):
        assert figure in DOCUMENT
