"""The questions of new users, written down before the pages were merged, are answered where a search leads."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.support.documents import ROOT, anchors, read
from tools.prose import pages

LINES = (Path(__file__).parent / "questions.txt").read_text(encoding="utf-8").splitlines()
QUESTIONS = [
    [cell.strip() for cell in line.split(" | ")] for line in LINES if line and not line.startswith("#")
]
# Pages that the site's search shows before a reader has to scroll.
SHOWN = 5
# A word of a title counts for as much as this many in the text; the site's search prefers titles, too.
TITLE_WEIGHT = 20


@cache
def _sections() -> dict[tuple[str, str], tuple[str, str]]:
    """Return each section's title and text, by its page and anchor."""
    found = {}
    for page in (str(each.relative_to(ROOT)) for each in pages()):
        if not re.match(r"docs/[\w-]+\.md|README\.md", page):
            continue
        for part in re.split(r"^(?=#{1,4} )", read(page), flags=re.MULTILINE):
            title = part.partition("\n")[0]
            if title.startswith("#"):
                (anchor,) = anchors(title)
                found[page, anchor] = title.lower(), part.lower()
    return found


def _found(words: list[str]) -> list[str]:
    """Return the pages with a section that has every word, the best first."""
    scores: Counter[str] = Counter()
    for (page, _), (title, text) in _sections().items():
        if all(word in text for word in words):
            score = sum(TITLE_WEIGHT * (word in title) + min(text.count(word), 5) for word in words)
            scores[page] = max(scores[page], score)
    return [page for page, _ in scores.most_common()]


def test_there_are_thirty_questions() -> None:
    assert len(QUESTIONS) >= 30


@pytest.mark.parametrize(("question", "typed", "answer"), QUESTIONS)
def test_the_search_leads_to_the_answer(question: str, typed: str, answer: str) -> None:
    page, _, anchor = answer.partition("#")
    assert (ROOT / page).exists(), question
    assert not anchor or (page, anchor) in _sections(), question
    assert page in _found(typed.lower().split())[:SHOWN], question
