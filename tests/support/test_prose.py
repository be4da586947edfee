"""The check of pages: what it counts. `make lint` runs it on every page."""

from __future__ import annotations

from pathlib import Path

from tools.prose import (
    BOOK_WORDS_MAX,
    DECISIONS_MAX,
    PAGES_MAX,
    book_problems,
    long_lines,
    problems,
    sentence_words,
)


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


def test_a_book_that_is_too_large_is_named(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "decisions").mkdir(parents=True)
    for number in range(PAGES_MAX):
        (docs / f"{number}.md").write_text("word " * (BOOK_WORDS_MAX // PAGES_MAX))
    assert list(book_problems(tmp_path)) == []
    (tmp_path / "README.md").write_text("word " * PAGES_MAX)
    (docs / "more.md").touch()
    for number in range(DECISIONS_MAX + 1):
        (docs / "decisions" / f"{number}.md").touch()
    said = " ".join(book_problems(tmp_path))
    assert all(each in said for each in ("27 pages, more than 26", "15 decisions", "words, more than 40,000"))
