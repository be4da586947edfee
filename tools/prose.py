"""Check the form of Markdown pages: `python -m tools.prose` names each line or page that breaks a rule.

A line has at most 100 characters outside tables and code, not counting the targets of links. On each page the median
sentence has at most 15 words, and nine of ten sentences have at most 26. The book, which is README and `docs/` with the
decisions, has at most 26 pages beside README and decisions, 13 decisions, and 40,000 words as `wc -w` counts them.
"""

import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINE_CHARACTERS_MAX = 100
MEDIAN_WORDS_MAX = 15
NINTH_DECILE_WORDS_MAX = 26
# Deciles of fewer sentences say little.
SENTENCES_MIN = 10
# Nobody reads more than that.
PAGES_MAX = 26
DECISIONS_MAX = 13
BOOK_WORDS_MAX = 40_000

_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_END = re.compile(r"(?<=[.!?:])\s+(?=[\"'(*\[`A-Z0-9])")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")


def pages() -> list[Path]:
    """Return the Markdown pages that people read."""
    patterns = ("*.md", "docs/**/*.md", "infra/**/*.md", "examples/**/*.md", "benchmarks/**/*.md")
    found = {page for pattern in patterns for page in ROOT.glob(pattern)}
    return sorted(page for page in found if "node_modules" not in page.parts)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside code blocks and tables, with their numbers. An empty line ends a paragraph."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield number, ""
        elif not fenced:
            yield number, "" if line.lstrip().startswith(("|", "#", "<")) else line


def long_lines(text: str) -> list[int]:
    """Return the numbers of the lines that are too long without the targets of their links, and could be broken."""
    lines = ((number, _LINK.sub(r"[\1]()", line).strip()) for number, line in prose(text))
    return [number for number, line in lines if len(line) > LINE_CHARACTERS_MAX and " " in line]


def sentence_words(text: str) -> list[int]:
    """Return how many words each sentence has: code is one word, and an item of a list ends a sentence."""
    paragraphs: list[list[str]] = [[]]
    for _, line in prose(text):
        if not line.strip() or _ITEM.match(line):
            paragraphs.append([])
        paragraphs[-1].append(_ITEM.sub("", line, count=1).strip())
    plain = (_CODE.sub("code", _LINK.sub(r"\1", " ".join(lines))) for lines in paragraphs)
    counts = (len(sentence.split()) for paragraph in plain for sentence in _END.split(paragraph))
    return [count for count in counts if count]


def problems(text: str) -> Iterator[str]:
    """Yield what is wrong with a page's form."""
    for number in long_lines(text):
        yield f"line {number} has more than {LINE_CHARACTERS_MAX} characters"
    counts = sentence_words(text)
    if len(counts) < SENTENCES_MIN:
        return
    median, decile = statistics.median(counts), statistics.quantiles(counts, n=10)[-1]
    if median > MEDIAN_WORDS_MAX:
        yield f"the median sentence has {median:.0f} words, more than {MEDIAN_WORDS_MAX}"
    if decile > NINTH_DECILE_WORDS_MAX:
        yield f"one sentence in ten has over {decile:.0f} words, more than {NINTH_DECILE_WORDS_MAX}"


def book_problems(root: Path) -> Iterator[str]:
    """Yield in what README, `docs/` and the decisions in it are too large."""
    chapters, decisions = sorted(root.glob("docs/*.md")), sorted(root.glob("docs/decisions/*.md"))
    texts = [page.read_text(encoding="utf-8") for page in (*root.glob("README.md"), *chapters, *decisions)]
    words = sum(len(text.split()) for text in texts)
    for count, maximum, what in (
        (len(chapters), PAGES_MAX, "pages"),
        (len(decisions), DECISIONS_MAX, "decisions"),
        (words, BOOK_WORDS_MAX, "words"),
    ):
        if count > maximum:
            yield f"there are {count:,} {what}, more than {maximum:,}: shorten or merge some"


def main() -> None:
    """Print what is wrong with the book and its pages, and exit with an error if there is anything."""
    found = [f"README and docs: {problem}" for problem in book_problems(ROOT)]
    for page in pages():
        text = page.read_text(encoding="utf-8")
        found += [f"{page.relative_to(ROOT)}: {problem}" for problem in problems(text)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
