"""docs/choosing.md has the table that `make bench-backends` writes, and what it assumes."""

import re

import pytest

from benchmarks import backends, months
from benchmarks.months import Usage
from benchmarks.stored import Stored
from benchmarks.stores import BACKENDS, Servers
from tests.support.documents import ROOT
from tools.engine import DYNAMODB_LOCAL, Engine
from tools.postgres import Postgres

CHOOSING = (ROOT / "docs/choosing.md").read_text(encoding="utf-8")
# The memory of a process needs none of them.
NO_SERVERS = Servers(
    Engine(DYNAMODB_LOCAL, DYNAMODB_LOCAL, "http://127.0.0.1:9"), Postgres("postgresql://127.0.0.1:9")
)
TIMES = "\N{MULTIPLICATION SIGN}"


def _rows(table: str) -> list[list[str]]:
    """The cells of a table, without the rule."""
    header, *lines = re.findall(r"^\| ?(.*) \|$", table, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in (header, *lines)]


def test_the_table_has_the_rows_and_columns_of_the_benchmark() -> None:
    (place,) = re.findall(r"(?s)<!-- measured: backends -->(.*?)<!-- end -->", CHOOSING)
    header, *lines = _rows(place)
    assert header[1:] == [backend.name for backend in BACKENDS]
    measured = dict(backends.tried(BACKENDS[0], NO_SERVERS))
    titles = [title for title, *_ in lines]
    assert titles == ["package", *measured, *backends.latency_titles(), "limits"]
    assert [backend.limits for backend in BACKENDS] == lines[-1][1:]
    assert [measured[title] for title in titles[1:3]] == ["5 of 5", "0 of 3"]


def test_a_cell_stands_beside_ours() -> None:
    memory, *_, aws, ours = (each.name for each in BACKENDS)
    rows: backends.Rows = {"ms": {memory: 1.0, aws: None, ours: 2_000.0}, "limits": {memory: "none"}}
    made = _rows(backends.table(rows))
    assert made[1:] == [
        ["ms", f"1.0 (0.00{TIMES})", "-", "-", "-", "-", "2,000"],
        ["limits", "none", "-", "-", "-", "-", "-"],
    ]


def test_an_example_is_priced_by_its_requests_and_what_is_kept() -> None:
    example = months.Example("one", 1_000_000, 3, 60)
    usage = {3: Usage(write_units=100, read_units=40, stored=Stored(10, 2**30 // 1_000 - 1_000))}
    assert months.dynamodb_dollars(example, usage) == pytest.approx(62.5 + 5 + 500, rel=0.001)
    assert months.postgres_dollars(example, usage) == pytest.approx(730 * 0.318 + 2_000 * 0.23, rel=0.01)
    tiny = {3: Usage(0, 0, Stored(0, 1))}
    assert months.month_cell("Postgres", example, tiny) == f"${730 * 0.318 + 20 * 0.23:,.0f}"
    assert months.month_cell("SQLite", example, usage).endswith("GB of its machine's disk")
