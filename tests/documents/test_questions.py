"""The questions of new users, written down before the pages were merged, are answered where a search leads."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.documents import ROOT, anchors, read
from tests.support.programs import ran
from tools.site import address_of

HERE = Path(__file__).parent
# Pages that the site's search shows before a reader has to scroll.
SHOWN = 5


class Question(NamedTuple):
    """What a user asks, what they type into the search, and where the answer is."""

    asked: str
    typed: str
    answer: str


def questions(lines: str) -> list[Question]:
    """Read questions."""
    return [
        Question(*(cell.strip() for cell in line.split(" | ")))
        for line in lines.splitlines()
        if line and not line.startswith("#")
    ]


WRITTEN, _, TYPED = (HERE / "questions.txt").read_text(encoding="utf-8").partition("# What people type\n")
QUESTIONS = questions(WRITTEN + TYPED)
# The first result has to be the right page for these.
SEARCHES = questions(TYPED)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda each: each.asked)
def test_the_answer_is_where_it_was(question: Question) -> None:
    page, _, anchor = question.answer.partition("#")
    assert (ROOT / page).exists()
    assert not anchor or anchor in anchors(read(page))


@pytest.mark.search
def test_the_sites_search_leads_to_the_answers(site: Path) -> None:
    """The site's own script is asked, so titles, stop words and boosts count as they do in a browser."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("the site's search is a script: install Node.js")
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    index = site / "search" / "search_index.json"
    asked = ran(node, HERE / "search.js", worker, index, *(each.typed for each in QUESTIONS))
    found = json.loads(asked.stdout)
    assert [
        each for each, pages in zip(QUESTIONS, found, strict=True) if not _is_shown(each.answer, pages)
    ] == []
    firsts = found[-len(SEARCHES) :]
    missed = [each for each, pages in zip(SEARCHES, firsts, strict=True) if not _is_first(each.answer, pages)]
    assert len(missed) <= 2, missed


def _is_first(answer: str, pages: list[list[str]]) -> bool:
    """Tell whether the first result is the answer's page."""
    return bool(pages) and _is_shown(answer, [[location.partition("#")[0] for location in pages[0][:1]]])


def _is_shown(answer: str, pages: list[list[str]]) -> bool:
    """Tell whether one of the first results is the answer's page, with its section if it has one."""
    page, sign, anchor = answer.partition("#")
    uri = str(address_of(page)).removesuffix("index.md")
    address = uri.removesuffix(".md") + "/" * uri.endswith(".md") + sign + anchor
    return any(address in shown for shown in pages[:SHOWN])
