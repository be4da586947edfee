"""README's first screen is short and true, its commands for a clone exist, and every page is reached from it."""

import re
from pathlib import Path

from langgraph.checkpoint.dynamodb._format.schema import TEMPLATE_COMMAND
from tests.support.documents import ROOT, blocks, links, read, without_links
from tests.support.programs import ran

README = read("README.md")
FIRST_SCREEN = README.split("\n## ")[0]


def test_the_first_screen_says_what_was_not_tried() -> None:
    assert len(FIRST_SCREEN.splitlines()) <= 30
    assert "tested on DynamoDB Local and moto; not yet run on AWS" in " ".join(FIRST_SCREEN.split())


def test_every_figure_of_the_first_screen_is_on_the_page_that_it_leads_to() -> None:
    shown = re.findall(r"^- (.*?)(?=\n- |\n\n)", FIRST_SCREEN, re.MULTILINE | re.DOTALL)
    assert len(shown) == 3
    (cost,) = [each for each in links(FIRST_SCREEN) if each.endswith("cost.md")]
    shown += [f"{row} [cost]({cost})" for row in re.findall(r"^\| \w.* \|$", FIRST_SCREEN, re.MULTILINE)]
    assert len(shown) == 6
    for each in shown:
        pages = [read(path.partition("#")[0]) for path in links(each)]
        figures = re.findall(r"\d[\d,.]*\d|\d", without_links(each))
        assert figures
        assert [figure for figure in figures if not any(figure in page for page in pages)] == []


def test_its_commands_for_a_clone_exist() -> None:
    lines = [line for block in blocks(README, "sh") for line in block.splitlines()]
    assert f"{TEMPLATE_COMMAND} > table.yaml" in lines
    targets = [line.split()[1] for line in lines if line.startswith("make ")]
    assert targets == ["demo", "test"]
    for target in targets:
        ran("make", "--dry-run", target, cwd=ROOT)


def test_every_page_is_reached_from_it() -> None:
    """A page that README does not name is named by one that it does name."""
    seen: set[Path] = set()
    unread = {ROOT / "README.md"}
    while unread:
        page = unread.pop()
        seen.add(page)
        linked = {each.partition("#")[0] for each in links(page.read_text(encoding="utf-8"))}
        pages = {
            (page.parent / each).resolve() for each in linked if each.endswith(".md") and "://" not in each
        }
        unread |= pages - seen
    assert {*(ROOT / "docs").glob("*.md")} - seen == set()
