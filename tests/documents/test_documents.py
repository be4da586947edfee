"""What documents compute is what comes out, their figures are those of the charts, and what they show can be used."""

from __future__ import annotations

import ast
import re

import pytest

from benchmarks.contestants import FLOOR, OURS
from benchmarks.dollars import GB_BYTES, STORED_GB_MONTH_DOLLARS
from benchmarks.suite import SECTIONS
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb.gateway.settings import GatewayOptions
from langgraph.checkpoint.dynamodb.version import IS_PUBLISHED
from tests.infra.rendering import INFRA, load
from tests.support.documents import ROOT
from tools.prose import pages

COST = (INFRA.parent / "docs" / "cost.md").read_text(encoding="utf-8")
FIGURES = INFRA.parent / "docs" / "figures"
GATEWAY = (INFRA.parent / "docs" / "gateway.md").read_text(encoding="utf-8")
TIMES = "\N{MULTIPLICATION SIGN}"


def _row(row: str) -> tuple[list[int], str]:
    """The numbers of a row's second cell, and its third cell, on the page of costs."""
    [(cells, dollars)] = re.findall(rf"^\| {row}.*?\| (.*?) \| (.*?) \|$", COST, re.MULTILINE)
    return [int(each.replace(",", "")) for each in re.findall(r"[\d,]+\d", cells)], dollars


def _section(document: str, heading: str) -> str:
    return document.split(f"{heading}\n", 1)[1].split("\n##", 1)[0]


def test_the_sums_of_pages_add_up() -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    sums = [each for text in texts for each in re.findall(rf"([$\d(][\d {TIMES}+().,$]*) = \$([\d.]+)", text)]
    assert len(sums) > 5
    for written, result in sums:
        plain = re.sub(r"[$,]", "", written).replace(TIMES, "*")
        assert f"{_value(plain):.2f}" == result.rstrip("."), written


def test_what_a_gateway_costs_follows_from_its_templates() -> None:
    costs = _section(GATEWAY, "### What a deployment costs")
    for name, row in (("gateway.yaml", "Lambda"), ("ecs.yaml", "ECS")):
        # What a parameter switches on costs besides.
        made = [each for each in load(name)["Resources"].values() if "Condition" not in each]
        kinds = [each["Type"] for each in made]
        alarms, secrets = (
            kinds.count(kind) for kind in ("AWS::CloudWatch::Alarm", "AWS::SecretsManager::Secret")
        )
        # On ECS the principals are a secret besides, which is made by hand.
        secrets += name == "ecs.yaml"
        (cells,) = re.findall(rf"^\| {row} \| (.*?) \|", costs, re.MULTILINE)
        priced = [
            f"{count} {TIMES} ${price}" for count, price in ((secrets, "0.40"), (alarms, "0.10")) if count
        ]
        assert cells.split("= $")[0].rstrip().endswith(" + ".join(priced))


def _value(expression: str) -> float:
    """The value of a sum of products."""

    def of(node: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        assert isinstance(node, ast.BinOp)
        left, right = of(node.left), of(node.right)
        return left + right if isinstance(node.op, ast.Add) else left * right

    return of(ast.parse(expression.strip(), mode="eval").body)


def test_the_principals_that_are_shown_are_understood() -> None:
    (file,) = re.findall(r"```yaml\n(.*?)```", _section(GATEWAY, "## Deployment"), re.DOTALL)
    written = file.replace("<hash>", "0" * 64)
    assert GatewayOptions.model_validate({"principals": written}).principals.authenticate() is not None


def test_what_a_conversation_costs_follows_from_its_units() -> None:
    for row in ("running it", "pruning all but 20", "deleting it"):
        (writes, reads), dollars = _row(row)
        assert dollars == f"${writes * WRITE_UNIT_DOLLARS + reads * READ_UNIT_DOLLARS:.5f}"
    [stored], month = _row("keeping it for a month")
    assert month == f"${stored / GB_BYTES * STORED_GB_MONTH_DOLLARS:.5f}"
    (writes, reads), _ = _row("running it")
    assert re.findall(r"^\| (?:write|read) units \| ([\d,]+) \|", COST, re.MULTILINE) == [
        f"{writes:,}",
        f"{reads:,}",
    ]
    requests = 10_000 * (writes * WRITE_UNIT_DOLLARS + reads * READ_UNIT_DOLLARS)
    gigabytes = 10_000 * stored / GB_BYTES
    storage = gigabytes * STORED_GB_MONTH_DOLLARS
    assert f"${requests:.2f} for requests, and ${storage:.2f} for {gigabytes:.1f} GiB" in " ".join(
        COST.split()
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_a_page_cites_every_section_of_the_benchmarks(section: str) -> None:
    """A benchmark that nobody cites, nobody runs."""
    docs = INFRA.parent / "docs"
    pages = "\n".join(each.read_text(encoding="utf-8") for each in docs.glob("*.md"))
    cited = rf"[Ss]ections? [^.|]*`{section}`|--only {section}\b|make bench-{section}\b"
    assert re.search(cited, pages), f"name section `{section}` where its figures stand, or remove it"


def _texts(chart: str) -> list[str]:
    """The texts of a chart that `make bench` drew, in their order."""
    return re.findall(r"<text [^>]*>([^<]*)</text>", (FIGURES / chart).read_text(encoding="utf-8"))


def test_the_prices_by_kind_of_agent_are_those_of_the_chart() -> None:
    savers, *groups = _in_parts(_texts("price.svg")[1:])
    ours, floor = savers.index(OURS.name), savers.index(FLOOR.name)
    rows = []
    for agent, *prices in groups:
        others = [price for place, price in enumerate(prices) if place not in {ours, floor}]
        cheapest = min(others, key=_dollars)
        rows.append([agent, prices[ours], cheapest, f"{_dollars(cheapest) / _dollars(prices[ours]):.0f}"])
    section = _section(COST, "## By kind of agent")
    table = [row.split(" | ") for row in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)]
    assert table[1:] == rows


def _in_parts(texts: list[str]) -> list[list[str]]:
    """The legend, and for each group its name and its prices."""
    names = next(place for place, text in enumerate(texts) if text.startswith("$")) - 1
    size = names + 1
    return [texts[:names], *(texts[at : at + size] for at in range(names, len(texts), size))]


def _dollars(price: str) -> float:
    return float(price.removeprefix("$"))


def test_the_growth_of_a_step_is_that_of_the_chart() -> None:
    ends = re.findall(r"^([\d.]+)(?: fails)?$", "\n".join(_texts("growth.svg")), re.MULTILINE)
    (row,) = re.findall(r"^\| write units per step, turns 51 to 60 \| (.*) \|$", COST, re.MULTILINE)
    ours, aws, _ = row.split(" | ")
    assert {ours, aws} <= {*ends}


def test_the_bill_of_a_million_threads_a_day_adds_up() -> None:
    plain = " ".join(_section(COST, "## What else costs").split("**A million threads a day**")[1].split())
    bill = [int(each.replace(",", "")) for each in re.findall(r"\$([\d,]+\d)", plain)]
    writes, reads, size = (
        int(each.replace(",", ""))
        for each in re.findall(r"([\d,]+) write units, ([\d,]+) read units and ([\d,]+) bytes", plain)[0]
    )
    # A thread of ten turns is measured by itself: its first steps cost a little more than the later ones of the 60.
    (sixty_writes, sixty_reads), _ = _row("running it")
    assert 1 <= writes / (sixty_writes / 6) < 1.25
    assert 1 <= reads / (sixty_reads / 6) < 1.25
    requests = 30_000_000 * (writes * float(WRITE_UNIT_DOLLARS) + reads * float(READ_UNIT_DOLLARS))
    gigabytes = 30_000_000 * size / GB_BYTES
    parts = [requests, gigabytes * 0.25, gigabytes * 0.2]
    computed = [sum(parts), *parts, gigabytes * 0.1 * 35]
    assert bill == [pytest.approx(each, abs=6) for each in computed]


def test_pages_install_the_package_from_where_it_is() -> None:
    texts = {str(page): page.read_text(encoding="utf-8") for page in pages()}
    asking_the_index = re.compile(r"pip install [^\n`]*(?<![\w/-])langgraph-dynamodb\b")
    from_the_index = [name for name, text in texts.items() if asking_the_index.search(text)]
    assert bool(from_the_index) == IS_PUBLISHED, from_the_index
    assert ("not on PyPI yet" in " ".join(texts[str(ROOT / "README.md")].split())) != IS_PUBLISHED


def test_the_page_of_one_put_names_what_is_in_the_modules_that_it_links() -> None:
    page = (ROOT / "docs" / "one-put.md").read_text()
    modules = [
        (ROOT / "docs" / link).resolve() for link in re.findall(r"^\[.*\]: (\S+)$", page, re.MULTILINE)
    ]
    code = "".join(each.read_text() for each in modules)
    rows = [line.split("|")[2] for line in page.splitlines() if re.match(r"\| [\d-]", line)]
    names = {part for row in rows for name in re.findall(r"`([\w.]+)`", row) for part in name.split(".")}
    assert len(names) > 15
    assert not {each for each in names if not re.search(rf"^ *(class|def) {each}\b", code, re.MULTILINE)}
