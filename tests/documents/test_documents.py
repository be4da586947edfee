"""What documents compute is what comes out, their figures are those of the charts, and what they show can be used."""

import re
from itertools import count

import pytest

from benchmarks.dollars import GB_BYTES, STORED_GB_MONTH_DOLLARS
from langgraph.checkpoint.dynamodb._format.pricing import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from langgraph.checkpoint.dynamodb.gateway.settings import GatewayOptions
from langgraph.checkpoint.dynamodb.version import IS_PUBLISHED
from tests.infra.rendering import INFRA, load
from tests.support.documents import ROOT
from tools.prose import pages

COST = (INFRA.parent / "docs" / "cost.md").read_text(encoding="utf-8")
GATEWAY = (INFRA.parent / "docs" / "gateway.md").read_text(encoding="utf-8")
TIMES = "\N{MULTIPLICATION SIGN}"


def _row(row: str) -> list[int]:
    """The numbers of a row's second cell, on the page of costs."""
    [cells] = re.findall(rf"^\| {row}.*?\| (.*?) \|", COST, re.MULTILINE)
    return [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", cells)]


def _section(document: str, heading: str) -> str:
    return document.split(f"{heading}\n", 1)[1].split("\n##", 1)[0]


def test_the_sums_of_pages_add_up() -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    sums = [each for text in texts for each in re.findall(rf"([$\d(][\d {TIMES}+().,$]*) = \$([\d.]+)", text)]
    assert len(sums) > 5
    for written, result in sums:
        plain = re.sub(r"[$,]", "", written).replace(TIMES, "*")
        # Digits, signs and parentheses.
        assert f"{eval(plain):.2f}" == result.rstrip("."), written  # noqa: S307


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


def test_the_principals_that_are_shown_are_understood() -> None:
    (file,) = re.findall(r"```yaml\n(.*?)```", _section(GATEWAY, "## Deployment"), re.DOTALL)
    hashes = (f"{number:064}" for number in count())
    written = re.sub("<hash>", lambda _: next(hashes), file)
    assert GatewayOptions.model_validate({"principals": written}).principals.bearer


def test_what_a_month_costs_follows_from_a_conversation() -> None:
    (writes, reads), [stored] = _row("running 60 turns"), _row("keeping 60 turns for a month")
    requests = 10_000 * (writes * WRITE_UNIT_DOLLARS + reads * READ_UNIT_DOLLARS)
    gigabytes = 10_000 * stored / GB_BYTES
    storage = gigabytes * STORED_GB_MONTH_DOLLARS
    assert f"${requests:.2f} for requests, and ${storage:.2f} for {gigabytes:.1f} GiB" in " ".join(
        COST.split()
    )


def test_the_places_of_tables_are_those_that_the_benchmarks_write() -> None:
    places = [
        place
        for page in pages()
        for place in re.findall(r"<!-- measured: (.*) -->", page.read_text(encoding="utf-8"))
    ]
    sources = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "benchmarks").glob("*.py"))
    assert len(places) == len({*places}) > 5
    assert [place for place in places if f'"{place}": ' not in sources] == []


def test_the_bill_of_a_million_threads_a_day_adds_up() -> None:
    plain = " ".join(_section(COST, "## What else costs").split("**A million threads a day**")[1].split())
    bill = [int(each.replace(",", "")) for each in re.findall(r"\$([\d,]+\d)", plain)]
    writes, reads, size = (
        int(each.replace(",", ""))
        for each in re.findall(r"([\d,]+) write units, ([\d,]+) read units and ([\d,]+) bytes", plain)[0]
    )
    assert [writes, reads, size] == [*_row("running 10 turns"), *_row("keeping 10 turns for a month")]
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
