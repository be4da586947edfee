"""No relative link of a document leads to a file or a heading that is not there, and no test is named that is not."""

from __future__ import annotations

import re

import pytest

from tests.support.documents import ROOT, anchors, links, read
from tools.prose import pages

PAGES = [str(page.relative_to(ROOT)) for page in pages()]


def broken(page: str, document: str) -> list[str]:
    """Return the relative links of a document that lead nowhere."""
    return [each for each in links(document) if "://" not in each and not _resolves(page, each)]


def _resolves(page: str, link: str) -> bool:
    path, _, fragment = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    if not target.exists():
        return False
    return not fragment or fragment in anchors(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_resolves(page: str) -> None:
    assert broken(page, read(page)) == []


@pytest.mark.parametrize("page", [each for each in PAGES if "/decisions/" in each])
def test_every_test_that_a_decision_names_exists(page: str) -> None:
    # A file is named before its tests.
    parts = re.split(r"`(tests/[\w/]+\.py)`", read(page))
    named = [
        (file, name)
        for file, said in zip(parts[1::2], parts[2::2], strict=True)
        for name in re.findall(r"`(test_\w+)`", said)
    ]
    assert [name for file, name in named if f"def {name}(" not in read(file)] == []


def test_a_broken_link_is_found() -> None:
    document = "[a](docs/none.md) [b](docs/design.md#none) [c](#none) [d](https://example.com/none)"
    assert broken("README.md", document) == ["docs/none.md", "docs/design.md#none", "#none"]
    assert "README.md" in PAGES
    assert "docs/using.md" in PAGES
