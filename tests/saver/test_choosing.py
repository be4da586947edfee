"""docs/choosing.md and docs/cost.md have the tables that `make bench-backends` writes, and what it assumes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy

import pytest

from benchmarks import backends, months, overhead, trials
from benchmarks.clock import Times
from benchmarks.contestants import OURS
from benchmarks.months import EXAMPLES, Usage
from benchmarks.stored import Stored
from benchmarks.stores import BACKENDS, Servers, Store
from tools.engine import DYNAMODB_LOCAL, Engine
from tools.postgres import Postgres

CHOOSING, COST = (each.read_text(encoding="utf-8") for each in (backends.CHOOSING, backends.COST))
# The memory of a process needs none of them.
NO_SERVERS = Servers(
    Engine(DYNAMODB_LOCAL, DYNAMODB_LOCAL, "http://127.0.0.1:9"), Postgres("postgresql://127.0.0.1:9")
)


@pytest.fixture
def memory() -> Iterator[Store]:
    """Give an empty store of the backend that is there without a server."""
    with BACKENDS[0].new(NO_SERVERS) as store:
        yield store


def rows(document: str) -> list[list[str]]:
    """The cells of the table that was measured, without the rule."""
    measured = document.split("<!-- measured -->\n")[1].split("<!-- end of what was measured -->")[0]
    header, _, *lines = re.findall(r"^\| ?(.*) \|$", measured, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in (header, *lines)]


def test_the_table_has_the_rows_and_columns_of_the_benchmark() -> None:
    header, *lines = rows(CHOOSING)
    assert header[1:] == [backend.name for backend in BACKENDS]
    assert [line[0] for line in lines] == backends.row_titles()
    assert all(len(line) == len(header) for line in lines)
    for backend, needs, limits in zip(BACKENDS, lines[-1][1:], lines[-2][1:], strict=True):
        assert (backend.needs, backend.limits) == (needs, limits)


def test_the_table_of_what_a_step_costs_has_the_rows_and_columns_of_the_benchmark() -> None:
    measured: overhead.Measured = {
        (side, durability, name): {"whole": Times([1.0])}
        for side in ("invoke", "ainvoke")
        for durability in ("async", "sync")
        for name in ("none", "InMemorySaver", OURS.name)
    }
    (header, *lines), (made_header, *made_lines) = (
        rows(each) for each in (COST, f"<!-- measured -->\n{overhead.markdown(measured)}")
    )
    assert header == made_header
    assert [line[0] for line in lines] == [line[0] for line in made_lines]


def test_what_was_measured_takes_its_place_in_a_document() -> None:
    document = "before\n<!-- measured -->\nold\n<!-- end of what was measured -->\nafter\n"
    written = backends.written(document, "| new |\n")
    assert re.fullmatch(
        r"before\n<!-- measured -->\nBy `make bench-backends`, [\d-]{10}:\n\n\| new \|\n<!-- end .*\nafter\n",
        written,
    )
    with pytest.raises(ValueError, match="no place"):
        backends.written("nothing", "new")


def test_an_example_is_priced_by_its_requests_and_what_is_kept() -> None:
    example = months.Example("one", 1_000_000, 3, 60)
    usage = {3: Usage(write_units=100, read_units=40, stored=Stored(10, 2**30 // 1_000 - 1_000))}
    assert months.dynamodb_dollars(example, usage) == pytest.approx(62.5 + 5 + 500, rel=0.001)
    assert months.postgres_dollars(example, usage) == pytest.approx(730 * 0.318 + 2_000 * 0.23, rel=0.01)
    tiny = {3: Usage(0, 0, Stored(0, 1))}
    assert months.month_cell("Postgres", example, tiny) == f"${730 * 0.318 + 20 * 0.23:,.0f}"
    assert months.month_cell("SQLite", example, usage).endswith("GB of its machine's disk")


async def test_the_trials_of_a_backend_make_its_column(memory: Store) -> None:
    found = await trials.capabilities(memory)
    with BACKENDS[0].new(NO_SERVERS) as fresh:
        times = trials.latencies({"memory": fresh}, 1_000, steps=2)["memory"]
        used = trials.usage(fresh, (1, 2))
    assert 0 < used[1].stored.bytes < used[2].stored.bytes
    column = backends.Measured(
        found,
        {(size, network): times for size in backends.STATE_BYTES for network in ("", ", network of 5 ms")},
        trials.large(memory),
        await trials.fan_out(memory),
        {example.turns: used[1] for example in EXAMPLES},
    )
    table = backends.table({backend.name: column for backend in BACKENDS} | {OURS.name: deepcopy(column)})
    header, *lines = rows(f"<!-- measured -->\n{table}")
    assert len(lines) == len(backends.row_titles())
    assert (lines[1][1], lines[2][1]) == ("5 of 5", "0 of 3")
    [sends] = [line for line in lines if "`Send`s" in line[0]]
    assert sends[1] == ", ".join(f"{each} (1.00\N{MULTIPLICATION SIGN})" for each in sends[-1].split(", "))
    assert header[-1] == OURS.name
