"""The project's documents: their code blocks and links, and the headings that links lead to."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)]*)\)")


def read(path: str) -> str:
    """Return the text of a document, by its path from the project's root."""
    return (ROOT / path).read_text(encoding="utf-8")


def blocks(document: str, language: str) -> list[str]:
    """Return the code blocks of a language."""
    return [text for each, text in _BLOCK.findall(document) if each == language]


def without_blocks(document: str) -> str:
    """Return the document without its code blocks."""
    return _BLOCK.sub("", document)


def without_links(document: str) -> str:
    """Return the document with the text of each link in place of the link."""
    return _LINK.sub(r"\1", document)


def links(document: str) -> list[str]:
    """Return where the links and pictures of a document lead."""
    return [target for _, target in _LINK.findall(without_blocks(document))]


def anchors(document: str) -> set[str]:
    """Return the fragments by which GitHub and most renderers address the headings."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(document), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", without_links(each).lower()) for each in headings]
    return {each.strip().replace(" ", "-") for each in plain}
