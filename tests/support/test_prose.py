"""The check of pages: what it counts, and that every page passes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.prose import ROOT, long_lines, pages, problems, sentence_words


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_keeps_the_form(page: Path) -> None:
    assert list(problems(page.read_text(encoding="utf-8"))) == []


def test_lines_count_without_tables_code_and_the_targets_of_links() -> None:
    long = "word " * 30
    text = f"{long}\n\n| {long} |\n\n```\n{long}\n```\n\n[word]({'a' * 200})\n"
    assert long_lines(text) == [1]


def test_sentences_end_at_stops_and_items() -> None:
    text = "One two three. Four `five six` seven:\n\n- eight\n  nine\n- [ten](eleven) twelve\n"
    assert sentence_words(text) == [3, 3, 2, 2]


def test_a_page_of_long_sentences_is_named() -> None:
    said = list(problems("\n\n".join(["word " * 19] * 12)))
    assert said == [
        "the median sentence has 19 words, more than 15",
    ]
    assert "one sentence in ten" in "".join(problems("\n\n".join(["a b c"] * 8 + ["word " * 30] * 4)))
